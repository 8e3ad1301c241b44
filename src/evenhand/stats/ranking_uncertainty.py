"""The limits of a ranking's scores, and the ranges of its ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.bootstrap import bootstrap
from evenhand.stats.bradley_terry import Fit, Matrix
from evenhand.stats.connectivity import Connections
from evenhand.stats.rank_intervals import (
    Ranks,
    difference_variances,
    negligible,
    quantile,
    rank_intervals,
)
from evenhand.stats.ranking_result import Intervals, Scale, Ties
from evenhand.stats.sandwich import inverse_information, sandwich
from evenhand.stats.tally import Tally


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller wants of a ranking."""

    ties: Ties
    intervals: Intervals | None
    level: float
    scale: Scale
    prior: float | None
    replicates: int
    seed: int


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Limits of each log-odds, NaN where there are none, and the ranges of the ranks."""

    low: Matrix
    high: Matrix
    ranks: Ranks
    refitted: int | None = None


def measure_uncertainty(
    fit: Fit, tally: Tally, links: Connections, asked: Asked, prior: float, clusters: int
) -> Uncertainty:
    refitted = drawn = None
    main = links.main
    freedom = clusters - 1.0
    if asked.intervals == "bootstrap":
        rng = np.random.default_rng(asked.seed)
        made = bootstrap(fit, tally, prior=prior, replicates=asked.replicates, rng=rng)
        drawn = made.strengths - made.strengths[:, main].mean(axis=1)[:, None]
        refitted = made.refitted
        covariance = np.cov(drawn, rowvar=False)
        # A variance of few replicates is as uncertain as one of few clusters; the two add up.
        freedom = 1 / (1 / freedom + 1 / (asked.replicates - 1))
    else:
        covariance = sandwich(fit, tally)
    size = len(fit.strength)
    anchoring = np.eye(size) - np.where(main, 1 / main.sum(), 0.0)
    covariance = anchoring @ covariance @ anchoring.T
    variances = difference_variances(covariance)
    own = covariance.diagonal().copy()
    if prior:
        # An undefeated model's battles hardly scatter: take the model's own variance if larger.
        expected = anchoring @ inverse_information(fit)[:size, :size] @ anchoring.T
        own = np.maximum(own, expected.diagonal())
        variances = np.maximum(variances, difference_variances(expected))
    strength = fit.strength - fit.strength[main].mean()
    error = np.sqrt(np.maximum(own, 0.0))
    reach = quantile(asked.level, freedom) * error
    low, high = strength - reach, strength + reach
    if drawn is not None and not prior:
        tail = (1 - asked.level) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    none = error <= negligible(strength)
    if not links.strong:
        beyond = ~(main | links.above | links.below) | (main & (main.sum() == 1))
        low[beyond | links.below | links.winless] = np.nan
        high[beyond | links.above | links.undefeated] = np.nan
    low[none] = high[none] = np.nan
    ranks = rank_intervals(
        strength, variances, comparable=links.comparable, level=asked.level, freedom=freedom
    )
    return Uncertainty(low, high, ranks, refitted)
