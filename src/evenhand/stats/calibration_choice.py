"""Which curve: candidates from the simplest on, and their cross-validated log losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.stats.clusters import Floats
from evenhand.stats.confidence_curves import (
    Curve,
    fit_constant,
    fit_isotonic,
    fit_logistic_signals,
    fit_platt,
    varies,
)

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
            found = recipe.fit(inside, hits).predict(outside, rows=int(out.sum()))
            predicted[out] = np.clip(found, floor, 1 - floor)
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
    losses = [-np.log(np.where(right > 0, found, 1 - found)) for found in predictions]
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
