"""Second implementations of the rankings, as plain as they can be, and tables to try them on."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

Battle = tuple[str, str, float, float]  # A, B, A's score, the weight


@dataclass
class Field:
    """Made-up battles of models with known strengths."""

    strengths: dict[str, float]
    a: list[str] = field(default_factory=list)
    b: list[str] = field(default_factory=list)
    winner: list[str] = field(default_factory=list)
    prompt: list[str] = field(default_factory=list)


def make_field(
    models: int, rows: int, *, seed: int, ties: float = 0.2, rows_a_prompt: int = 1
) -> Field:
    draw = random.Random(seed)
    names = [f"m{number}" for number in range(models)]
    made = Field({name: draw.gauss(0, 0.8) for name in names})
    for row in range(rows):
        first, second = draw.sample(names, 2)
        chance = 1 / (1 + math.exp(made.strengths[second] - made.strengths[first]))
        drawn = draw.random()
        made.a.append(first)
        made.b.append(second)
        made.winner.append("tie" if drawn < ties else "A" if draw.random() < chance else "B")
        made.prompt.append(f"p{row // rows_a_prompt}")
    return made


def minorise(battles: list[Battle], *, steps: int = 20_000) -> dict[str, float]:
    """Bradley–Terry log-odds of mean 0 by Zermelo's iteration (1929)."""
    names = sorted({name for a, b, *_ in battles for name in (a, b)})
    power = dict.fromkeys(names, 1.0)
    for _ in range(steps):
        won = dict.fromkeys(names, 0.0)
        met = dict.fromkeys(names, 0.0)
        for a, b, score, weight in battles:
            won[a] += weight * score
            won[b] += weight * (1 - score)
            for name in (a, b):
                met[name] += weight / (power[a] + power[b])
        new = {name: won[name] / met[name] for name in names}
        mean = math.exp(sum(map(math.log, new.values())) / len(new))
        new = {name: value / mean for name, value in new.items()}
        moved = max(abs(new[name] - power[name]) for name in names)
        power = new
        if moved < 1e-14:
            break
    return {name: math.log(value) for name, value in power.items()}


def maximise_davidson(battles: list[Battle]) -> tuple[dict[str, float], float]:
    """Davidson's log-odds of mean 0, and the tie parameter, by a general optimiser."""
    names = sorted({name for a, b, *_ in battles for name in (a, b)})
    place = {name: number for number, name in enumerate(names)}

    def loss(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        total = 0.0
        for a, b, score, weight in battles:
            half = (values[place[a]] - values[place[b]]) / 2
            said = {1.0: half, 0.0: -half, 0.5: values[-1]}[score]
            total -= weight * (said - np.logaddexp(np.logaddexp(half, -half), values[-1]))
        return float(total + values[:-1].mean() ** 2)

    found = minimize(loss, np.zeros(len(names) + 1), method="BFGS", options={"gtol": 1e-9})
    values = found.x[:-1] - found.x[:-1].mean()
    return dict(zip(names, values.tolist(), strict=True)), math.exp(found.x[-1])


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
