"""What a league of models has come to so far, pair by pair, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.stats.strength_posterior import Floats

_WHOLE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """Square tables with one row and one column for each model, in the order of `models`.

    scores[i][j] is what i won against j, a tie being half for each; the others are symmetric.
    """

    models: tuple[str, ...]
    scores: Floats
    unasked: NDArray[np.int64]
    in_flight: NDArray[np.int64]
    ties: NDArray[np.int64] | None

    @property
    def completed(self) -> int:
        return round(float(self.scores.sum()))

    @property
    def waiting(self) -> int:
        return int(self.in_flight.sum()) // 2

    @property
    def open(self) -> int:
        return int(self.unasked.sum()) // 2

    def reordered(self, order: NDArray[np.int64]) -> PairCounts:
        both = np.ix_(order, order)
        return PairCounts(
            models=tuple(self.models[i] for i in order),
            scores=self.scores[both],
            unasked=self.unasked[both],
            in_flight=self.in_flight[both],
            ties=None if self.ties is None else self.ties[both],
        )


def count_pairs(
    models: tuple[str, ...] | list[str],
    scores: ArrayLike,
    *,
    unasked: ArrayLike,
    in_flight: ArrayLike | None = None,
    ties: ArrayLike | None = None,
) -> PairCounts:
    """Check the tables; what cannot be is an InputError that names the pair."""
    names = tuple(models)
    if len(names) < 2:
        raise InputError(f"{len(names)} models have no order to find; give at least 2")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"model {twice[0]!r} is named twice; give each model one name")
    won = _table("scores", scores, names=names)
    games = won + won.T
    _refuse(names, np.abs(games - np.round(games)) > _WHOLE, games, "comparisons", "whole numbers")
    counted_ties = None
    if ties is not None:
        counted_ties = _counts("ties", ties, names=names)
        _refuse(names, counted_ties > 2 * won + _WHOLE, counted_ties, "ties", "at most the games")
    flying = np.zeros_like(won) if in_flight is None else in_flight
    return PairCounts(
        models=names,
        scores=won,
        unasked=_counts("unasked", unasked, names=names),
        in_flight=_counts("in_flight", flying, names=names),
        ties=counted_ties,
    )


def _table(what: str, table: ArrayLike, *, names: tuple[str, ...]) -> Floats:
    try:
        values = np.array(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} is no table of numbers ({error}); give one number a pair"
        ) from None
    if values.shape != (len(names), len(names)):
        raise InputError(
            f"{what} has shape {values.shape} for {len(names)} models;"
            f" give {len(names)} rows of {len(names)}"
        )
    _refuse(names, ~np.isfinite(values) | (values < 0), values, what, "0 or more")
    _refuse(names, np.eye(len(names), dtype=bool) & (values != 0), values, what, "0 with itself")
    return values


def _counts(what: str, table: ArrayLike, *, names: tuple[str, ...]) -> NDArray[np.int64]:
    values = _table(what, table, names=names)
    _refuse(names, values != np.round(values), values, what, "whole numbers")
    _refuse(names, values != values.T, values, what, "the same from either side")
    return values.astype(np.int64)


def _refuse(
    names: tuple[str, ...],
    wrong: NDArray[np.bool_],
    values: NDArray[Any],
    what: str,
    rule: str,
) -> None:
    if wrong.any():
        first, second = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"{what} of {names[first]!r} and {names[second]!r} is {values[first, second]:g};"
            f" it takes {rule}"
        )
