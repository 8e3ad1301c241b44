"""Bradley–Terry rankings of battles or counts: `rank_battles` and `rank_counts`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from evenhand.errors import InputError
from evenhand.messages import Message, chained
from evenhand.stats.columns import Floats
from evenhand.stats.ranking.battles import tally_battles, tally_counts
from evenhand.stats.ranking.bradley_terry import (
    Fit,
    expected_score,
    fit_bradley_terry,
    fit_davidson,
)
from evenhand.stats.ranking.result import (
    CENTRE,
    MOST_WITH_LIMITS,
    POINTS,
    IndistinguishableModels,
    Intervals,
    RankedModel,
    Ranking,
    RankingOptions,
    Scale,
    Ties,
)
from evenhand.stats.ranking.tally import BattleTally, Connectivity, examine, ties_settled
from evenhand.stats.ranking.uncertainty import (
    Uncertainty,
    measure_uncertainty,
    negligible,
)

_SHOWN = 5


def describe_gaps(links: Connectivity, models: Sequence[str]) -> Message:
    """Why the battles alone give no finite scores."""
    gaps = [
        Message(code, models=_listed([models[i] for i in flags.nonzero()[0].tolist()]))
        for code, flags in (
            ("stats.gap_undefeated", links.undefeated),
            ("stats.gap_winless", links.winless),
            ("stats.gap_never_compared", links.absent),
        )
        if flags.any()
    ]
    if links.groups:
        groups = " | ".join(_listed([models[i] for i in group.tolist()]) for group in links.groups)
        gaps.append(Message("stats.gap_groups", groups=groups))
    if gaps:
        return chained(gaps)
    if links.strong:
        return Message("stats.gap_tie_parameter")
    return Message("stats.gap_no_way_back")


def notes_on(
    links: Connectivity,
    tally: BattleTally,
    *,
    prior: float,
    unsettled: bool,
    fit: Fit,
    clusters: int | None,
    by_prompt: bool,
) -> tuple[str, ...]:
    notes: list[str] = []
    if not links.strong:
        notes.append(Message("stats.not_connected", gaps=describe_gaps(links, tally.models)))
    if unsettled:
        notes.append(Message("stats.tie_parameter_open"))
    if prior:
        notes.append(Message("stats.prior_used", prior=prior))
    if not fit.converged:
        notes.append(Message("stats.not_converged", steps=fit.iterations))
    if clusters is not None and clusters <= len(tally.models):
        code = "stats.few_prompts_for_models" if by_prompt else "stats.few_battles_for_models"
        notes.append(Message(code, n=clusters, models=len(tally.models)))
    return tuple(notes)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def make_rows(
    tally: BattleTally,
    links: Connectivity,
    scale: Scale,
    strength: Floats,
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
            or (
                Message("stats.no_scatter")
                if uncertainty is not None and low[place] is None
                else None
            ),
        )
        for rank, place in enumerate(order, 1)
    )


def _remarks(links: Connectivity) -> list[str | None]:
    return [_remark(links, place) for place in range(len(links.main))]


def _remark(links: Connectivity, place: int) -> str | None:
    if links.absent[place]:
        return Message("stats.never_compared")
    if links.undefeated[place]:
        return Message("stats.undefeated")
    if links.winless[place]:
        return Message("stats.winless")
    if links.above[place]:
        return Message("stats.above_main_group")
    if links.below[place]:
        return Message("stats.below_main_group")
    if not links.main[place]:
        return Message("stats.outside_main_group")
    return None


def find_neighbours(
    models: tuple[str, ...],
    strength: Floats,
    uncertainty: Uncertainty | None,
    order: list[int],
    scale: Scale,
) -> tuple[IndistinguishableModels, ...] | None:
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
            IndistinguishableModels(
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
    strength: Floats,
    links: Connectivity,
    uncertainty: Uncertainty | None,
    order: list[int],
    tie_parameter: float | None,
) -> tuple[Limits, Limits] | None:
    """Limits of each model's expected score against each other, from those of their difference,
    best first.

    0 or 1 where the battles set no limit.
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


def _best_first(limits: Floats, order: list[int]) -> Limits:
    return tuple(
        tuple(None if math.isnan(limit) else limit for limit in row)
        for row in limits[np.ix_(order, order)].tolist()
    )


def _scores(log_odds: Floats, scale: Scale) -> Floats:
    return CENTRE + POINTS * log_odds if scale == "elo" else log_odds


def _limits(log_odds: Floats, scale: Scale) -> list[float | None]:
    limits: list[float | None] = _scores(log_odds, scale).tolist()
    for place in np.flatnonzero(np.isnan(log_odds)).tolist():
        limits[place] = None
    return limits


PRIOR = 1.0


def rank_battles(
    model_a: Any,
    model_b: Any,
    winner: Any,
    *,
    prompt: Any = None,
    weight: Any = None,
    models: Sequence[str] | None = None,
    ties: Ties = "half",
    intervals: Intervals | None = "sandwich",
    level: float = 0.95,
    scale: Scale = "elo",
    prior: float | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> Ranking:
    """Rank models by battles: one row each, in lists, NumPy arrays, pandas or Arrow columns.

    `winner` holds A, B or TIE, a model's name, or a preference for A from 0 to 1. Rows of one
    `prompt` are clustered in the intervals. With `models`, the first two columns may be indexes
    into them. `prior` None uses a prior only if the battles alone give no finite scores.
    """
    asked = RankingOptions(ties, intervals, level, scale, prior, replicates, seed)
    tally = tally_battles(
        model_a,
        model_b,
        winner,
        prompt=prompt,
        weight=weight,
        models=models,
        keep_rows=intervals == "bootstrap",
    )
    return rank_tally(tally, asked, by_prompt=prompt is not None)


def rank_counts(
    models: Sequence[str],
    model_a: Any,
    model_b: Any,
    *,
    wins_a: Any,
    wins_b: Any,
    halves: Any = None,
    prompt: Any = None,
    ties: Ties = "half",
    intervals: Intervals | None = "sandwich",
    level: float = 0.95,
    scale: Scale = "elo",
    prior: float | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> Ranking:
    """The same from counts: a row for each pair of models, or for each pair and prompt.

    `model_a` and `model_b` are indexes into `models`; `prompt` is any code; `halves` counts ties
    and anything else worth half.
    """
    asked = RankingOptions(ties, intervals, level, scale, prior, replicates, seed)
    tally = tally_counts(
        models, model_a, model_b, wins_a=wins_a, wins_b=wins_b, halves=halves, prompt=prompt
    )
    return rank_tally(tally, asked, by_prompt=prompt is not None)


def rank_tally(tally: BattleTally, asked: RankingOptions, *, by_prompt: bool) -> Ranking:
    links = examine(tally.won)
    unsettled = asked.ties == "davidson" and _refuse_or_examine_ties(tally)
    prior = asked.prior if asked.prior is not None else 0.0
    if (not links.strong or unsettled) and not prior:
        if asked.prior is not None:
            raise InputError.of("stats.prior_needed", gaps=describe_gaps(links, tally.models))
        prior = PRIOR
    fit = _fit(tally, asked.ties, prior)
    anchored = fit.strength - fit.strength[links.main].mean()
    clusters = tally.entries.clusters if tally.entries is not None else tally.rows
    reason = None
    uncertainty = None
    if asked.intervals is not None:
        if clusters < 2:
            reason = Message("stats.one_prompt" if by_prompt else "stats.one_battle")
        else:
            uncertainty = measure_uncertainty(fit, tally, links, asked, prior, clusters)
    # Of equal scores, a model without battles comes last.
    order = np.lexsort((-anchored, links.absent, -np.round(anchored, 9))).tolist()
    rows = make_rows(tally, links, asked.scale, anchored, uncertainty, order)
    names = np.array(tally.models, dtype=object)
    ties = _tie_parameter(fit, asked.ties)
    limits = win_limits(anchored, links, uncertainty, order, ties)
    return Ranking(
        models=rows,
        indistinguishable=find_neighbours(tally.models, anchored, uncertainty, order, asked.scale),
        undefeated=tuple(names[links.undefeated]),
        winless=tuple(names[links.winless]),
        never_compared=tuple(names[links.absent]),
        disconnected=tuple(tuple(names[group]) for group in links.groups),
        notes=notes_on(
            links,
            tally,
            prior=prior,
            unsettled=unsettled,
            fit=fit,
            clusters=clusters if uncertainty is not None else None,
            by_prompt=by_prompt,
        ),
        reason=reason,
        ties=asked.ties,
        tie_parameter=ties,
        scale=asked.scale,
        anchor=_anchor(links, asked.scale),
        intervals=asked.intervals,
        level=asked.level,
        clusters="prompt" if by_prompt else "row",
        cluster_count=clusters,
        games=tally.rows,
        prior=prior,
        converged=fit.converged,
        iterations=fit.iterations,
        replicates=asked.replicates if asked.intervals == "bootstrap" else None,
        refitted=None if uncertainty is None else uncertainty.refitted,
        seed=asked.seed if asked.intervals == "bootstrap" else None,
        win_matrix_low=limits[0] if limits else None,
        win_matrix_high=limits[1] if limits else None,
    )


def _refuse_or_examine_ties(tally: BattleTally) -> bool:
    """Whether Davidson's model has no finite estimate although the battles are connected."""
    if tally.fractional:
        raise InputError.of("stats.davidson_preferences")
    if not tally.tied.any():
        return False
    if not tally.wins.any():
        raise InputError.of("stats.davidson_all_ties")
    return not ties_settled(tally.wins, tally.tied)


def _fit(tally: BattleTally, ties: Ties, prior: float) -> Fit:
    if ties == "davidson" and tally.tied.any():
        return fit_davidson(tally.won, tally.tied, prior=prior)
    return fit_bradley_terry(tally.won, prior=prior)


def _tie_parameter(fit: Fit, ties: Ties) -> float | None:
    if ties == "half":
        return None
    return 0.0 if fit.log_ties is None else float(np.exp(fit.log_ties))


def _anchor(links: Connectivity, scale: Scale) -> Message:
    code = "stats.anchor_all" if links.strong else "stats.anchor_group"
    return Message(code, centre=CENTRE if scale == "elo" else 0)
