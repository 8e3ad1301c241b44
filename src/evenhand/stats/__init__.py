"""From verdicts to conclusions. Pure functions of numbers; nothing here knows a judge.

Names are loaded when first used, since most of them need NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.stats.elo import EloRating, EloRatings, rate_elo
    from evenhand.stats.ranking import rank_battles, rank_counts
    from evenhand.stats.ranking_result import Neighbours, RankedModel, Ranking

_HOMES = {
    "EloRating": "elo",
    "EloRatings": "elo",
    "Neighbours": "ranking_result",
    "RankedModel": "ranking_result",
    "Ranking": "ranking_result",
    "rank_battles": "ranking",
    "rank_counts": "ranking",
    "rate_elo": "elo",
}

__all__ = [
    "EloRating",
    "EloRatings",
    "Neighbours",
    "RankedModel",
    "Ranking",
    "rank_battles",
    "rank_counts",
    "rate_elo",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
