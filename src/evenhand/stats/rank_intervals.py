"""Which models differ significantly, and between which ranks each of them lies.

Two models differ significantly where the interval of their difference leaves out 0. The intervals
of all pairs of models hold together: their critical value is that of Tukey's range of as many
normal values (1953; Kramer 1956 for unequal variances), carried over to Student's t. The true rank
lies between 1 + the number of models significantly better, and the number of models - those
significantly worse (Klein, Wright and Wieczorek 2020): with all differences, all ranks hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from evenhand.stats.bradley_terry import Matrix

_NORMAL = 1_000_000  # degrees of freedom from which Student's t is taken for normal


@dataclass(frozen=True, slots=True)
class Ranks:
    better: NDArray[np.bool_]  # [i, j]: i is significantly better than j
    low: NDArray[np.intp]
    high: NDArray[np.intp]
    errors: Matrix  # the standard errors of the differences
    critical: float  # how many of them a difference must have


def quantile(level: float, freedom: float, *, models: int = 2) -> float:
    """How many standard errors the differences of all pairs of `models` stay within together.

    Each difference has a variance of its own, estimated with so many degrees of freedom: Student's
    t takes the place of the normal distribution for each, with the tail that Tukey's range leaves.
    """
    tail = (1 - level) / 2 if models <= 2 else float(ndtr(-_normal_range(level, models) / 2**0.5))
    return float(-stdtrit(freedom, tail) if freedom < _NORMAL else -ndtri(tail))


@lru_cache(maxsize=256)
def _normal_range(level: float, count: int) -> float:
    """The quantile of the range of independent standard normal values (Tukey's q for known
    variances), by bisection; the trapezoidal rule is exact to rounding for such integrands."""
    highest = np.linspace(-9.0, 9.0, 721)
    below = ndtr(highest)
    density = np.exp(-(highest**2) / 2)
    density *= count * (highest[1] - highest[0]) / math.sqrt(2 * math.pi)
    low, high = 0.0, 60.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        within = density @ (below - ndtr(highest - middle)) ** (count - 1)
        low, high = (middle, high) if within < level else (low, middle)
    return (low + high) / 2


def rank_intervals(
    strength: Matrix,
    variances: Matrix,
    *,
    comparable: NDArray[np.bool_] | None,
    level: float,
    freedom: float,
) -> Ranks:
    """`variances[i, j]` is the variance of the difference of i and j."""
    size = len(strength)
    # A model that is comparable with itself alone is in no difference.
    compared = size if comparable is None else int((comparable.sum(axis=0) > 1).sum())
    critical = quantile(level, freedom, models=compared)
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
