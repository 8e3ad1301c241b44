"""Length bias: how often the longer answer wins, the win rate at equal length, and how hard each
prompt is for either model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evenhand.contract.codes import INVALID, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.stats.clusters import (
    Labels,
    label_codes,
    not_enough,
    satterthwaite_degrees,
    student_quantile,
)
from evenhand.stats.columns import Floats, float_column
from evenhand.stats.estimates import EstimatedShare, estimate_share
from evenhand.stats.logistic_regression import LogisticFit, fit_logistic
from evenhand.stats.outcomes import Codes, confidence_level, outcome_codes, same_length


class PromptDifficulty:
    """How hard a prompt is for one of two models and how easy for the other, by what the two did
    there against all the others. Made once for all rows of a league, then asked for the rows of
    two models at a time."""

    def __init__(
        self,
        first: NDArray[Any],
        second: NDArray[Any],
        scores: Floats,
        *,
        prompts: NDArray[Any],
        valid: NDArray[np.bool_],
    ) -> None:
        """`first` and `second` are codes of models, `scores` the first's; rows that are not valid
        tell nothing."""
        _, numbers = np.unique(prompts, return_inverse=True)
        models = np.concatenate([first, second]).astype(np.int64)
        keys = models * (int(numbers.max(initial=0)) + 1) + np.tile(numbers, 2)
        # A cell is a model on a prompt; `taken` is what others won from it there.
        _, cells = np.unique(keys, return_inverse=True)
        self._cells = cells.reshape(2, -1)
        self._weights = np.stack([valid, valid]).astype(np.float64)
        self._taken = np.where(valid, np.stack([1 - scores, scores]), 0.0)
        count = int(cells.max(initial=-1)) + 1
        self._all_taken = self._summed(self._cells, self._taken, count)
        self._all_rows = self._summed(self._cells, self._weights, count)

    def of(self, rows: NDArray[np.intp]) -> Floats:
        """How much better each row's first model may be expected to do on its prompt: the smoothed
        log-odds of others against the second, less those against the first. The rows themselves
        are left out, or their outcomes would explain themselves; all must be of the same two
        models. Exchanging the two changes the sign alone."""
        own = self._cells[:, rows]
        kept, places = np.unique(own, return_inverse=True)
        places = places.reshape(own.shape)
        taken = self._all_taken[kept] - self._summed(places, self._taken[:, rows], kept.size)
        count = self._all_rows[kept] - self._summed(places, self._weights[:, rows], kept.size)
        against_first, against_second = logit((taken + 0.5) / (count + 1.0))[places]
        difference: Floats = against_second - against_first
        return difference

    @staticmethod
    def _summed(places: NDArray[Any], weights: Floats, count: int) -> Floats:
        sums: Floats = np.bincount(places.ravel(), weights=weights.ravel(), minlength=count).astype(
            np.float64
        )
        return sums


# The win rate at equal length: a logistic regression on the length difference.

# Below these the interval of a fitted rate leaves its limits (scripts/verify_coverage.py).
FEWEST_FITTED_PAIRS = 20
FEWEST_FITTED_PROMPTS = 10
# Halves alone fit one half without any scatter, which is no certainty.
FEWEST_DECISIVE = 5
# Equal length has to lie inside the data, with some pairs on either side of it.
FEWEST_EACH_SIDE = 5
# Two columns that correlate more than this are one.
MOST_CORRELATION = 0.999


class ControlledRate(Model):
    """A's win rate if both answers had the same length, or the reason why it cannot be told.

    `effect` is the change in A's log-odds when A is one `length_sd` longer than B, against equal
    length. `separated` says that only Firth's penalty kept the fit finite. `caution` goes with
    every rate: it is no win rate without the judge's bias for length.
    """

    model: str | None = None
    n: int
    prompts: int | None
    share_longer: float | None
    length_sd: float | None
    rate: float | None
    low: float | None
    high: float | None
    effect: float | None
    effect_low: float | None
    effect_high: float | None
    difficulty: bool
    penalty: Literal["firth"] = "firth"
    separated: bool | None
    converged: bool | None
    iterations: int | None
    reason: Sentence | None
    caution: Sentence | None = None


@dataclass(frozen=True, slots=True)
class LengthRows:
    """The valid rows: A's score, A's length less B's, the prompt, and difficulty where known."""

    scores: Floats
    differences: Floats
    prompts: NDArray[np.intp]
    difficulty: Floats | None


def controlled_rate(
    rows: LengthRows, *, named_prompts: bool, side: str, level: float
) -> ControlledRate:
    """`side` is what a reason calls A."""
    clusters = int(rows.prompts.max()) + 1 if rows.prompts.size else 0
    scale = float(rows.differences.std()) if rows.differences.size else 0.0
    reason = _unfit(rows, clusters, scale, side=side)
    design = None if reason else _design(rows, scale)
    facts: dict[str, Any] = {
        "n": rows.scores.size,
        "prompts": clusters if named_prompts else None,
        "share_longer": float((rows.differences > 0).mean()) if rows.scores.size else None,
        "length_sd": scale if scale > 0 else None,
        "difficulty": design is not None and design.shape[0] > 2,
    }
    if design is None:
        return _without_rate(facts, reason, fit=None)
    fit = fit_logistic(design, rows.scores, clusters=rows.prompts, count=clusters)
    if not fit.converged:
        return _without_rate(facts, Message("stats.not_converged", steps=fit.iterations), fit=fit)
    equal_length = design.copy()
    equal_length[1] = 0.0
    predicted = expit(fit.coefficients @ equal_length)
    rate = float(predicted.mean())
    slope = (equal_length * (predicted * (1 - predicted))).mean(axis=1)
    # A prompt also moves the mean over prompts by being among them.
    sums = np.bincount(rows.prompts, weights=predicted - rate, minlength=clusters)
    rate_low, rate_high = _logit_interval(
        rate, fit, slope, moved=sums / rows.scores.size, rows=rows, level=level
    )
    one_sd = math.tanh(1.0)
    axis = np.zeros(design.shape[0])
    axis[1] = one_sd
    effect = float(fit.coefficients[1]) * one_sd
    half = _half_width(fit, axis, moved=None, rows=rows, level=level)
    return ControlledRate(
        **facts,
        rate=rate,
        # A regression cannot tell a love of length from answers that are better and longer.
        caution=Message("stats.length_caution"),
        low=rate_low,
        high=rate_high,
        effect=effect,
        effect_low=effect - half,
        effect_high=effect + half,
        separated=fit.separated,
        converged=True,
        iterations=fit.iterations,
        reason=None,
    )


def _design(rows: LengthRows, scale: float) -> Floats:
    """A constant, the squashed length difference, and difficulty where it varies: a row each.

    tanh of the difference in standard deviations, as in length-controlled AlpacaEval (Dubois,
    Galambosi, Liang and Hashimoto 2024): one very long answer cannot steer the fit.
    """
    squashed = np.tanh(rows.differences / scale)
    columns = [np.ones(rows.scores.size), squashed]
    if rows.difficulty is not None and _tells_more(rows.difficulty, squashed):
        columns.append(rows.difficulty - rows.difficulty.mean())
    return np.stack(columns)


def _tells_more(difficulty: Floats, squashed: Floats) -> bool:
    """Difficulty that is constant, or that length gives away, cannot have its own coefficient."""
    if float(difficulty.std()) < 1e-9 or float(squashed.std()) < 1e-9:
        return False
    return abs(float(np.corrcoef(difficulty, squashed)[0, 1])) < MOST_CORRELATION


def _unfit(rows: LengthRows, clusters: int, scale: float, *, side: str) -> str | None:
    """Why these rows cannot carry a fit."""
    if rows.scores.size < FEWEST_FITTED_PAIRS:
        return not_enough(rows.scores.size, "valid pair", FEWEST_FITTED_PAIRS)
    if clusters < FEWEST_FITTED_PROMPTS:
        return not_enough(clusters, "prompt", FEWEST_FITTED_PROMPTS)
    decisive = int((rows.scores != 0.5).sum())
    if decisive < FEWEST_DECISIVE:
        return not_enough(decisive, "decisive pair", FEWEST_DECISIVE)
    if scale <= 0 or float(np.ptp(rows.differences)) == 0.0:
        return Message("stats.length_confounded")
    not_longer = int((rows.differences <= 0).sum())
    not_shorter = int((rows.differences >= 0).sum())
    for have, code in ((not_longer, "stats.all_longer"), (not_shorter, "stats.all_shorter")):
        if have < FEWEST_EACH_SIDE:
            return Message(code, side=side, have=have, n=rows.scores.size, fewest=FEWEST_EACH_SIDE)
    return None


def _without_rate(
    facts: dict[str, Any], reason: str | None, *, fit: LogisticFit | None
) -> ControlledRate:
    return ControlledRate(
        **facts,
        rate=None,
        low=None,
        high=None,
        effect=None,
        effect_low=None,
        effect_high=None,
        separated=None if fit is None else fit.separated,
        converged=None if fit is None else fit.converged,
        iterations=None if fit is None else fit.iterations,
        reason=reason,
    )


def _logit_interval(
    rate: float, fit: LogisticFit, slope: Floats, *, moved: Floats, rows: LengthRows, level: float
) -> tuple[float, float]:
    """On the log-odds scale by the delta method, so that it stays inside 0 and 1."""
    variance = rate * (1 - rate)
    half = _half_width(fit, slope / variance, moved=moved / variance, rows=rows, level=level)
    centre = float(logit(rate))
    return float(expit(centre - half)), float(expit(centre + half))


def _half_width(
    fit: LogisticFit, direction: Floats, *, moved: Floats | None, rows: LengthRows, level: float
) -> float:
    """Of a linear function of the coefficients, plus what each prompt moves besides."""
    shifts = fit.influence @ direction
    if moved is not None:
        shifts = shifts + moved
    degrees = satterthwaite_degrees(shifts, most=float(max(1, shifts.size - direction.size)))
    variance = float((shifts * shifts).sum())
    # With few losses the residuals understate the uncertainty; the model's own variance does not.
    dispersion = min(1.0, fit.dispersion)
    if fit.separated:
        # Residuals near 0 say nothing at all: as if each prompt were one row.
        dispersion = float(np.square(np.bincount(rows.prompts)).sum()) / rows.scores.size
    variance = max(variance, dispersion * float(direction @ fit.model_covariance @ direction))
    return student_quantile(level, degrees) * math.sqrt(variance)


# Do longer answers win, and what is the win rate at equal length?

Lengths: TypeAlias = Sequence[float] | NDArray[Any]

_SCORE_FOR_A = np.array([1.0, 0.0, 0.5, 0.5])


class LengthEffect(Model):
    """How often the longer answer won, and the win rate at equal length."""

    longer_wins: EstimatedShare
    controlled: tuple[ControlledRate, ...]
    clustered: bool
    level: float


def length_effect(
    outcomes: Codes,
    *,
    length_a: Lengths,
    length_b: Lengths,
    prompts: Labels | None = None,
    difficulty: Lengths | None = None,
    side: str = "A",
    level: float = 0.95,
) -> LengthEffect:
    """From each row's outcome and the two lengths, in any unit.

    `difficulty` tells how easy A has it on a row's prompt, in log-odds (see `PromptDifficulty`).
    `side` is what reasons call A.
    """
    confidence_level(level)
    codes = outcome_codes(outcomes)
    same_length(
        codes.size,
        length_a=length_a,
        length_b=length_b,
        prompts=prompts,
        difficulty=difficulty,
    )
    ease = None if difficulty is None else float_column(difficulty, name="difficulty")
    difference = float_column(length_a, name="length_a", low=0) - float_column(
        length_b, name="length_b", low=0
    )
    numbers = np.arange(codes.size) if prompts is None else label_codes(prompts)[0]
    valid = codes != INVALID
    codes, difference, numbers = codes[valid], difference[valid], numbers[valid]
    numbers = label_codes(numbers)[0]
    independent = prompts is None or bool((np.bincount(numbers) <= 1).all())
    scores = _SCORE_FOR_A[codes]
    longer = _longer_wins(codes, difference, numbers, independent=independent, level=level)
    rows = LengthRows(scores, difference, numbers, None if ease is None else ease[valid])
    controlled = controlled_rate(rows, named_prompts=prompts is not None, side=side, level=level)
    return LengthEffect(
        longer_wins=longer, controlled=(controlled,), clustered=not independent, level=level
    )


def _longer_wins(
    codes: NDArray[np.int8],
    difference: Floats,
    prompts: NDArray[np.intp],
    *,
    independent: bool,
    level: float,
) -> EstimatedShare:
    """Of the pairs that somebody won and whose lengths differ, how many the longer won."""
    count = int(prompts.max()) + 1 if prompts.size else 1
    a_longer, b_longer = difference > 0, difference < 0
    won = ((codes == WIN_A) & a_longer) | ((codes == WIN_B) & b_longer)
    lost = ((codes == WIN_A) & b_longer) | ((codes == WIN_B) & a_longer)
    return estimate_share(
        np.bincount(prompts[won], minlength=count).astype(np.float64),
        np.bincount(prompts[lost], minlength=count).astype(np.float64),
        independent=independent,
        level=level,
        unit="decisive, unequally long pair",
    )
