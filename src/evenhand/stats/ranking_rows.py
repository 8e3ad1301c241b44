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
    nothing: list[float | None] = [None] * len(strength)
    low = high = nothing
    rank_low: list[int | None] = [None] * len(strength)
    rank_high = rank_low
    if uncertainty is not None:
        low, high = _limits(uncertainty.low, scale), _limits(uncertainty.high, scale)
        rank_low, rank_high = uncertainty.ranks.low.tolist(), uncertainty.ranks.high.tolist()
    score, log_odds, games = (
        _scores(strength, scale).tolist(),
        strength.tolist(),
        tally.games.tolist(),
    )
    remarks = [None] * len(strength) if links.strong else _remarks(links)
    return tuple(
        RankedModel(
            model=tally.models[place],
            score=score[place],
            log_odds=log_odds[place],
            low=low[place],
            high=high[place],
            rank=rank,
            rank_low=rank_low[place],
            rank_high=rank_high[place],
            games=games[place],
            note=remarks[place]
            or (_NO_SCATTER if uncertainty is not None and low[place] is None else None),
        )
        for rank, place in enumerate(order, 1)
    )


_NO_SCATTER = "its battles do not differ enough for an interval"


def _remarks(links: Connections) -> list[str | None]:
    return [_remark(links, place) for place in range(len(links.main))]


def _remark(links: Connections, place: int) -> str | None:
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


def _limits(log_odds: Matrix, scale: Scale) -> list[float | None]:
    limits: list[float | None] = _scores(log_odds, scale).tolist()
    for place in np.flatnonzero(np.isnan(log_odds)).tolist():
        limits[place] = None
    return limits
