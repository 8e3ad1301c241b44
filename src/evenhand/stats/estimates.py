"""A share or another figure of rows clustered by prompt, with its interval or the reason why there
is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.stats.clusters import (
    FEWEST_PAIRS,
    FEWEST_PROMPTS,
    SMALLEST_DESIGN_EFFECT,
    normal_quantile,
    not_enough,
    row_clusters,
    satterthwaite_degrees,
    score_spread,
    student_quantile,
)
from evenhand.stats.columns import Floats
from evenhand.stats.intervals import score_interval


class EstimatedValue(Model):
    value: float | None
    low: float | None
    high: float | None
    reason: Sentence | None

    @classmethod
    def missing(cls, reason: str) -> EstimatedValue:
        return cls(value=None, low=None, high=None, reason=reason)


class EstimatedShare(EstimatedValue):
    """`part` of `of` pairs."""

    part: int
    of: int


def estimate_share(
    part: Floats, rest: Floats, *, independent: bool, level: float, unit: str
) -> EstimatedShare:
    """From each prompt's counts of the part and the rest."""
    score = estimate_score(part, 0 * part, rest, independent=independent, level=level, unit=unit)
    some = float(part.sum())
    return EstimatedShare(
        part=int(some),
        of=int(some + float(rest.sum())),
        value=score.value,
        low=score.low,
        high=score.high,
        reason=score.reason,
    )


def estimate_score(
    wins: Floats, halves: Floats, losses: Floats, *, independent: bool, level: float, unit: str
) -> EstimatedValue:
    """The share of wins, halves counting half, from each prompt's counts."""
    sizes = wins + halves + losses
    reason = _too_few_counts(sizes, independent=independent, unit=unit)
    if reason is not None:
        return EstimatedValue.missing(reason)
    effect, critical = 1.0, normal_quantile(level)
    if not independent:
        present = sizes > 0
        spread = score_spread(wins[present], halves[present], losses[present])
        # Counts are divided by the design effect, as Korn and Graubard (1998) do.
        effect = spread.design_effect
        critical = student_quantile(level, spread.degrees)
    won, half, lost = (float(each.sum()) for each in (wins, halves, losses))
    low, high = score_interval(won / effect, half / effect, lost / effect, critical=critical)
    value = (won + half / 2) / (won + half + lost)
    return EstimatedValue(value=value, low=low, high=high, reason=None)


def share_of_rows(
    part: NDArray[np.bool_], prompts: NDArray[Any], *, level: float, unit: str
) -> EstimatedShare:
    """Clustered by prompt if prompts repeat."""
    clusters, count, independent = row_clusters(prompts, np.ones(part.size, dtype=np.bool_))
    hits = np.bincount(clusters[part], minlength=count).astype(np.float64)
    rest = np.bincount(clusters[~part], minlength=count).astype(np.float64)
    return estimate_share(hits, rest, independent=independent, level=level, unit=unit)


def _too_few_counts(sizes: Floats, *, independent: bool, unit: str) -> str | None:
    """Prompts count by Kish's number (1965): a few large ones among many small ones are few."""
    total = float(sizes.sum())
    if total < FEWEST_PAIRS:
        return not_enough(int(total), unit, FEWEST_PAIRS)
    prompts = int((sizes > 0).sum())
    if independent:
        return None
    if prompts < FEWEST_PROMPTS:
        return not_enough(prompts, "prompt", FEWEST_PROMPTS)
    effective = total * total / float(sizes @ sizes)
    if effective < FEWEST_PROMPTS:
        return not_enough(int(effective), "effective prompt", FEWEST_PROMPTS)
    return None


# From sums (a row per set of clusters, a column per sum) to one figure a row; NaN if undefined.
Figure: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Jackknife:
    """A figure of all clusters, its variance and that variance's degrees of freedom."""

    value: float
    variance: float
    degrees: float


def jackknife(sums: Floats, figure: Figure) -> Jackknife | None:
    """Leave out each cluster once (CR3; MacKinnon, Nielsen and Webb 2023).

    Deviations are from the figure of all clusters. None if the figure is undefined with or without
    a cluster.
    """
    total = sums.sum(axis=0)
    return left_out(float(figure(total[np.newaxis, :])[0]), figure(total - sums))


def left_out(value: float, without: Floats) -> Jackknife | None:
    """From the figure of all clusters, and the figures without each."""
    clusters = without.size
    if clusters < 2 or not math.isfinite(value):
        return None
    deviations = without - value
    spread = float((deviations * deviations).sum())
    if not math.isfinite(spread):
        return None
    return Jackknife(
        value=value,
        variance=(clusters - 1) / clusters * spread,
        degrees=satterthwaite_degrees(deviations, most=float(clusters - 1)),
    )


def too_few(sizes: Floats) -> str | None:
    """Why clusters of these sizes allow no interval."""
    rows, clusters = int(sizes.sum()), int((sizes > 0).sum())
    if rows < FEWEST_PAIRS:
        return not_enough(rows, "pair", FEWEST_PAIRS)
    if clusters < FEWEST_PROMPTS:
        return not_enough(clusters, "prompt", FEWEST_PROMPTS)
    return None


def share_like_interval(
    share: float, variance: float, *, sizes: Floats, degrees: float, level: float
) -> tuple[float, float]:
    """The score interval of a figure between 0 and 1 with this variance.

    The figure is read as a share of as many rows as give a binomial share that variance (the
    effective size of Korn and Graubard 1998): near 0 and 1 the interval is properly skewed, and it
    never shrinks to a point.
    """
    rows = float(sizes.sum())
    binomial = share * (1 - share)
    if binomial <= 0 or variance <= 0:
        # All rows alike: the scatter of prompts is unknown, so a prompt counts as one row.
        effective = rows * rows / float((sizes * sizes).sum())
    else:
        effective = min(binomial / variance, rows / SMALLEST_DESIGN_EFFECT)
    return score_interval(
        effective * share,
        0.0,
        effective * (1 - share),
        critical=student_quantile(level, degrees),
    )


def mean_of_rows(
    values: Floats, *, clusters: NDArray[np.intp], count: int, level: float
) -> EstimatedValue:
    """The mean of one number a row with Student's interval, clustered."""
    sizes = np.bincount(clusters, minlength=count).astype(np.float64)
    sums = np.stack([np.bincount(clusters, weights=values, minlength=count), sizes], axis=1)
    return figure_of_sums(
        sums[sizes > 0], lambda totals: totals[:, 0] / totals[:, 1], sizes=sizes, level=level
    )


def figure_of_sums(sums: Floats, figure: Figure, *, sizes: Floats, level: float) -> EstimatedValue:
    """Any smooth figure of sums with Student's interval."""
    reason = too_few(sizes)
    if reason is not None:
        return EstimatedValue.missing(reason)
    estimate = jackknife(sums, figure)
    if estimate is None:
        return EstimatedValue.missing(Message("stats.pairs_alike"))
    half = student_quantile(level, estimate.degrees) * math.sqrt(estimate.variance)
    value = estimate.value
    return EstimatedValue(value=value, low=value - half, high=value + half, reason=None)
