"""Whether the battles connect every model with every other, and what to call those they do not.

A Bradley–Terry score is finite only where each model can be reached from each other one along
battles won or tied (Ford 1957).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Connections:
    """How the models hang together. `main` is the largest group that is connected both ways.

    `above` have scored against the main group, directly or through others, and never lost a
    point to it; `below` the other way round; models that are in none are not comparable with it.
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


def examine(won: NDArray[np.float64]) -> Connections:
    """`won[i, j]` is what i scored against j."""
    beats = won > 0
    size = len(beats)
    none = np.zeros(size, bool)
    if _reached(beats, 0).all() and _reached(beats.T, 0).all():
        everything = np.ones(size, bool)
        return Connections(True, everything, none, none, (), none, none, none, None)
    # Only here, since it is loaded with the sparse matrices.
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
    return Connections(
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
    """Whether connected battles, some of them ties, leave Davidson's model a finite estimate.

    They do not where strengths d and the tie parameter can grow together without end, which
    takes d_i - d_j >= 1 for each win of i over j and |d_i - d_j| <= 1 for each tie. Such
    differences exist unless some cycle has more wins than ties (Bellman 1958).
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
