"""From verdicts to conclusions. Pure functions of numbers; nothing here knows a judge.

Rows come in by `outcomes`, `columns` and `clusters`; `intervals`, `always_valid`, `estimates`,
`proportions` and `logistic_regression` are shared; the subjects are `rates`, `ranking`, `stopping`,
`agreement`, `calibration`, `juries` and `correction`.

Names are loaded when first used, since most of them need NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.stats.always_valid import (
        AlwaysValidInterval,
        always_valid_interval,
        always_valid_interval_of_scores,
        always_valid_p,
    )
    from evenhand.stats.ranking.adaptive import (
        PairChoice,
        PairCounts,
        StoppingRule,
        choose_pairs,
        count_pairs,
    )
    from evenhand.stats.ranking.elo import EloRating, EloRatings, rate_elo
    from evenhand.stats.ranking.leaderboard import rank_battles, rank_counts
    from evenhand.stats.ranking.posterior import RankCertainty
    from evenhand.stats.ranking.result import IndistinguishableModels, RankedModel, Ranking
    from evenhand.stats.rates.length_bias import LengthEffect, length_effect
    from evenhand.stats.rates.position_bias import PositionBias, position_bias
    from evenhand.stats.rates.win_rate import WinRate, by_group, win_rate_of_counts
    from evenhand.stats.stopping.planning import (
        Certainty,
        PairPlan,
        StudyDesign,
        detectable_difference,
        plan_pairs,
    )
    from evenhand.stats.stopping.sequential import (
        SequentialDecision,
        SequentialPlan,
        SequentialTest,
        follow,
    )

_HOMES = {
    "AlwaysValidInterval": "always_valid",
    "Certainty": "stopping.planning",
    "EloRating": "ranking.elo",
    "EloRatings": "ranking.elo",
    "IndistinguishableModels": "ranking.result",
    "LengthEffect": "rates.length_bias",
    "PairChoice": "ranking.adaptive",
    "PairCounts": "ranking.adaptive",
    "PairPlan": "stopping.planning",
    "PositionBias": "rates.position_bias",
    "RankCertainty": "ranking.posterior",
    "RankedModel": "ranking.result",
    "Ranking": "ranking.result",
    "SequentialDecision": "stopping.sequential",
    "SequentialPlan": "stopping.sequential",
    "SequentialTest": "stopping.sequential",
    "StoppingRule": "ranking.adaptive",
    "StudyDesign": "stopping.planning",
    "WinRate": "rates.win_rate",
    "always_valid_interval": "always_valid",
    "always_valid_interval_of_scores": "always_valid",
    "always_valid_p": "always_valid",
    "by_group": "rates.win_rate",
    "choose_pairs": "ranking.adaptive",
    "count_pairs": "ranking.adaptive",
    "detectable_difference": "stopping.planning",
    "follow": "stopping.sequential",
    "length_effect": "rates.length_bias",
    "plan_pairs": "stopping.planning",
    "position_bias": "rates.position_bias",
    "rank_battles": "ranking.leaderboard",
    "rank_counts": "ranking.leaderboard",
    "rate_elo": "ranking.elo",
    "win_rate_of_counts": "rates.win_rate",
}

__all__ = [
    "AlwaysValidInterval",
    "Certainty",
    "EloRating",
    "EloRatings",
    "IndistinguishableModels",
    "LengthEffect",
    "PairChoice",
    "PairCounts",
    "PairPlan",
    "PositionBias",
    "RankCertainty",
    "RankedModel",
    "Ranking",
    "SequentialDecision",
    "SequentialPlan",
    "SequentialTest",
    "StoppingRule",
    "StudyDesign",
    "WinRate",
    "always_valid_interval",
    "always_valid_interval_of_scores",
    "always_valid_p",
    "by_group",
    "choose_pairs",
    "count_pairs",
    "detectable_difference",
    "follow",
    "length_effect",
    "plan_pairs",
    "position_bias",
    "rank_battles",
    "rank_counts",
    "rate_elo",
    "win_rate_of_counts",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
