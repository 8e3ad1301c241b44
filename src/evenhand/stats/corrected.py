"""The win rate corrected for the judge's errors by some human labels, with a valid interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.clusters import Floats, Labels, label_codes
from evenhand.stats.judge_weight import tune_judge_weight
from evenhand.stats.label_columns import HumanLabels, gather_labels, mask_column, score_column
from evenhand.stats.outcomes import code_array, confidence_level, same_length
from evenhand.stats.score_interval import rate_of_difference
from evenhand.stats.weighted_mean import Rows, WeightedMean, weighted_mean
from evenhand.stats.win_rate import FEWEST_PAIRS, FEWEST_PROMPTS, not_enough

Drawn: TypeAlias = Literal["at random", "with known chances"]

# Below this a slope between judge and people says nothing, and people alone hardly more.
FEWEST_LABELLED = 10
# How large an error of the judge that no label has shown yet is taken to be, beyond the people's
# own score: 1 is always a contrary verdict. Chosen by simulation: at 1 the intervals of good
# judges cover 98 to 100 %, and at 0.5 they cover 93 to 99 %.
UNSEEN_ERROR = 0.5


class RateEstimate(Model):
    """A's rate with its interval, or the reason why there is none."""

    n: int
    prompts: int
    rate: float | None
    low: float | None
    high: float | None
    reason: str | None


class ExcludedLabels(Model):
    """Labels that were not used, by reason; a pair counts where no usable label is left."""

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
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Part:
    """Scores from -1 to 1, so that exchanging A and B turns signs and nothing else."""

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
    judge = 2.0 * score_column(judge_scores, name="judge_scores") - 1.0
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
    """A's scores for winners 0 A, 1 B, 2 tie and -1 none, and which of them are no -1."""
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
    # A prompt that has labels moves both means. Where the weight is the slope of least variance
    # and rows are independent the two do not go together; where it was shrunk they do.
    labelled_prompt = np.zeros(own_rows.prompts, dtype=np.intp)
    labelled_prompt[own_rows.prompt] = prompt[people.rows]
    together = 2.0 * weight * float(errors.influence @ judged.influence[labelled_prompt])
    share = max(weight * weight, weight * weight + together / judged.variance)
    joined = _side_by_side(errors, judged, weight=weight, share=share)
    # Errors that no label has shown can make the interval wider than people's own, where nearly
    # all labels are wins, or ties. Then the judge has nothing to add.
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
    # The estimate itself may leave the range where the judge's mean moves it.
    mean = min(1.0, max(-1.0, mean))
    return _Part(mean=mean, low=max(-1.0, mean - below), high=min(1.0, mean + above))


def _people_only(
    people: HumanLabels, prompt: NDArray[np.intp], *, level: float
) -> tuple[RateEstimate, Rows]:
    codes, labels = label_codes(prompt[people.rows])
    # Against the smallest chance, so that no weight is beyond what can be squared.
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
    found = weighted_mean(scores, rows, ends=(-1.0, 1.0), level=level)
    part = _Part(mean=found.mean, low=found.low, high=found.high)
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
