"""The rows of a ranking, best first, and the neighbours that do not differ significantly."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from evenhand.stats.bradley_terry import Matrix, expected_score
from evenhand.stats.connectivity import Connections
from evenhand.stats.rank_intervals import negligible
from evenhand.stats.ranking_result import (
    CENTRE,
    MOST_WITH_LIMITS,
    POINTS,
    Neighbours,
    RankedModel,
    Scale,
)
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


Limits = tuple[tuple[float | None, ...], ...]


def win_limits(
    strength: Matrix,
    links: Connections,
    uncertainty: Uncertainty | None,
    order: list[int],
    tie_parameter: float | None,
) -> tuple[Limits, Limits] | None:
    """Of what each model scores against each other one: those of their difference, best first.

    A limit that the battles do not set is 0, or 1.
    """
    if uncertainty is None or len(order) > MOST_WITH_LIMITS:
        return None
    errors = uncertainty.ranks.errors
    difference, reach = strength[:, None] - strength, uncertainty.ranks.critical * errors
    log_ties = math.log(tie_parameter) if tie_parameter else None
    low = expected_score(difference - reach, log_ties)
    high = expected_score(difference + reach, log_ties)
    no_lower, no_upper = np.isnan(uncertainty.low), np.isnan(uncertainty.high)
    low[no_lower[:, None] | no_upper] = 0.0
    high[no_upper[:, None] | no_lower] = 1.0
    if links.comparable is not None:
        low[~links.comparable], high[~links.comparable] = 0.0, 1.0
    for each in (low, high):
        each[errors <= negligible(strength)] = np.nan
    return _best_first(low, order), _best_first(high, order)


def _best_first(limits: Matrix, order: list[int]) -> Limits:
    return tuple(
        tuple(None if math.isnan(limit) else limit for limit in row)
        for row in limits[np.ix_(order, order)].tolist()
    )


def _scores(log_odds: Matrix, scale: Scale) -> Matrix:
    return CENTRE + POINTS * log_odds if scale == "elo" else log_odds


def _limits(log_odds: Matrix, scale: Scale) -> list[float | None]:
    limits: list[float | None] = _scores(log_odds, scale).tolist()
    for place in np.flatnonzero(np.isnan(log_odds)).tolist():
        limits[place] = None
    return limits
