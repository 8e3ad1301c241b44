"""The win rate at equal length: a logistic regression on the length difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evenhand.contract.model import Model
from evenhand.stats.clusters import NORMAL_KURTOSIS, Floats, student_quantile
from evenhand.stats.logistic import LogisticFit, fit_logistic
from evenhand.stats.win_rate import not_enough

# Below these the interval of a fitted rate leaves its limits (scripts/verify_coverage.py).
FEWEST_FITTED_PAIRS = 20
FEWEST_FITTED_PROMPTS = 10
# Equal length has to lie inside the data, with some pairs on either side of it.
FEWEST_EACH_SIDE = 5
# Two columns that correlate more than this are one.
MOST_CORRELATION = 0.999

# A regression cannot tell a judge that likes length from answers that are better and longer.
CAUTION = (
    "lower for the side that writes more also where longer answers are better: with the bias for "
    "length it takes out what length is worth"
)


class ControlledRate(Model):
    """A's win rate if both answers had the same length, or the reason why it cannot be told.

    `effect` is the change in A's log-odds when A is one `length_sd` longer than B, against equal
    length. `separated` says that only Firth's penalty kept the fit finite. `caution` goes with
    every rate: it is no win rate without the judge's bias for length.
    """

    model: str | None
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
    reason: str | None
    caution: str | None = None


@dataclass(frozen=True, slots=True)
class LengthRows:
    """The valid rows: A's score, A's length less B's, the prompt, and difficulty where known."""

    scores: Floats
    differences: Floats
    prompts: NDArray[np.intp]
    difficulty: Floats | None


def controlled_rate(
    model: str | None, rows: LengthRows, *, named_prompts: bool, side: str, level: float
) -> ControlledRate:
    """`side` is what a reason calls A."""
    clusters = int(rows.prompts.max()) + 1 if rows.prompts.size else 0
    scale = float(rows.differences.std()) if rows.differences.size else 0.0
    reason = _unfit(rows, clusters, scale, side=side)
    design = None if reason else _design(rows, scale)
    facts: dict[str, Any] = {
        "model": model,
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
        return _without_rate(facts, f"the fit did not converge in {fit.iterations} steps", fit=fit)
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
        caution=CAUTION,
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
    if scale <= 0 or float(np.ptp(rows.differences)) == 0.0:
        return "length and model cannot be told apart: every pair has the same length difference"
    not_longer = int((rows.differences <= 0).sum())
    not_shorter = int((rows.differences >= 0).sum())
    for have, word in ((not_longer, "longer"), (not_shorter, "shorter")):
        if have < FEWEST_EACH_SIDE:
            return (
                f"length and model cannot be told apart: {side} is {word} in all but {have} of "
                f"{rows.scores.size} pairs; at least {FEWEST_EACH_SIDE} others are needed"
            )
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
    squares = shifts * shifts
    variance, quartic = float(squares.sum()), float((squares * squares).sum())
    degrees = float(max(1, shifts.size - direction.size))
    if quartic > 0:
        degrees = min(degrees, max(2.0, NORMAL_KURTOSIS * variance * variance / quartic - 1))
    # With few losses the residuals understate the uncertainty; the model's own variance does not.
    dispersion = min(1.0, fit.dispersion)
    if fit.separated:
        # Residuals near 0 say nothing at all: as if each prompt were one row.
        dispersion = float(np.square(np.bincount(rows.prompts)).sum()) / rows.scores.size
    variance = max(variance, dispersion * float(direction @ fit.model_covariance @ direction))
    return student_quantile(level, degrees) * math.sqrt(variance)
