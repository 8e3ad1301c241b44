"""Battles aggregated once: what every fit and every interval is made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Entries:
    """Battles one by one, or grouped: A, B, A's score, the weight, and the prompt."""

    model_a: NDArray[np.intp]
    model_b: NDArray[np.intp]
    score: Matrix
    weight: Matrix
    cluster: NDArray[np.intp]
    clusters: int


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over the battles of each pair, seen from the model of the row.

    `won` holds the weight of wins with ties as half, `wins` and `tied` that of either alone:
    what is left of a subtraction of weights is not 0 where there are no wins. `squares`,
    `squares_won` and `squares_won2` are the sums of w², w²y and w²y² over battles with weight w
    and score y, and `squares_tied` is that of w² over ties: what the sandwich of independent
    rows needs. `entries` are there where battles belong to prompts.
    """

    models: tuple[str, ...]
    won: Matrix
    wins: Matrix
    tied: Matrix
    squares: Matrix
    squares_won: Matrix
    squares_won2: Matrix
    squares_tied: Matrix
    games: NDArray[np.int64]
    rows: int
    fractional: bool
    weighted: bool
    entries: Entries | None

    @property
    def played(self) -> Matrix:
        return self.won + self.won.T


def tally_of_outcomes(
    models: tuple[str, ...], counts: NDArray[np.int64], *, entries: Entries | None
) -> Tally:
    """From `counts[outcome, a, b]`, the outcomes being that B wins, a tie and that A wins."""
    lost, tied, won = counts.astype(np.float64)
    wins, ties = won + lost.T, tied + tied.T
    all_of_them = wins + wins.T + ties
    return Tally(
        models=models,
        won=wins + ties / 2,
        wins=wins,
        tied=ties,
        squares=all_of_them,
        squares_won=wins + ties / 2,
        squares_won2=wins + ties / 4,
        squares_tied=ties,
        games=all_of_them.sum(axis=1).round().astype(np.int64),
        rows=int(counts.sum()),
        fractional=False,
        weighted=False,
        entries=entries,
    )


def tally_of_rows(
    models: tuple[str, ...],
    model_a: NDArray[np.intp],
    model_b: NDArray[np.intp],
    *,
    score: Matrix,
    weight: Matrix | None,
    fractional: bool,
    entries: Entries | None,
) -> Tally:
    size = len(models)
    pair = model_a * size + model_b

    def summed(values: Matrix | None) -> Matrix:
        sums = np.bincount(pair, weights=values, minlength=size * size)
        return sums.reshape(size, size).astype(np.float64, copy=False)

    ones = np.ones(1) if weight is None else weight
    tie = (score == 0.5) * ones
    squared = score * ones * ones
    played = summed(weight)
    scored, tied = summed(score * ones), summed(tie)
    squares = played if weight is None else summed(weight * weight)
    first = summed(squared)
    second = summed(squared * score)
    squares_tied = tied if weight is None else summed(tie * ones)
    counted = played if weight is None else summed((weight > 0).astype(np.float64))
    return Tally(
        models=models,
        won=scored + (played - scored).T,
        wins=summed((score == 1) * ones) + summed((score == 0) * ones).T,
        tied=tied + tied.T,
        squares=squares + squares.T,
        squares_won=first + (squares - first).T,
        squares_won2=second + (squares - 2 * first + second).T,
        squares_tied=squares_tied + squares_tied.T,
        games=(counted + counted.T).sum(axis=1).round().astype(np.int64),
        rows=round(float(counted.sum())),
        fractional=fractional,
        weighted=weight is not None,
        entries=entries,
    )
