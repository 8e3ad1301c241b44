"""Bradley–Terry rankings of battles or of counts, with their intervals and their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from evenhand.errors import InputError
from evenhand.stats.battles import tally_battles
from evenhand.stats.bradley_terry import Fit, fit_bradley_terry
from evenhand.stats.connectivity import Connections, examine, ties_settled
from evenhand.stats.counts import tally_counts
from evenhand.stats.davidson import fit_davidson
from evenhand.stats.ranking_notes import describe, notes_on
from evenhand.stats.ranking_result import Intervals, Ranking, Scale, Ties
from evenhand.stats.ranking_rows import find_neighbours, make_rows, win_limits
from evenhand.stats.ranking_uncertainty import Asked, measure_uncertainty
from evenhand.stats.tally import Tally

PRIOR = 1.0
_LEAST_PRIOR = 1e-6


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
    `prompt` belong together in the intervals. With `models`, the first two columns may be places
    among them. `prior` None takes a prior only where the battles alone give no finite scores.
    """
    asked = _asked(ties, intervals, level, scale, prior, replicates, seed)
    tally = tally_battles(
        model_a,
        model_b,
        winner,
        prompt=prompt,
        weight=weight,
        models=models,
        keep_rows=intervals == "bootstrap",
    )
    return _rank(tally, asked, by_prompt=prompt is not None)


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

    `model_a` and `model_b` are places in `models`; `prompt` is any code of the prompt; `halves`
    counts ties and whatever else is worth half.
    """
    asked = _asked(ties, intervals, level, scale, prior, replicates, seed)
    tally = tally_counts(
        models, model_a, model_b, wins_a=wins_a, wins_b=wins_b, halves=halves, prompt=prompt
    )
    return _rank(tally, asked, by_prompt=prompt is not None)


def _asked(
    ties: Ties,
    intervals: Intervals | None,
    level: float,
    scale: Scale,
    prior: float | None,
    replicates: int,
    seed: int,
) -> Asked:
    for name, value, kinds in (
        ("ties", ties, get_args(Ties)),
        ("intervals", intervals, (*get_args(Intervals), None)),
        ("scale", scale, get_args(Scale)),
    ):
        if value not in kinds:
            taken = ", ".join(map(repr, kinds))
            raise InputError(f"{name} is {value!r}; it takes one of {taken}")
    if not 0 < level < 1:
        raise InputError(f"level is {level}; it takes a share between 0 and 1, e.g. 0.95")
    # Less than that is nothing beside a battle, and leaves the equations without a solution.
    if prior and not _LEAST_PRIOR <= prior < float("inf"):
        raise InputError(
            f"prior is {prior}; it takes a number of virtual ties: 0, or from {_LEAST_PRIOR}"
        )
    if replicates < 100:
        raise InputError(f"replicates is {replicates}; an interval takes at least 100")
    return Asked(ties, intervals, level, scale, prior, replicates, seed)


def _rank(tally: Tally, asked: Asked, *, by_prompt: bool) -> Ranking:
    links = examine(tally.won)
    unsettled = asked.ties == "davidson" and _refuse_or_examine_ties(tally)
    prior = asked.prior if asked.prior is not None else 0.0
    if (not links.strong or unsettled) and not prior:
        if asked.prior is not None:
            raise InputError(
                "prior is 0, but the battles alone give no finite scores "
                f"({describe(links, tally.models)}); leave prior out, or give a positive one"
            )
        prior = PRIOR
    fit = _fit(tally, asked.ties, prior)
    anchored = fit.strength - fit.strength[links.main].mean()
    clusters = tally.entries.clusters if tally.entries is not None else tally.rows
    reason = None
    uncertainty = None
    if asked.intervals is not None:
        if clusters < 2:
            kind = "prompt" if by_prompt else "battle"
            reason = f"not enough data for intervals: 1 {kind}; at least 2 are needed"
        else:
            uncertainty = measure_uncertainty(fit, tally, links, asked, prior, clusters)
    # Of equal scores the one that nothing is known of comes last.
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


def _refuse_or_examine_ties(tally: Tally) -> bool:
    """Whether Davidson's model has no finite estimate although the battles are connected."""
    if tally.fractional:
        raise InputError(
            "Davidson's model takes wins and ties, and winner holds other preferences than 0, "
            '0.5 and 1; use ties="half"'
        )
    if not tally.tied.any():
        return False
    if not tally.wins.any():
        raise InputError(
            'every battle is a tie, and Davidson\'s model needs one that is not; use ties="half"'
        )
    return not ties_settled(tally.wins, tally.tied)


def _fit(tally: Tally, ties: Ties, prior: float) -> Fit:
    if ties == "davidson" and tally.tied.any():
        return fit_davidson(tally.won, tally.tied, prior=prior)
    return fit_bradley_terry(tally.won, prior=prior)


def _tie_parameter(fit: Fit, ties: Ties) -> float | None:
    if ties == "half":
        return None
    return 0.0 if fit.log_ties is None else float(np.exp(fit.log_ties))


def _anchor(links: Connections, scale: Scale) -> str:
    where = "1000" if scale == "elo" else "0"
    if links.strong:
        return f"the mean log-odds of all models is {where}"
    return f"the mean log-odds of the largest connected group of models is {where}"
