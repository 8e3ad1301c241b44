"""The win rate corrected for the judge's errors by some human labels (prediction-powered
inference), with a valid interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.messages import Sentence
from evenhand.stats.clusters import (
    FEWEST_PAIRS,
    FEWEST_PROMPTS,
    SMALLEST_DESIGN_EFFECT,
    Labels,
    label_codes,
    normal_quantile,
    not_enough,
    satterthwaite_degrees,
    student_quantile,
)
from evenhand.stats.columns import Floats, float_column, mask_column
from evenhand.stats.correction.labels import HumanLabels, gather_labels
from evenhand.stats.intervals import ROUNDING, mean_interval, rate_of_difference
from evenhand.stats.outcomes import code_array, confidence_level, same_length


@dataclass(frozen=True, slots=True)
class WeightedMean:
    """`influence` is minus the change of the mean without each prompt."""

    mean: float
    variance: float
    low: float
    high: float
    influence: Floats


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a mean: their prompts (of `prompts` in all) and weights."""

    prompt: NDArray[np.intp]
    weight: Floats
    prompts: int

    @property
    def simple(self) -> bool:
        alone = self.prompt.size == 0 or int(np.bincount(self.prompt).max()) <= 1
        return alone and bool((self.weight == self.weight[0]).all())


def weighted_mean(
    values: Floats, rows: Rows, *, ends: tuple[float, float], level: float, learned: bool = False
) -> WeightedMean:
    """Hájek's mean (1971) with the jackknife's variance over prompts (CR3) and a score interval.

    The interval is that of as many independent rows as have the same variance. Identical rows say
    nothing about the scatter of prompts: they are worth their weights' Kish number (1965).
    Residuals of a `learned` slope have Student's t; plain scores need none.
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
        critical = student_quantile(
            level, satterthwaite_degrees(influence, most=float(present - 1))
        )
    low, high = mean_interval(values, weight, ends=ends, size=size, critical=critical)
    return WeightedMean(mean=mean, variance=variance, low=low, high=high, influence=influence)


# Below this the judge gave every row the same score, up to rounding.
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class JudgeWeight:
    """Each labelled row's weight, learned without the rows of its prompt."""

    of_row: Floats
    mean: float


def tune_judge_weight(people: Floats, judge: Floats, *, rows: Rows, chance: Floats) -> JudgeWeight:
    """The weight of least variance (Angelopoulos, Duchi and Zrnic 2023), shrunk, within 0 and 1.

    The variance of the mean of people - weight * judge, drawn with the given chances, is least at
    the slope of a regression whose rows weigh (1 - chance) / chance^2; with all drawn there is
    nothing to gain, and the weight is 0. A slope learned from a few rows fits their noise, which
    biases the rate and makes its interval too short: so each prompt's rows use the slope of the
    others. And a slope that is no larger than its own error is not used at all: it shrinks by
    1 - 1 / t^2, t being its t-statistic (the positive part of James and Stein 1961).
    """
    count = rows.prompts
    spare = (1.0 - chance) * (float(chance.min(initial=1.0)) / chance) ** 2
    if not spare.any():
        return JudgeWeight(of_row=np.zeros_like(people), mean=0.0)
    spare = spare / spare.max()

    def others(terms: Floats) -> Floats:
        """The sum over all other prompts, for each."""
        own = np.bincount(rows.prompt, weights=terms, minlength=count)
        rest: Floats = own.sum() - own
        return rest

    centre_people = float(rows.weight @ people) / float(rows.weight.sum())
    centre_judge = float(rows.weight @ judge) / float(rows.weight.sum())
    own_people, own_judge = people - centre_people, judge - centre_judge
    weights = others(rows.weight)
    mean_people = others(rows.weight * own_people) / weights
    mean_judge = others(rows.weight * own_judge) / weights
    whole = others(spare)
    sum_people, sum_judge = others(spare * own_people), others(spare * own_judge)

    def about_means(terms: Floats, first: Floats, second: Floats, means: Floats) -> Floats:
        moment: Floats = others(terms) - first - second + whole * means
        return moment

    shared = about_means(
        spare * own_people * own_judge,
        sum_people * mean_judge,
        sum_judge * mean_people,
        mean_people * mean_judge,
    )
    judge_square = about_means(
        spare * own_judge * own_judge, sum_judge * mean_judge, sum_judge * mean_judge, mean_judge**2
    )
    people_square = about_means(
        spare * own_people * own_people,
        sum_people * mean_people,
        sum_people * mean_people,
        mean_people**2,
    )
    by_prompt = np.bincount(rows.prompt, weights=spare, minlength=count)
    worth = float(by_prompt.sum()) ** 2 / float(by_prompt @ by_prompt)
    slope = _shrunk_slope(shared, judge_square, people_square, worth=worth)
    of_row = slope[rows.prompt]
    return JudgeWeight(of_row=of_row, mean=float(rows.weight @ of_row) / float(rows.weight.sum()))


def _shrunk_slope(
    shared: Floats, judge_square: Floats, people_square: Floats, *, worth: float
) -> Floats:
    known = (judge_square > TINY) & (shared > 0)
    slope = np.where(known, shared, 0.0) / np.where(known, judge_square, 1.0)
    explained = slope * shared
    unexplained = np.maximum(people_square - explained, 0.0) / max(worth - 3.0, 1.0)
    kept = 1.0 - unexplained / np.where(known, explained, 1.0)
    shrunk: Floats = np.clip(slope * np.maximum(kept, 0.0), 0.0, 1.0)
    return shrunk


Drawn: TypeAlias = Literal["at random", "with known chances"]

# Below this a slope between judge and people means nothing, and people's scores hardly more.
FEWEST_LABELLED = 10
# How large an error of the judge that no label has shown yet is taken to be, beyond the people's
# own score: 1 is always a contrary verdict. Chosen by simulation: at 1 the intervals of good
# judges cover 98 to 100%, and at 0.5 they cover 93 to 99%.
UNSEEN_ERROR = 0.5


class RateEstimate(Model):
    n: int
    prompts: int
    rate: float | None
    low: float | None
    high: float | None
    reason: Sentence | None


class ExcludedLabels(Model):
    """Labels not used, by reason; counts pairs without any usable label."""

    escalated: int
    undecided: int
    pairs: int


class CorrectedRate(Model):
    """A's win rate in people's eyes over `pairs` pairs, of which people saw `labelled`.

    `corrected` joins both, `uncorrected` is the judge's alone and `people_only` the labels'.
    `judge_weight` is how much of the judge went in: 0 makes it people's alone. `gain` is how
    many times as many labels people alone would need for as short an interval: the ratio of the
    two widths, squared. (That of the estimated variances would be endless where the few labels
    have shown no error of the judge.)
    """

    corrected: RateEstimate
    uncorrected: RateEstimate
    people_only: RateEstimate
    judge_weight: float | None
    gain: float | None
    labelled: int
    labels: int
    pairs: int
    judge_unread: int
    excluded: ExcludedLabels
    drawn: Drawn
    clustered: bool
    level: float
    reason: Sentence | None


@dataclass(frozen=True, slots=True)
class _Part:
    """Scores from -1 to 1, so that exchanging A and B only changes signs."""

    mean: float
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def corrected_win_rate(
    judge_scores: Any,
    label_pairs: Any,
    *,
    label_scores: Any,
    prompts: Labels | None = None,
    judge_read: Any = None,
    chances: Any = None,
    escalated: Any = None,
    label_decided: Any = None,
    level: float = 0.95,
) -> CorrectedRate:
    """Prediction-powered inference with a tuned weight (Angelopoulos, Duchi and Zrnic 2023).

    `judge_scores` are A's, from 0 to 1, one for each pair. Each label names its pair's row and
    has its own score; several for a pair count as their mean. `chances` has every pair's known
    chance of being drawn for labelling, where they differ. Labels that are `escalated` came
    because the judge was unsure: they are no random draw and are left out. So are labels that
    are not `label_decided`. A pair that the judge has not `judge_read` counts one half in its
    prediction, which is valid as any prediction is, and is left out of the uncorrected rate.
    """
    confidence_level(level)
    judge = 2.0 * float_column(judge_scores, name="judge_scores", low=0, high=1) - 1.0
    pairs = judge.size
    same_length(pairs, prompts=prompts)
    read = mask_column(judge_read, pairs, name="judge_read", default=True)
    judge = np.where(read, judge, 0.0)
    people = gather_labels(
        label_pairs,
        label_scores,
        pairs=pairs,
        chances=chances,
        escalated=escalated,
        decided=label_decided,
    )
    prompt = np.arange(pairs) if prompts is None else label_codes(prompts)[0]
    count = int(prompt.max()) + 1 if pairs else 0
    alone, own_rows = _people_only(people, prompt, level=level)
    judged = _judge_only(judge, prompt, read, level=level)
    corrected, weight, gain, reason = None, None, None, alone.reason
    if reason is None and people.rows.size < FEWEST_LABELLED:
        reason = not_enough(people.rows.size, "labelled pair", FEWEST_LABELLED)
    if reason is None:
        part, weight, gain = _join(
            people, judge, prompt=prompt, count=count, own_rows=own_rows, level=level
        )
        corrected = _estimate(part, n=pairs, prompts=count)
    return CorrectedRate(
        corrected=corrected or _without(pairs, count, reason),
        uncorrected=judged,
        people_only=alone,
        judge_weight=weight,
        gain=gain,
        labelled=people.rows.size,
        labels=people.labels,
        pairs=pairs,
        judge_unread=int(pairs - read.sum()),
        excluded=ExcludedLabels(
            escalated=people.escalated, undecided=people.undecided, pairs=people.lost_pairs
        ),
        drawn="at random" if chances is None else "with known chances",
        clustered=count < pairs,
        level=level,
        reason=reason,
    )


def winner_scores(winners: Any) -> tuple[Floats, NDArray[np.bool_]]:
    """A's scores for winners 0 A, 1 B, 2 tie and -1 none, and which are not -1."""
    codes = code_array(winners, name="winners", low=-1, high=2)
    return np.array([1.0, 0.0, 0.5, 0.5])[codes], codes >= 0


def _join(
    people: HumanLabels,
    judge: Floats,
    *,
    prompt: NDArray[np.intp],
    count: int,
    own_rows: Rows,
    level: float,
) -> tuple[_Part, float, float]:
    """The corrected rate, the judge's weight in it, and its gain over people alone."""
    alone = weighted_mean(people.scores, own_rows, ends=(-1.0, 1.0), level=level)
    without = _Part(alone.mean, alone.low, alone.high), 0.0, 1.0
    predicted = judge[people.rows]
    tuned = tune_judge_weight(people.scores, predicted, rows=own_rows, chance=people.chances)
    weight = tuned.mean
    if weight <= 0:
        return without
    reach = 1.0 + UNSEEN_ERROR * weight
    residuals = people.scores - tuned.of_row * predicted
    errors = weighted_mean(residuals, own_rows, ends=(-reach, reach), level=level, learned=True)
    every = Rows(prompt=prompt, weight=np.ones(judge.size), prompts=count)
    judged = weighted_mean(judge, every, ends=(-1.0, 1.0), level=level)
    if judged.variance <= 0:
        return without
    # Prompts with labels move both means. With the slope of least variance and independent rows the
    # two are uncorrelated; with a shrunk one they are correlated.
    labelled_prompt = np.zeros(own_rows.prompts, dtype=np.intp)
    labelled_prompt[own_rows.prompt] = prompt[people.rows]
    together = 2.0 * weight * float(errors.influence @ judged.influence[labelled_prompt])
    share = max(weight * weight, weight * weight + together / judged.variance)
    joined = _side_by_side(errors, judged, weight=weight, share=share)
    # Unseen errors can make the interval wider than people's own, if nearly all labels are wins, or
    # ties. Then the judge adds nothing.
    if joined.width > alone.high - alone.low:
        return without
    return joined, weight, ((alone.high - alone.low) / joined.width) ** 2


def _side_by_side(
    errors: WeightedMean, judged: WeightedMean, *, weight: float, share: float
) -> _Part:
    """Two intervals into one for the sum: distances add as squares (Zou and Donner 2008)."""
    mean = weight * judged.mean + errors.mean
    scale = math.sqrt(share)
    below = math.hypot(errors.mean - errors.low, scale * (judged.mean - judged.low))
    above = math.hypot(errors.high - errors.mean, scale * (judged.high - judged.mean))
    # The judge's mean may move the estimate itself out of range.
    mean = min(1.0, max(-1.0, mean))
    return _Part(mean=mean, low=max(-1.0, mean - below), high=min(1.0, mean + above))


def _people_only(
    people: HumanLabels, prompt: NDArray[np.intp], *, level: float
) -> tuple[RateEstimate, Rows]:
    codes, labels = label_codes(prompt[people.rows])
    # Relative to the smallest chance, so that no square of a weight overflows.
    least = float(people.chances.min(initial=1.0))
    rows = Rows(prompt=codes, weight=least / people.chances, prompts=len(labels))
    return _mean_rate(people.scores, rows, unit="labelled pair", level=level), rows


def _judge_only(
    judge: Floats, prompt: NDArray[np.intp], read: NDArray[np.bool_], *, level: float
) -> RateEstimate:
    codes, labels = label_codes(prompt[read])
    rows = Rows(prompt=codes, weight=np.ones(codes.size), prompts=len(labels))
    return _mean_rate(judge[read], rows, unit="judged pair", level=level)


def _mean_rate(scores: Floats, rows: Rows, *, unit: str, level: float) -> RateEstimate:
    if scores.size < FEWEST_PAIRS:
        return _without(scores.size, rows.prompts, not_enough(scores.size, unit, FEWEST_PAIRS))
    if rows.prompts < FEWEST_PROMPTS:
        reason = not_enough(rows.prompts, "prompt", FEWEST_PROMPTS)
        return _without(scores.size, rows.prompts, reason)
    mean = weighted_mean(scores, rows, ends=(-1.0, 1.0), level=level)
    part = _Part(mean=mean.mean, low=mean.low, high=mean.high)
    return _estimate(part, n=scores.size, prompts=rows.prompts)


def _estimate(part: _Part, *, n: int, prompts: int) -> RateEstimate:
    return RateEstimate(
        n=n,
        prompts=prompts,
        rate=rate_of_difference(part.mean),
        low=rate_of_difference(max(-1.0, part.low)),
        high=rate_of_difference(min(1.0, part.high)),
        reason=None,
    )


def _without(n: int, prompts: int, reason: str | None) -> RateEstimate:
    return RateEstimate(n=n, prompts=prompts, rate=None, low=None, high=None, reason=reason)
