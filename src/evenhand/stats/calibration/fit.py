"""Calibration learned on labelled verdicts: a logistic curve of their signals if the labels support
one, else the base rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence
from evenhand.stats.calibration.curves import (
    Constant,
    Curve,
    Logistic,
    Signals,
    constant_log_evidence,
    fit_constant,
    fit_logistic_signals,
    right_or_wrong,
    signal_columns,
    varies,
)
from evenhand.stats.clusters import Labels, label_codes
from evenhand.stats.columns import Floats
from evenhand.stats.outcomes import same_length

Method: TypeAlias = Literal["auto", "logistic"]

METHODS: tuple[Method, ...] = ("auto", "logistic")
# The prior of a slope in standard units has a standard deviation of 0.3 to 1.8: slopes of the
# recorded judges lie between 0 and 2.5 (scripts/verify_calibrated_runs.py).
PENALTIES = (10.0, 3.0, 1.0, 0.3)
# "Positive" evidence (Kass and Raftery 1995). Of 1, 3, 10, 30 and other methods it is what other
# families of judges on other pairs choose (scripts/verify_calibrated_runs.py).
LEAST_BAYES_FACTOR = 3.0
# Every recorded judge was learned on at least as many; fewer were not measured.
FEWEST_PROMPTS = 30
# Laplace's approximation needs a few of either kind.
FEWEST_OF_EACH = 3
FOLDS = 5


class Candidate(Model):
    """A curve that was tried, and its log Bayes factor against the base rate."""

    signals: tuple[str, ...]
    bent: bool
    penalty: float
    log_bayes_factor: float


class Calibration(Model):
    """A fitted curve with what it was learned on; `predict` gives probabilities of being right.

    `log_bayes_factor` is that of the curves as a whole against the base rate: all candidates have
    equal prior probability. `reason` says why it is a constant although a curve was requested. No
    prediction is nearer to 0 or 1 than `floor`, the limit of what `n` rows can show.
    """

    curve: Curve
    method: Method
    signals: tuple[str, ...]
    unused: tuple[str, ...]
    n: int
    right: int
    prompts: int
    base_rate: float
    floor: float
    log_bayes_factor: float | None
    candidates: tuple[Candidate, ...]
    reason: Sentence | None

    @property
    def goes_by(self) -> tuple[str, ...]:
        """The signals that the curve uses; none for a constant."""
        match self.curve:
            case Constant():
                return ()
            case Logistic(signals=parts):
                return tuple(part.signal for part in parts)

    def can_tell(self, signals: Signals) -> NDArray[np.bool_]:
        """The rows with one of its signals; all of them for a constant."""
        columns = signal_columns(signals)
        rows = next((column.size for column in columns.values()), 0)
        known = np.full(rows, isinstance(self.curve, Constant))
        for name in self.goes_by:
            if name in columns:
                known |= ~np.isnan(columns[name])
        return known

    def predict(self, signals: Signals) -> Floats:
        """One probability a row; a signal not given is missing in every row."""
        columns = signal_columns(signals)
        rows = next((column.size for column in columns.values()), 0)
        for name in self.signals:
            columns.setdefault(name, np.full(rows, np.nan))
        predicted: Floats = self.curve.predict(columns, rows=rows)
        return np.clip(predicted, self.floor, 1 - self.floor)


def fit_calibration(
    correct: Sequence[Any] | NDArray[Any],
    signals: Signals,
    *,
    prompts: Labels | None = None,
    method: Method = "auto",
    least_bayes_factor: float = LEAST_BAYES_FACTOR,
) -> Calibration:
    """Learn from labelled verdicts: whether each was right, and its signals (None is missing).

    Candidates are logistic curves of each signal and of all, straight and bent, with weak to strong
    priors on their slopes. `auto` takes the one with the most evidence if the labels support it
    `least_bayes_factor` times as well as the base rate, else the base rate; `logistic` always takes
    it. A prompt's rows together count as one.
    """
    if method not in METHODS:
        raise InputError.of("stats.method_unknown", method=method, methods=list(METHODS))
    right = right_or_wrong(correct)
    same_length(right.size, prompts=prompts)
    if right.size == 0:
        raise InputError.of("stats.no_labelled_verdicts")
    columns = signal_columns(signals, rows=right.size)
    groups = np.arange(right.size) if prompts is None else label_codes(prompts)[0]
    count = int(groups.max()) + 1
    used = {name: column for name, column in columns.items() if varies(column)}
    reason = _too_little(right, count, used)
    candidates: tuple[Candidate, ...] = ()
    factor = None
    curve: Curve = fit_constant(right)
    if reason is None:
        tried = list(_candidates(used, right, weight=count / right.size))
        candidates = tuple(candidate for candidate, _ in tried)
        factors = [candidate.log_bayes_factor for candidate in candidates]
        factor = float(np.logaddexp.reduce(factors)) - math.log(len(factors))
        if method == "logistic" or factor >= math.log(least_bayes_factor):
            curve = tried[int(np.argmax(factors))][1]
        else:
            reason = Message("stats.no_evidence", factor=math.exp(factor), least=least_bayes_factor)
    return Calibration(
        curve=curve,
        method=method,
        signals=tuple(columns),
        unused=tuple(name for name in columns if name not in used),
        n=right.size,
        right=int(right.sum()),
        prompts=count,
        base_rate=float(right.mean()),
        floor=1 / (right.size + 2),
        log_bayes_factor=factor,
        candidates=candidates,
        reason=reason,
    )


def _candidates(
    used: dict[str, Floats], right: Floats, *, weight: float
) -> Iterator[tuple[Candidate, Logistic]]:
    base = constant_log_evidence(right, weight=weight)
    alone = [{name: column} for name, column in used.items()]
    for columns in alone if len(alone) == 1 else [*alone, used]:
        for bent in (False, True):
            fits = fit_logistic_signals(
                columns, right, penalties=PENALTIES, bent=bent, weight=weight
            )
            for curve, evidence in fits:
                yield (
                    Candidate(
                        signals=tuple(columns),
                        bent=bent,
                        penalty=curve.penalty,
                        log_bayes_factor=evidence - base,
                    ),
                    curve,
                )


def prompt_folds(
    groups: NDArray[np.intp], count: int, *, folds: int, seed: int
) -> NDArray[np.intp]:
    """A fold for each row: prompts in random order, cut into parts of nearly equal rows."""
    order = np.random.default_rng(seed).permutation(count)
    sizes = np.bincount(groups, minlength=count)[order]
    before = np.cumsum(sizes) - sizes
    of_prompt = np.empty(count, dtype=np.intp)
    of_prompt[order] = before * folds // groups.size
    return of_prompt[groups]


def cross_fitted(
    correct: Sequence[Any] | NDArray[Any],
    signals: Signals,
    *,
    prompts: Labels | None = None,
    method: Method = "auto",
    seed: int = 0,
) -> Floats:
    """For each row, the probability by a calibration that never saw its prompt.

    For `calibration_error` without other labels: a calibration's errors on its own labels would be
    too small.
    """
    right = right_or_wrong(correct)
    same_length(right.size, prompts=prompts)
    columns = signal_columns(signals, rows=right.size)
    groups = np.arange(right.size) if prompts is None else label_codes(prompts)[0]
    count = int(groups.max(initial=-1)) + 1
    if count < 2:
        raise InputError.of("stats.prompts_inseparable", count=count)
    fold = prompt_folds(groups, count, folds=min(count, FOLDS), seed=seed + 1)
    predicted = np.empty(right.size)
    for number in range(int(fold.max()) + 1):
        out = fold == number
        inner = fit_calibration(
            right[~out],
            {name: column[~out] for name, column in columns.items()},
            prompts=groups[~out],
            method=method,
        )
        predicted[out] = inner.predict({name: column[out] for name, column in columns.items()})
    return predicted


def _too_little(right: Floats, prompts: int, used: dict[str, Floats]) -> str | None:
    rights, wrongs = int(right.sum()), int(right.size - right.sum())
    if not used:
        return Message("stats.no_signal")
    if prompts < FEWEST_PROMPTS:
        return Message("stats.few_labelled", prompts=prompts, fewest=FEWEST_PROMPTS)
    if min(rights, wrongs) < FEWEST_OF_EACH:
        return Message("stats.few_of_each", rights=rights, wrongs=wrongs, fewest=FEWEST_OF_EACH)
    return None
