"""Length bias: how often the longer answer wins, the win rate at equal length, and each prompt's
difficulty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
from evenhand.stats.distributions import expit, logit
from evenhand.stats.estimates import EstimatedShare, estimate_share
from evenhand.stats.logistic_regression import LogisticFit, fit_logistic
from evenhand.stats.outcomes import Codes, confidence_level, outcome_codes, same_length


class PromptDifficulty:
    """How much easier a prompt is for one of two models than for the other, by what both did there
    against all others. Made once for all rows of a league, then queried for the rows of two models.
    """

    def __init__(
        self,
        first: NDArray[Any],
        second: NDArray[Any],
        scores: Floats,
        *,
        prompts: NDArray[Any],
        valid: NDArray[np.bool_],
    ) -> None:
        """`first` and `second` are codes of models, `scores` the first's; valid rows count."""
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
        """How much better each row's first model should do on its prompt: the smoothed log-odds of
        others against the second, minus those against the first. The rows themselves are left out,
        or their outcomes would explain themselves; all must be of the same two models. Exchanging
        the two only changes the sign."""
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

# With fewer, the interval of a fitted rate misses its level (scripts/verify_coverage.py).
FEWEST_FITTED_PAIRS = 20
FEWEST_FITTED_PROMPTS = 10
# Ties alone fit one half without scatter, which is not certainty.
FEWEST_DECISIVE = 5
# Equal length must lie inside the data, with some pairs on either side.
FEWEST_EACH_SIDE = 5
Form: TypeAlias = Literal["linear", "log_ratio", "sign"]
# Columns with a higher correlation are the same.
MOST_CORRELATION = 0.999


class LengthForm(Model):
    """One form of the length effect: the difference in length, the ratio, or only which answer is
    longer.

    `rate` is A's at equal length, or None if equal length lies outside the data. `effect` is the
    change in A's log-odds if A is one standard deviation longer (`sign`: longer at all), relative
    to equal length. Its interval is at the level 1 - alpha / 2: with any of three forms showing an
    effect, they err together about as often as one test at alpha. `lift` is what length adds to A's
    log-odds on average over the pairs.
    """

    form: Form
    rate: float | None
    low: float | None
    high: float | None
    effect: float
    effect_low: float
    effect_high: float
    lift: float
    separated: bool


class ControlledRate(Model):
    """A's win rate if both answers had the same length, or why it is unknown.

    The rate is the linear form's; `low` and `high` cover the intervals of all forms, since the
    judge's is unknown. `effect` is the linear form's, at the requested level. `separated` says that
    only Firth's penalty kept a fit finite. `caution` accompanies every rate: it is not a win rate
    free of length bias.
    """

    model: str | None = None
    n: int
    prompts: int | None
    share_longer: float | None
    share_shorter: float | None = None
    length_sd: float | None
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    difficulty: bool
    penalty: Literal["firth"] = "firth"
    separated: bool | None = None
    converged: bool | None = None
    iterations: int | None = None
    reason: Sentence | None = None
    caution: Sentence | None = None
    forms: tuple[LengthForm, ...] = ()

    def explains(self, claim: Literal["above", "below"]) -> bool:
        """Whether length may fully explain a rate above, or below, one half: a significant effect
        of length favours the claim, and at equal length the claim does not hold."""
        sign = 1 if claim == "above" else -1
        helped = any(
            form.effect_low * form.effect_high > 0 and sign * form.lift > 0 for form in self.forms
        )
        if not helped:
            return False
        if self.low is None or self.high is None:
            return True  # nothing can be told of equal length
        return self.low <= 0.5 if claim == "above" else self.high >= 0.5


@dataclass(frozen=True, slots=True)
class LengthRows:
    """The valid rows: A's score, the two lengths, the prompt, and difficulty if known."""

    scores: Floats
    length_a: Floats
    length_b: Floats
    prompts: NDArray[np.intp]
    difficulty: Floats | None

    @property
    def differences(self) -> Floats:
        return self.length_a - self.length_b


@dataclass(frozen=True, slots=True)
class _Fitted:
    fit: LogisticFit
    form: LengthForm
    effect: tuple[float, float]  # at the level asked for
    difficulty: bool


def controlled_rate(
    rows: LengthRows, *, named_prompts: bool, side: str, level: float
) -> ControlledRate:
    """`side` is A's name in reasons."""
    clusters = int(rows.prompts.max()) + 1 if rows.prompts.size else 0
    differences = rows.differences
    scale = float(differences.std()) if differences.size else 0.0
    unfit = _unfit(rows, clusters, scale)
    reason = unfit or _no_overlap(differences, side=side)
    fitted = [] if unfit else _fit_forms(rows, clusters, level=level, rates=reason is None)
    facts: dict[str, Any] = {
        "n": rows.scores.size,
        "prompts": clusters if named_prompts else None,
        "share_longer": float((differences > 0).mean()) if differences.size else None,
        "share_shorter": float((differences < 0).mean()) if differences.size else None,
        "length_sd": scale if scale > 0 else None,
        "difficulty": any(each.difficulty for each in fitted),
        "forms": tuple(each.form for each in fitted if each.fit.converged),
    }
    linear = fitted[0] if fitted and reason is None else None
    if linear is None:
        return ControlledRate(**facts, reason=reason)
    fit = linear.fit
    if not fit.converged:
        facts |= {"converged": False, "iterations": fit.iterations, "separated": fit.separated}
        reason = Message("stats.not_converged", steps=fit.iterations)
        return ControlledRate(**facts, reason=reason)
    lows = [form.low for form in facts["forms"] if form.low is not None]
    highs = [form.high for form in facts["forms"] if form.high is not None]
    return ControlledRate(
        **facts,
        rate=linear.form.rate,
        # A regression cannot distinguish a preference for length from answers that are better and
        # longer.
        caution=Message("stats.length_caution"),
        low=min(lows),
        high=max(highs),
        effect=linear.form.effect,
        effect_low=linear.effect[0],
        effect_high=linear.effect[1],
        separated=any(form.separated for form in facts["forms"]),
        converged=True,
        iterations=fit.iterations,
    )


def _fit_forms(rows: LengthRows, clusters: int, *, level: float, rates: bool) -> list[_Fitted]:
    """Each form that varies, the linear one first; a constant log-ratio leaves the sign."""
    forms: list[_Fitted] = []
    for name, column in _columns(rows, centred=not rates).items():
        if float(np.ptp(column)) > 0:
            design = _design(rows, column)
            fit = fit_logistic(design, rows.scores, clusters=rows.prompts, count=clusters)
            forms.append(_fitted(name, rows, design, fit, level=level, with_rate=rates))
    return forms


def _fitted(
    name: Form,
    rows: LengthRows,
    design: Floats,
    fit: LogisticFit,
    *,
    level: float,
    with_rate: bool,
) -> _Fitted:
    rate = low = high = None
    if with_rate:
        rate, low, high = _rate_at_equal_length(rows, design, fit, level=level)
    # tanh squashes one standard deviation; a sign is one already.
    one_sd = 1.0 if name == "sign" else math.tanh(1.0)
    axis = np.zeros(design.shape[0])
    axis[1] = one_sd
    effect = float(fit.coefficients[1]) * one_sd
    half, wider = (
        _half_width(fit, axis, moved=None, rows=rows, level=each) for each in (level, _each(level))
    )
    form = LengthForm(
        form=name,
        rate=rate,
        low=low,
        high=high,
        effect=effect,
        effect_low=effect - wider,
        effect_high=effect + wider,
        lift=float(fit.coefficients[1]) * float(np.sign(rows.differences).mean()),
        separated=fit.separated,
    )
    return _Fitted(fit, form, (effect - half, effect + half), design.shape[0] > 2)


def _each(level: float) -> float:
    return 1 - (1 - level) / 2


def _rate_at_equal_length(
    rows: LengthRows, design: Floats, fit: LogisticFit, *, level: float
) -> tuple[float, float, float]:
    equal_length = design.copy()
    equal_length[1] = 0.0
    predicted = expit(fit.coefficients @ equal_length)
    rate = float(predicted.mean())
    slope = (equal_length * (predicted * (1 - predicted))).mean(axis=1)
    # A prompt also moves the mean over prompts by being among them.
    sums = np.bincount(rows.prompts, weights=predicted - rate)
    moved = sums / rows.scores.size
    return rate, *_logit_interval(rate, fit, slope, moved=moved, rows=rows, level=level)


def _columns(rows: LengthRows, *, centred: bool) -> dict[Form, Floats]:
    """The difference and log-ratio in standard deviations, squashed by tanh as in length-controlled
    AlpacaEval (Dubois, Galambosi, Liang and Hashimoto 2024), so that one very long answer cannot
    dominate the fit; and which is longer. `centred` if nothing is asked about equal length, which
    may be many standard deviations away."""
    difference = rows.differences
    ratio = np.log1p(rows.length_a) - np.log1p(rows.length_b)

    def squashed(values: Floats) -> Floats:
        from_where = float(values.mean()) if centred else 0.0
        return np.tanh((values - from_where) / (float(values.std()) or 1.0))

    return {
        "linear": squashed(difference),
        "log_ratio": squashed(ratio),
        "sign": np.sign(difference),
    }


def _design(rows: LengthRows, column: Floats) -> Floats:
    """Rows: a constant, a form of the length difference, and difficulty if it varies."""
    columns = [np.ones(rows.scores.size), column]
    if rows.difficulty is not None and _adds_information(rows.difficulty, column):
        columns.append(rows.difficulty - rows.difficulty.mean())
    return np.stack(columns)


def _adds_information(difficulty: Floats, squashed: Floats) -> bool:
    """Difficulty that is constant, or determined by length, cannot have its own coefficient."""
    if float(difficulty.std()) < 1e-9 or float(squashed.std()) < 1e-9:
        return False
    return abs(float(np.corrcoef(difficulty, squashed)[0, 1])) < MOST_CORRELATION


def _unfit(rows: LengthRows, clusters: int, scale: float) -> str | None:
    """Why these rows allow no fit."""
    if rows.scores.size < FEWEST_FITTED_PAIRS:
        return not_enough(rows.scores.size, "valid pair", FEWEST_FITTED_PAIRS)
    if clusters < FEWEST_FITTED_PROMPTS:
        return not_enough(clusters, "prompt", FEWEST_FITTED_PROMPTS)
    decisive = int((rows.scores != 0.5).sum())
    if decisive < FEWEST_DECISIVE:
        return not_enough(decisive, "decisive pair", FEWEST_DECISIVE)
    if scale <= 0 or float(np.ptp(rows.differences)) == 0.0:
        return Message("stats.length_confounded")
    return None


def _no_overlap(differences: Floats, *, side: str) -> str | None:
    """Why a fit says nothing about equal length."""
    not_longer = int((differences <= 0).sum())
    not_shorter = int((differences >= 0).sum())
    for have, code in ((not_longer, "stats.all_longer"), (not_shorter, "stats.all_shorter")):
        if have < FEWEST_EACH_SIDE:
            return Message(code, side=side, have=have, n=differences.size, fewest=FEWEST_EACH_SIDE)
    return None


def _logit_interval(
    rate: float, fit: LogisticFit, slope: Floats, *, moved: Floats, rows: LengthRows, level: float
) -> tuple[float, float]:
    """On the log-odds scale by the delta method, to stay within 0 and 1."""
    variance = rate * (1 - rate)
    half = _half_width(fit, slope / variance, moved=moved / variance, rows=rows, level=level)
    centre = float(logit(rate))
    return float(expit(centre - half)), float(expit(centre + half))


def _half_width(
    fit: LogisticFit, direction: Floats, *, moved: Floats | None, rows: LengthRows, level: float
) -> float:
    """For a linear function of the coefficients, plus each prompt's own effect."""
    shifts = fit.influence @ direction
    if moved is not None:
        shifts = shifts + moved
    degrees = satterthwaite_degrees(shifts, most=float(max(1, shifts.size - direction.size)))
    variance = float((shifts * shifts).sum())
    # With few losses the residuals understate the uncertainty; the model's own variance does not.
    dispersion = min(1.0, fit.dispersion)
    if fit.separated:
        # Residuals near 0 carry no information: as if each prompt were one row.
        dispersion = float(np.square(np.bincount(rows.prompts)).sum()) / rows.scores.size
    variance = max(variance, dispersion * float(direction @ fit.model_covariance @ direction))
    return student_quantile(level, degrees) * math.sqrt(variance)


Lengths: TypeAlias = Sequence[float] | NDArray[Any]

_SCORE_FOR_A = np.array([1.0, 0.0, 0.5, 0.5])


class LengthEffect(Model):
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

    `difficulty` is how easy A has it on a row's prompt, in log-odds (see `PromptDifficulty`).
    `side` is A's name in reasons.
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
    of_a = float_column(length_a, name="length_a", low=0)
    of_b = float_column(length_b, name="length_b", low=0)
    numbers = np.arange(codes.size) if prompts is None else label_codes(prompts)[0]
    valid = codes != INVALID
    codes, of_a, of_b, numbers = codes[valid], of_a[valid], of_b[valid], numbers[valid]
    numbers = label_codes(numbers)[0]
    independent = prompts is None or bool((np.bincount(numbers) <= 1).all())
    scores = _SCORE_FOR_A[codes]
    longer = _longer_wins(codes, of_a - of_b, numbers, independent=independent, level=level)
    rows = LengthRows(scores, of_a, of_b, numbers, None if ease is None else ease[valid])
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
    """Of the decided pairs with different lengths, how many the longer answer won."""
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
