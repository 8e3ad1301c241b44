"""Tables of comparisons for the tests of rankings, and a second, naive way to value a pair."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@st.composite
def half_point_tables(draw: st.DrawFn, *, most: int = 40) -> tuple[Floats, NDArray[np.int64]]:
    """Scores of 2 to 6 models with ties as half, and the ties."""
    models = draw(st.integers(2, 6))
    scores = np.zeros((models, models))
    ties = np.zeros((models, models), dtype=np.int64)
    for first in range(models):
        for second in range(first + 1, models):
            won, lost, tied = (draw(st.integers(0, most)) for _ in range(3))
            scores[first, second] = won + tied / 2
            scores[second, first] = lost + tied / 2
            ties[first, second] = ties[second, first] = tied
    return scores, ties


def played_league(models: int, *, games: int, seed: int = 0) -> Floats:
    """Scores after so many games of random pairs with normal strengths."""
    rng = np.random.default_rng(seed)
    strengths = rng.normal(0.0, 0.7, models)
    scores = np.zeros((models, models))
    for _ in range(games):
        first, second = rng.choice(models, 2, replace=False)
        wins = rng.random() < 1 / (1 + np.exp(strengths[second] - strengths[first]))
        scores[(first, second) if wins else (second, first)] += 1
    return scores


def all_pairs(models: int, *, count: int) -> NDArray[np.int64]:
    table = np.full((models, models), count)
    np.fill_diagonal(table, 0)
    return table


def contrast(models: int, first: int, second: int) -> Floats:
    direction = np.zeros(models)
    direction[first], direction[second] = 1.0, -1.0
    return direction
