"""A weighted mean of rows that share prompts: its variance, and how many rows it is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.bounded_mean import ROUNDING, mean_interval
from evenhand.stats.clusters import (
    NORMAL_KURTOSIS,
    SMALLEST_DESIGN_EFFECT,
    Floats,
    normal_quantile,
    student_quantile,
)


@dataclass(frozen=True, slots=True)
class WeightedMean:
    """`influence` is how far leaving out each prompt moves the mean, with its sign turned."""

    mean: float
    variance: float
    low: float
    high: float
    influence: Floats


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows a mean is of: their prompts (of `prompts` in all), and what each weighs."""

    prompt: NDArray[np.intp]
    weight: Floats
    prompts: int

    @property
    def simple(self) -> bool:
        """Independent rows of equal weight."""
        alone = self.prompt.size == 0 or int(np.bincount(self.prompt).max()) <= 1
        return alone and bool((self.weight == self.weight[0]).all())


def weighted_mean(
    values: Floats, rows: Rows, *, ends: tuple[float, float], level: float, learned: bool = False
) -> WeightedMean:
    """Hájek's mean (1971) with the jackknife's variance over prompts (CR3) and a score interval.

    The interval is that of as many independent rows as have the same variance. Rows that are all
    alike cannot tell how prompts scatter: then they are worth their weights' Kish number (1965).
    Values that are residuals of a `learned` slope have Student's t; plain scores need none.
    """
    weight, number = rows.weight, values.size
    total = float(weight.sum())
    mean = float(weight @ values) / total
    residuals = values - mean
    sums = np.bincount(rows.prompt, weights=weight * residuals, minlength=rows.prompts)
    weights = np.bincount(rows.prompt, weights=weight, minlength=rows.prompts)
    present = int((weights > 0).sum())
    influence: Floats = sums / (total - weights) * np.sqrt((present - 1) / present)
    variance = float(influence @ influence)
    independent = float(weight @ (residuals * residuals)) / total / (number - 1)
    critical = normal_quantile(level)
    if independent <= ROUNDING:
        size = total * total / float(weights @ weights)
    elif rows.simple:
        size = float(number)
        if learned:
            critical = student_quantile(level, float(number - 2))
    else:
        size = number / max(SMALLEST_DESIGN_EFFECT, variance / independent)
        critical = student_quantile(level, _degrees(influence, present))
    low, high = mean_interval(values, weight, ends=ends, size=size, critical=critical)
    return WeightedMean(mean=mean, variance=variance, low=low, high=high, influence=influence)


def _degrees(influence: Floats, present: int) -> float:
    """Satterthwaite's (1946) with the kurtosis estimated, as for the win rate by prompts."""
    squares = influence * influence
    quartic = float((squares * squares).sum())
    if quartic <= 0:  # every prompt has the same mean
        return float(present - 1)
    concentrated = NORMAL_KURTOSIS * float(squares.sum()) ** 2 / quartic - 1
    return min(float(present - 1), max(2.0, concentrated))
