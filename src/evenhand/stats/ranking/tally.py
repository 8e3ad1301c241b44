"""Battles summed for each pair of models, and their connectivity: the input of every fit and
interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.columns import Floats


@dataclass(frozen=True, slots=True)
class Entries:
    """Battles, single or grouped: A, B, A's score, weight and prompt."""

    model_a: NDArray[np.intp]
    model_b: NDArray[np.intp]
    score: Floats
    weight: Floats
    cluster: NDArray[np.intp]
    clusters: int


@dataclass(frozen=True, slots=True)
class BattleTally:
    """Sums over the battles of each pair, from the row model's side.

    `won` is the weight of wins with ties as half, `wins` and `tied` of either alone, since
    subtraction would leave rounding errors. `squares`, `squares_won` and `squares_won2` are the
    sums of w², w²y and w²y² over battles with weight w and score y, and `squares_tied` of w² over
    ties, for the sandwich of independent rows. `entries` are set if battles belong to prompts.
    """

    models: tuple[str, ...]
    won: Floats
    wins: Floats
    tied: Floats
    squares: Floats
    squares_won: Floats
    squares_won2: Floats
    squares_tied: Floats
    games: NDArray[np.int64]
    rows: int
    fractional: bool
    weighted: bool
    entries: Entries | None

    @property
    def played(self) -> Floats:
        return self.won + self.won.T


def tally_of_outcomes(
    models: tuple[str, ...], counts: NDArray[np.int64], *, entries: Entries | None
) -> BattleTally:
    """From `counts[outcome, a, b]`, with outcomes B wins, tie, A wins."""
    lost, tied, won = counts.astype(np.float64)
    wins, ties = won + lost.T, tied + tied.T
    all_of_them = wins + wins.T + ties
    return BattleTally(
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
    score: Floats,
    weight: Floats | None,
    fractional: bool,
    entries: Entries | None,
) -> BattleTally:
    size = len(models)
    pair = model_a * size + model_b

    def summed(values: Floats | None) -> Floats:
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
    return BattleTally(
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


Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Connectivity:
    """How the models are connected. `main` is the largest group connected both ways.

    `above` have scored against the main group, directly or through others, and never lost a point
    to it; `below` the reverse; models in neither are not comparable with it.
    """

    strong: bool
    main: Flags
    above: Flags
    below: Flags
    groups: tuple[NDArray[np.intp], ...]  # without any battle between them, never compared aside
    undefeated: Flags
    winless: Flags
    absent: Flags
    comparable: Flags | None  # square; None where all are


def examine(won: NDArray[np.float64]) -> Connectivity:
    """Whether battles connect the models; `won[i, j]` is what i scored against j.

    Bradley–Terry scores are finite only if each model can be reached from each other along battles
    won or tied (Ford 1957).
    """
    beats = won > 0
    size = len(beats)
    none = np.zeros(size, bool)
    if _reached(beats, 0).all() and _reached(beats.T, 0).all():
        everything = np.ones(size, bool)
        return Connectivity(True, everything, none, none, (), none, none, none, None)
    # Loads SciPy's sparse matrices, so imported here.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array(beats.astype(np.int8))
    _, strong = connected_components(graph, directed=True, connection="strong")
    count, weak = connected_components(graph, directed=False)
    scored: Flags = np.logical_or.reduce(beats, axis=1)
    conceded: Flags = np.logical_or.reduce(beats, axis=0)
    absent = ~(scored | conceded)
    weight = np.bincount(strong, minlength=size) * (won.sum() + 1) + np.bincount(
        strong, weights=won.sum(axis=1) + won.sum(axis=0), minlength=size
    )
    main = strong == int(np.argmax(weight))
    member = int(np.argmax(main))
    above = _reached(beats.T, member) & ~main
    below = _reached(beats, member) & ~main
    parts = [np.flatnonzero(weak == part) for part in range(count)]
    groups = tuple(part for part in parts if not absent[part[0]])
    return Connectivity(
        strong=False,
        main=main,
        above=above,
        below=below,
        groups=groups if len(groups) > 1 else (),
        undefeated=scored & ~conceded,
        winless=conceded & ~scored,
        absent=absent,
        comparable=_comparable(beats),
    )


def ties_settled(wins: NDArray[np.float64], tied: NDArray[np.float64]) -> bool:
    """Whether connected battles, some tied, leave Davidson's model a finite estimate.

    They do not if strengths d and the tie parameter can grow together without bound, with d_i - d_j
    >= 1 for each win of i over j and |d_i - d_j| <= 1 for each tie. Such differences exist unless
    some cycle has more wins than ties (Bellman 1958).
    """
    beats = wins > 0
    if (beats & beats.T).any():
        return True
    bound = np.where(beats, -1.0, np.where(tied > 0, 1.0, np.inf))
    reach = np.zeros(len(beats))
    for _ in range(len(beats) + 1):
        further = np.minimum(reach, (reach[:, None] + bound).min(axis=0))
        if (further == reach).all():
            return False
        reach = further
    return True


def _reached(beats: Flags, start: int) -> Flags:
    seen = np.zeros(len(beats), bool)
    seen[start] = True
    front = seen.copy()
    while front.any():
        front = beats[front].any(axis=0) & ~seen
        seen |= front
    return seen


def _comparable(beats: Flags) -> Flags:
    """Whether a chain of points leads from either to the other."""
    reaches = beats | np.eye(len(beats), dtype=bool)
    while True:
        step = reaches.astype(np.float32)
        further = (step @ step) > 0
        if (further == reaches).all():
            return np.asarray(reaches | reaches.T)
        reaches = further
