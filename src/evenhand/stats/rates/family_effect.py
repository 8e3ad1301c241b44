"""The same-family effect: how much oftener judges prefer the models of their own family than others
do on the same pairs, whether these are other judges or people.

Scores are of one side of each pair: 1 where it is preferred, 0 where the other is, ½ for neither.
Each prompt weighs the same, as in a win rate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenhand.messages import Message
from evenhand.stats.clusters import (
    FEWEST_PAIRS,
    FEWEST_PROMPTS,
    Labels,
    label_codes,
    student_quantile,
)
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import (
    EstimatedValue,
    Figure,
    jackknife,
    share_like_interval,
    too_few,
)


def effect_between_judges(
    own: Floats, others: Floats, *, prompts: Labels, level: float
) -> EstimatedValue:
    """A difference in differences: the own side's score with the judges of its family less that
    with others, on pairs of which one side is the family's. The quality of the responses, which
    all of them see, cancels out."""
    every = np.ones(own.size, dtype=np.bool_)
    sums, sizes = _by_prompt(prompts, every, own - others)
    return _estimate(sums, lambda totals: totals[:, 1] / totals[:, 0], sizes, level=level)


def can_adjust(labels: Floats, other: NDArray[np.bool_], prompts: Labels) -> bool:
    """Whether there are enough labelled pairs of other families to learn how the judge follows
    labels."""
    decided = other & (labels != 0.5)
    clusters = label_codes(prompts)[0][decided]
    return clusters.size >= FEWEST_PAIRS and np.unique(clusters).size >= FEWEST_PROMPTS


def effect_beyond_labels(
    judged: Floats,
    labels: Floats,
    *,
    own: NDArray[np.bool_],
    prompts: Labels,
    level: float,
) -> EstimatedValue:
    """The judge less people: of `own` rows the score is that of the family's side, of the others
    that of either side.

    A judge that errs at random is nearer to one half than people are, whoever it judges. What it
    makes of a label is learned on the other pairs: the slope b, through the origin, of its scores
    on people's, both centred, which does not depend on the side taken. The effect is the judge's
    mean less b times people's, on the own pairs. Where `can_adjust` says no, b is 1.
    """
    mine, label = judged - 0.5, labels - 0.5
    adjusts = can_adjust(labels, ~own, prompts)
    sums, sizes = _by_prompt(prompts, own, mine, label)
    others, _ = _by_prompt(prompts, ~own, mine * label, label * label)
    together = np.concatenate([sums, others[:, 1:]], axis=1)

    def figure(totals: Floats) -> Floats:
        count, judge, people, product, square = totals.T
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = product / square if adjusts else np.ones_like(count)
            effect: Floats = (judge - slope * people) / count
        return effect

    used = (sums[:, 0] > 0) | ((others[:, 0] > 0) & adjusts)
    return _estimate(together[used], figure, sizes[used], level=level)


def _by_prompt(prompts: Labels, rows: NDArray[np.bool_], *columns: Floats) -> tuple[Floats, Floats]:
    """A line for each prompt: 1 where it has such rows, and their means; and how many there are."""
    codes, names = label_codes(prompts)
    sizes = np.bincount(codes[rows], minlength=len(names)).astype(np.float64)
    most = np.maximum(sizes, 1)
    means = [
        np.bincount(codes[rows], weights=column[rows], minlength=len(names)) / most
        for column in columns
    ]
    return np.stack([(sizes > 0).astype(np.float64), *means], axis=1), sizes


def _estimate(sums: Floats, figure: Figure, sizes: Floats, *, level: float) -> EstimatedValue:
    reason = too_few(sizes)
    if reason is not None:
        return EstimatedValue.missing(reason)
    estimate = jackknife(sums, figure)
    if estimate is None:
        return EstimatedValue.missing(Message("stats.pairs_alike"))
    value = estimate.value
    if estimate.variance > 0:
        half = student_quantile(level, estimate.degrees) * math.sqrt(estimate.variance)
        low, high = max(-1.0, value - half), min(1.0, value + half)
    else:
        # No two prompts differ: the interval of a share that has as many rows as prompts.
        counted = (sizes > 0).astype(np.float64)
        ends = share_like_interval(
            (1 + value) / 2, 0.0, sizes=counted, degrees=estimate.degrees, level=level
        )
        low, high = (2 * end - 1 for end in ends)
    return EstimatedValue(value=value, low=low, high=high, reason=None)
