"""Which models can be told apart, and between which ranks each of them lies.

Two models are told apart where the interval of their difference leaves out 0. For the rank of
one model its differences from all the others are looked at, so that each is taken at the level
that Bonferroni's inequality asks for. The true rank lies between 1 + the number of models told
apart above, and the number of models - those told apart below (Klein, Wright and Wieczorek 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from evenhand.stats.bradley_terry import Matrix


@dataclass(frozen=True, slots=True)
class Ranks:
    better: NDArray[np.bool_]  # [i, j]: i is told apart from j, and above it
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    errors: Matrix  # the standard errors of the differences
    critical: float  # how many of them a difference must have


def quantile(level: float, clusters: int, *, comparisons: int = 1) -> float:
    """Student's, with a degree of freedom less than clusters; `comparisons` share the error."""
    tail = (1 - level) / 2 / max(1, comparisons)
    freedom = clusters - 1
    return float(-stdtrit(freedom, tail) if freedom < 1_000_000 else -ndtri(tail))


def rank_intervals(
    strength: Matrix,
    variances: Matrix,
    *,
    comparable: NDArray[np.bool_] | None,
    level: float,
    clusters: int,
) -> Ranks:
    """`variances[i, j]` is the variance of the difference of i and j."""
    size = len(strength)
    critical = quantile(level, clusters, comparisons=size - 1)
    errors = np.sqrt(np.maximum(variances, 0.0))
    difference = strength[:, None] - strength
    # A variance of 0 is no certainty but battles that never differ, such as ties only.
    better = (difference > critical * errors) & (errors > negligible(strength))
    if comparable is not None:
        better &= comparable
    low = 1 + better.sum(axis=0)
    high = size - better.sum(axis=1)
    return Ranks(better, low, high, errors, critical)


def negligible(strength: Matrix) -> float:
    """Below this a standard error is rounding, not information: a variance of 0 comes out of
    sixteen digits as 1e-16 or so, and one of 1e-12 takes a million million battles."""
    return 1e-6 * max(1.0, math.sqrt(float(np.abs(strength).max(initial=0.0))))


def difference_variances(covariance: Matrix) -> Matrix:
    own = covariance.diagonal()
    return np.asarray(own[:, None] + own - 2 * covariance)
