"""The same-family effect: how much more often judges prefer models of their own family than other
judges or people do on the same pairs.

Scores are of one side of each pair: 1 preferred, 0 not, ½ neither. Each prompt weighs the same, as
in a win rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.messages import Message
from evenhand.stats.clusters import FEWEST_PROMPTS, Labels, label_codes, student_quantile
from evenhand.stats.columns import Floats
from evenhand.stats.estimates import (
    EstimatedValue,
    Jackknife,
    left_out,
    share_like_interval,
    too_few,
)

# The other matchups must show a difference, or the slope of two scores on them is noise divided by
# noise. A square is 1.6 of its standard errors where its root is 3.2: the F of 10 that is asked
# of instruments (Staiger and Stock 1997).
_CLEAR = 1.6
# With fewer prompts, products of two different prompts cannot leave one out.
_FEWEST_TO_MULTIPLY = 3

Integers = NDArray[np.int64]


def preference_difference(
    own: Floats, others: Floats, *, prompts: Labels, level: float
) -> EstimatedValue:
    """The family's score by its own judges minus that by others, on pairs with one side of the
    family: the responses' quality, which all see, cancels out."""
    means = _by_prompt(prompts, own - others)
    count = means.sizes.size
    return _estimated(
        means.sizes,
        left_out(means.value, (count * means.value - means.means) / max(1, count - 1)),
        level=level,
    )


def adjusted_difference(
    own: Floats,
    others: Floats,
    *,
    matchups: Integers,
    prompts: Labels,
    level: float,
) -> EstimatedValue | None:
    """The same as a difference in differences, with `matchups` -1 for the family's pairs and the
    two models' number for other pairs, whose scores are of one of the two models throughout.

    A judge that errs at random is nearer to one half than a careful one, whoever it judges, and so
    seems to be against a strong model of its own. How the two relate is learned on the other
    matchups: the slope b, through the origin, of the win rates by `own` on those by `others`, both
    less one half. The effect is the family's mean by `own` less b times that by `others`. Products
    are of different prompts alone, so that neither noise nor a prompt's own difficulty leans b.
    None where the other matchups do not show a difference clearly enough for b.
    """
    family = matchups < 0
    codes, names = label_codes(prompts)
    size = len(names)
    slope = _slope(own - 0.5, others - 0.5, ~family, matchups=matchups, prompts=codes, size=size)
    if slope is None:
        return None
    mine, theirs = (
        _by_prompt(codes[family], each[family] - 0.5, size=size) for each in (own, others)
    )
    present = mine.sizes > 0
    count = int(present.sum())
    if count < 2:
        return EstimatedValue.missing(too_few(mine.sizes) or Message("stats.pairs_alike"))
    rest = np.maximum(1, count - present)
    without = (mine.total - mine.means) / rest
    without = without - slope.without * (theirs.total - theirs.means) / rest
    value = mine.value - slope.value * theirs.value
    used = present | slope.used
    return _estimated(mine.sizes, left_out(value, without[used]), level=level)


@dataclass(frozen=True, slots=True)
class _PromptMeans:
    """By prompt: the number of rows, and their mean, 0 if there are none."""

    sizes: Floats
    means: Floats

    @property
    def total(self) -> float:
        return float(self.means.sum())

    @property
    def value(self) -> float:
        return self.total / max(1, int((self.sizes > 0).sum()))


def _by_prompt(prompts: Labels, scores: Floats, *, size: int = 0) -> _PromptMeans:
    codes = label_codes(prompts)[0] if not size else np.asarray(prompts)
    sizes = np.bincount(codes, minlength=size).astype(np.float64)
    sums = np.bincount(codes, weights=scores, minlength=size)
    return _PromptMeans(sizes, sums / np.maximum(sizes, 1))


@dataclass(frozen=True, slots=True)
class _Slope:
    value: float
    without: Floats  # each prompt
    used: NDArray[np.bool_]  # the prompts that have a part in it


def _slope(
    own: Floats,
    others: Floats,
    rows: NDArray[np.bool_],
    *,
    matchups: Integers,
    prompts: NDArray[np.intp],
    size: int,
) -> _Slope | None:
    # One cell for each matchup and prompt, with the means of its rows.
    cells, cell = np.unique(matchups[rows] * size + prompts[rows], return_inverse=True)
    within = np.maximum(1, np.bincount(cell, minlength=cells.size))
    x, y = (
        np.bincount(cell, weights=each[rows], minlength=cells.size) / within
        for each in (own, others)
    )
    matchup, prompt = np.unique(cells // size, return_inverse=True)[1], cells % size
    enough = (np.bincount(matchup) >= _FEWEST_TO_MULTIPLY)[matchup] if cells.size else matchup > 0
    if np.unique(prompt[enough]).size < FEWEST_PROMPTS:
        return None
    x, y, prompt = x[enough], y[enough], prompt[enough]
    matchup = np.unique(matchup[enough], return_inverse=True)[1]
    product, product_without = _products(x, y, matchup, prompt, size)
    square, square_without = _products(y, y, matchup, prompt, size)
    used = np.bincount(prompt, minlength=size) > 0
    clear = left_out(square, square_without[used])
    if clear is None or square < _CLEAR * math.sqrt(clear.variance):
        return None
    return _Slope(product / square, product_without / square_without, used)


def _products(
    x: Floats, y: Floats, matchup: NDArray[np.intp], prompt: NDArray[np.int64], size: int
) -> tuple[float, Floats]:
    """The mean of x times the mean of y, summed over matchups weighted by prompts, from products of
    different prompts only; and the same without each prompt."""
    n = np.bincount(matchup).astype(np.float64)
    sum_x, sum_y, both = (np.bincount(matchup, weights=each) for each in (x, y, x * y))
    whole = (sum_x * sum_y - both) / (n - 1)
    less = (sum_x[matchup] - x) * (sum_y[matchup] - y) - (both[matchup] - x * y)
    change = less / (n[matchup] - 2) - whole[matchup]
    total = float(whole.sum())
    changes: Floats = np.bincount(prompt, weights=change, minlength=size).astype(np.float64)
    return total, total + changes


def _estimated(sizes: Floats, estimate: Jackknife | None, *, level: float) -> EstimatedValue:
    reason = too_few(sizes)
    if reason is not None:
        return EstimatedValue.missing(reason)
    if estimate is None:
        return EstimatedValue.missing(Message("stats.pairs_alike"))
    value = estimate.value
    if estimate.variance > 0:
        half = student_quantile(level, estimate.degrees) * math.sqrt(estimate.variance)
        low, high = max(-1.0, value - half), min(1.0, value + half)
    else:
        # All prompts alike: the interval of a share with as many rows as prompts.
        counted = (sizes > 0).astype(np.float64)
        ends = share_like_interval(
            (1 + value) / 2, 0.0, sizes=counted, degrees=estimate.degrees, level=level
        )
        low, high = (2 * end - 1 for end in ends)
    return EstimatedValue(value=value, low=low, high=high, reason=None)
