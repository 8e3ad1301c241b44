"""Calibration learned on labelled verdicts: candidates from the simplest on, compared by
cross-validation, and the curve that is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    curve_weight,
    fit_constant,
    fit_isotonic,
    fit_logistic_signals,
    fit_platt,
    right_or_wrong,
    signal_columns,
    tempered,
    varies,
)
from evenhand.stats.clusters import Labels, label_codes
from evenhand.stats.columns import Floats
from evenhand.stats.outcomes import same_length

Method: TypeAlias = Literal["auto", "isotonic", "platt", "logistic"]
Kind: TypeAlias = Literal["constant", "isotonic", "platt", "logistic"]

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
# A simpler curve is taken where its cross-validated loss is no more than this many standard
# errors above the best. A whole standard error would throw away good signals below 100 prompts,
# none at all would learn noise half of the time where there is nothing to learn.
PARSIMONY = 0.5


class Candidate(Model):
    """A curve that was tried: its cross-validated log loss, and how far that is above the best."""

    kind: Kind
    signals: tuple[str, ...]
    penalty: float | None
    log_loss: float
    excess: float
    excess_error: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """A curve yet to be fitted."""

    kind: Kind
    signals: tuple[str, ...] = ()
    penalty: float | None = None

    def fit(self, columns: dict[str, Floats], right: Floats) -> Curve:
        own = {name: columns[name] for name in self.signals if varies(columns[name])}
        if not own:
            return fit_constant(right)
        if self.kind == "logistic":
            return fit_logistic_signals(own, right, penalty=self.penalty or 1.0)[0]
        name, column = next(iter(own.items()))
        fit = fit_isotonic if self.kind == "isotonic" else fit_platt
        return fit(name, column, right)


def prompt_folds(
    groups: NDArray[np.intp], count: int, *, folds: int, seed: int
) -> NDArray[np.intp]:
    """A fold for each row: prompts in a random order, cut where the rows are evenly parted."""
    order = np.random.default_rng(seed).permutation(count)
    sizes = np.bincount(groups, minlength=count)[order]
    before = np.cumsum(sizes) - sizes
    of_prompt = np.empty(count, dtype=np.intp)
    of_prompt[order] = before * folds // groups.size
    return of_prompt[groups]


def recipes_for(method: Method, names: tuple[str, ...]) -> list[Recipe]:
    """From the simplest on."""
    recipes: list[Recipe] = []
    if method == "auto":
        recipes.append(Recipe("constant"))
    if method in ("auto", "platt"):
        recipes += [Recipe("platt", (name,)) for name in names]
    if method in ("auto", "isotonic"):
        recipes += [Recipe("isotonic", (name,)) for name in names]
    if method == "logistic" or (method == "auto" and len(names) > 1):
        recipes += [Recipe("logistic", names, penalty) for penalty in reversed(PENALTIES)]
    return recipes


def fold_predictions(
    recipes: list[Recipe], columns: dict[str, Floats], right: Floats, *, fold: NDArray[np.intp]
) -> list[Floats]:
    """The probability of each row by each recipe, fitted without the row's fold."""
    predictions = [np.empty(right.size) for _ in recipes]
    for number in range(int(fold.max()) + 1):
        out = fold == number
        inside, hits = {name: column[~out] for name, column in columns.items()}, right[~out]
        outside = {name: column[out] for name, column in columns.items()}
        floor = 1 / (hits.size + 2)
        for recipe, predicted in zip(recipes, predictions, strict=True):
            chances = recipe.fit(inside, hits).predict(outside, rows=int(out.sum()))
            predicted[out] = np.clip(chances, floor, 1 - floor)
    return predictions


def choose_recipe(
    recipes: list[Recipe],
    predictions: list[Floats],
    right: Floats,
    *,
    groups: NDArray[np.intp],
    count: int,
    parsimonious: bool,
) -> tuple[int, tuple[Candidate, ...]]:
    """The number of the chosen one, by log loss, and how each did."""
    losses = [-np.log(np.where(right > 0, each, 1 - each)) for each in predictions]
    means = [float(loss.mean()) for loss in losses]
    best = int(np.argmin(means))
    candidates = []
    for recipe, loss, mean in zip(recipes, losses, means, strict=True):
        # Prompts are independent of one another, rows of a prompt are not.
        apart = np.bincount(groups, weights=loss - losses[best] - (mean - means[best]))
        error = float(np.sqrt((apart * apart).sum() * count / (count - 1))) / groups.size
        candidates.append(
            Candidate(
                kind=recipe.kind,
                signals=recipe.signals,
                penalty=recipe.penalty,
                log_loss=mean,
                excess=mean - means[best],
                excess_error=error,
            )
        )
    chosen = best
    if parsimonious:
        near = [one.excess <= PARSIMONY * one.excess_error for one in candidates]
        # Among penalties the best one stands: a stronger one than needed blunts every signal.
        simplest = near.index(True)
        if recipes[simplest].kind != recipes[best].kind or recipes[best].kind != "logistic":
            chosen = simplest
    return chosen, tuple(candidates)


METHODS = ("auto", "isotonic", "platt", "logistic")
# Simulated with three signals: with 15 to 20 labelled prompts a learned curve is on average worse
# than the base rate unless a signal is very strong; from 30 on, and with this many verdicts of
# the rarer kind, what a good signal gains outweighs what noise costs
# (scripts/verify_calibrated_runs.py).
FEWEST_PROMPTS = 30
FEWEST_OF_EACH = 10
FOLDS = 10
FOLDS_OF_MANY = 5
MANY_ROWS = 5_000


class Calibration(Model):
    """A fitted curve with what it was learned on; `predict` gives probabilities of being right.

    `reason` says why it is a constant where a curve was asked for. No prediction is nearer to 0
    or 1 than `floor`, which is as near as `n` rows can tell. `weight` is how much of the curve
    stood in cross-validation beside the base rate, towards which it is drawn.
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
    weight: float = 1.0
    folds: int | None
    seed: int
    candidates: tuple[Candidate, ...]
    reason: Sentence | None

    @property
    def goes_by(self) -> tuple[str, ...]:
        """The signals that the curve looks at; a constant looks at none."""
        match self.curve:
            case Constant():
                return ()
            case Logistic(signals=parts):
                return tuple(part.signal for part in parts)
            case one:
                return (one.signal,)

    def can_tell(self, signals: Signals) -> NDArray[np.bool_]:
        """The rows that have one of the signals it goes by; a constant holds for every row."""
        columns = signal_columns(signals)
        rows = next((column.size for column in columns.values()), 0)
        known = np.full(rows, isinstance(self.curve, Constant))
        for name in self.goes_by:
            if name in columns:
                known |= ~np.isnan(columns[name])
        return known

    def predict(self, signals: Signals) -> Floats:
        """One probability a row; a signal that is not given at all is missing in every row."""
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
    seed: int = 0,
) -> Calibration:
    """Learn from labelled verdicts: whether each was right, and its signals (None is missing).

    `isotonic` and `platt` take one signal, or of several the one with the lowest cross-validated
    log loss; `logistic` takes all; `auto` tries everything, and keeps the simplest that is not
    worse beyond noise, drawn towards the base rate as far as prompts that it has not seen say. A
    prompt's rows are never in two folds.
    """
    if method not in METHODS:
        raise InputError(Message("stats.method_unknown", method=method, methods=list(METHODS)))
    right = right_or_wrong(correct)
    same_length(right.size, prompts=prompts)
    if right.size == 0:
        raise InputError(Message("stats.no_labelled_verdicts"))
    columns = signal_columns(signals, rows=right.size)
    groups = np.arange(right.size) if prompts is None else label_codes(prompts)[0]
    count = int(groups.max()) + 1
    used = {name: column for name, column in columns.items() if varies(column)}
    reason = _too_little(right, count, used)
    candidates: tuple[Candidate, ...] = ()
    folds, weight = None, 1.0
    base = fit_constant(right)
    curve: Curve = base
    if reason is None:
        folds = min(count, FOLDS if right.size < MANY_ROWS else FOLDS_OF_MANY)
        recipes = recipes_for(method, tuple(used))
        predictions = fold_predictions(
            recipes, used, right, fold=prompt_folds(groups, count, folds=folds, seed=seed)
        )
        automatic = method == "auto"
        chosen, candidates = choose_recipe(
            recipes, predictions, right, groups=groups, count=count, parsimonious=automatic
        )
        curve = recipes[chosen].fit(used, right)
        if automatic and chosen > 0:  # the first is the base rate alone
            weight = curve_weight(predictions[chosen], predictions[0], right)
            curve = tempered(curve, weight, towards=base.probability)
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
        weight=weight,
        folds=folds,
        seed=seed,
        candidates=candidates,
        reason=reason,
    )


def cross_fitted(
    correct: Sequence[Any] | NDArray[Any],
    signals: Signals,
    *,
    prompts: Labels | None = None,
    method: Method = "auto",
    seed: int = 0,
) -> Floats:
    """For each row, the probability by a calibration that never saw its prompt.

    What `calibration_error` may be given when there are no other labels: the errors of a
    calibration on its own labels would be too small.
    """
    right = right_or_wrong(correct)
    same_length(right.size, prompts=prompts)
    columns = signal_columns(signals, rows=right.size)
    groups = np.arange(right.size) if prompts is None else label_codes(prompts)[0]
    count = int(groups.max(initial=-1)) + 1
    if count < 2:
        raise InputError(Message("stats.prompts_inseparable", count=count))
    fold = prompt_folds(groups, count, folds=min(count, FOLDS_OF_MANY), seed=seed + 1)
    predicted = np.empty(right.size)
    for number in range(int(fold.max()) + 1):
        out = fold == number
        inner = fit_calibration(
            right[~out],
            {name: column[~out] for name, column in columns.items()},
            prompts=groups[~out],
            method=method,
            seed=seed,
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
