"""The rows of a ranking, best first, and the neighbours that cannot be told apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from evenhand.stats.bradley_terry import Matrix
from evenhand.stats.connectivity import Connections
from evenhand.stats.ranking_result import CENTRE, POINTS, Neighbours, RankedModel, Scale
from evenhand.stats.ranking_uncertainty import Uncertainty
from evenhand.stats.tally import Tally


def make_rows(
    tally: Tally,
    links: Connections,
    scale: Scale,
    strength: Matrix,
    uncertainty: Uncertainty | None,
    order: list[int],
) -> tuple[RankedModel, ...]:
    nothing = np.full(len(strength), np.nan)
    low = _scores(nothing if uncertainty is None else uncertainty.low, scale)
    high = _scores(nothing if uncertainty is None else uncertainty.high, scale)
    score = _scores(strength, scale)
    return tuple(
        RankedModel(
            model=tally.models[place],
            score=float(score[place]),
            log_odds=float(strength[place]),
            low=_or_none(low[place]),
            high=_or_none(high[place]),
            rank=rank,
            rank_low=None if uncertainty is None else int(uncertainty.ranks.low[place]),
            rank_high=None if uncertainty is None else int(uncertainty.ranks.high[place]),
            games=int(tally.games[place]),
            note=_note(links, place, low, uncertainty),
        )
        for rank, place in enumerate(order, 1)
    )


def _note(
    links: Connections, place: int, low: Matrix, uncertainty: Uncertainty | None
) -> str | None:
    if links.absent[place]:
        return "never compared: its score is the prior's"
    if links.undefeated[place]:
        return "undefeated: no upper limit"
    if links.winless[place]:
        return "winless: no lower limit"
    if links.above[place]:
        return "never lost to the main group: no upper limit"
    if links.below[place]:
        return "never scored against the main group: no lower limit"
    if not links.main[place]:
        return "not comparable with the main group"
    if uncertainty is not None and np.isnan(low[place]):
        return "its battles do not differ enough for an interval"
    return None


def find_neighbours(
    models: tuple[str, ...],
    strength: Matrix,
    uncertainty: Uncertainty | None,
    order: list[int],
    scale: Scale,
) -> tuple[Neighbours, ...] | None:
    if uncertainty is None:
        return None
    ranks = uncertainty.ranks
    factor = POINTS if scale == "elo" else 1.0
    alike = []
    for better, worse in pairwise(order):
        if ranks.better[better, worse]:
            continue
        difference = float(strength[better] - strength[worse])
        reach = ranks.critical * float(ranks.errors[better, worse])
        known = reach > 0
        alike.append(
            Neighbours(
                better=models[better],
                worse=models[worse],
                difference=difference * factor,
                low=(difference - reach) * factor if known else None,
                high=(difference + reach) * factor if known else None,
            )
        )
    return tuple(alike)


def _scores(log_odds: Matrix, scale: Scale) -> Matrix:
    return CENTRE + POINTS * log_odds if scale == "elo" else log_odds


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
