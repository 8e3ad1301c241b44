"""From verdicts to conclusions. Pure functions of numbers; nothing here knows a judge.

Names are loaded when first used, since most of them need NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.stats.adaptive import PairChoice, StoppingRule, choose_pairs
    from evenhand.stats.always_valid import (
        AlwaysValidInterval,
        always_valid_interval,
        always_valid_interval_of_scores,
        always_valid_p,
    )
    from evenhand.stats.elo import EloRating, EloRatings, rate_elo
    from evenhand.stats.length import LengthEffect, length_effect
    from evenhand.stats.pair_counts import PairCounts, count_pairs
    from evenhand.stats.planning import (
        Certainty,
        PairPlan,
        Shape,
        detectable_difference,
        plan_pairs,
    )
    from evenhand.stats.position import PositionBias, position_bias
    from evenhand.stats.rank_certainty import RankCertainty
    from evenhand.stats.ranking import rank_battles, rank_counts
    from evenhand.stats.ranking_result import Neighbours, RankedModel, Ranking
    from evenhand.stats.sequential import Decision, SequentialPlan, SequentialTest, follow
    from evenhand.stats.win_rate import WinRate, by_group, win_rate_of_counts

# `win_rate` and `sign_test` are modules too: their functions are imported from there.
_HOMES = {
    "AlwaysValidInterval": "always_valid",
    "Certainty": "planning",
    "Decision": "sequential",
    "EloRating": "elo",
    "EloRatings": "elo",
    "LengthEffect": "length",
    "Neighbours": "ranking_result",
    "PairChoice": "adaptive",
    "PairCounts": "pair_counts",
    "PairPlan": "planning",
    "PositionBias": "position",
    "RankCertainty": "rank_certainty",
    "RankedModel": "ranking_result",
    "Ranking": "ranking_result",
    "SequentialPlan": "sequential",
    "SequentialTest": "sequential",
    "Shape": "planning",
    "StoppingRule": "adaptive",
    "WinRate": "win_rate",
    "always_valid_interval": "always_valid",
    "always_valid_interval_of_scores": "always_valid",
    "always_valid_p": "always_valid",
    "by_group": "win_rate",
    "choose_pairs": "adaptive",
    "count_pairs": "pair_counts",
    "detectable_difference": "planning",
    "follow": "sequential",
    "length_effect": "length",
    "plan_pairs": "planning",
    "position_bias": "position",
    "rank_battles": "ranking",
    "rank_counts": "ranking",
    "rate_elo": "elo",
    "win_rate_of_counts": "win_rate",
}

__all__ = [
    "AlwaysValidInterval",
    "Certainty",
    "Decision",
    "EloRating",
    "EloRatings",
    "LengthEffect",
    "Neighbours",
    "PairChoice",
    "PairCounts",
    "PairPlan",
    "PositionBias",
    "RankCertainty",
    "RankedModel",
    "Ranking",
    "SequentialPlan",
    "SequentialTest",
    "Shape",
    "StoppingRule",
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
