"""How often the intervals of rankings hold the truth, by simulation.

    python -m scripts.verify_ranking

Nominal 95 % intervals of log-odds must hold it in 93 to 97 %: with independent rows, and with
prompts that favour a model in all of their rows, where intervals by row hold it far less often.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.stats import rank_battles
from evenhand.stats.ranking_result import Intervals

Array = NDArray[np.float64]
LEAST, MOST = 0.93, 0.97
ROW_LEVEL_MOST = 0.90  # what is left of 95 % where rows of a prompt are taken for independent
_DENSE = 201


@dataclass(frozen=True, slots=True)
class Scene:
    """`favour` is the standard deviation of a prompt's favour for each model, in log-odds."""

    name: str
    models: int
    prompts: int
    rows_a_prompt: int
    favour: float
    twice: float  # the share of battles with two judges


@dataclass(frozen=True, slots=True)
class Covered:
    scores: float
    ranks: float  # how often a model's true rank lies in its interval
    apart: float  # how often two neighbours are told apart wrongly


INDEPENDENT = Scene("independent rows", 8, 1_200, 1, favour=0.0, twice=0.5)
CLUSTERED = Scene("clustered prompts", 8, 150, 20, favour=1.2, twice=0.5)
FEW = Scene("40 clustered prompts", 5, 40, 12, favour=1.2, twice=0.5)


def true_log_odds(scene: Scene, strengths: Array) -> Array:
    """What a fit to endless data would find: a prompt's favour flattens the chances."""
    if not scene.favour:
        return strengths
    points = np.linspace(-8, 8, _DENSE)
    weights = np.exp(-points * points / 2)
    weights /= weights.sum()
    spread = scene.favour * np.sqrt(2.0)
    difference = strengths[:, None] - strengths
    chance = (weights / (1 + np.exp(-(difference[..., None] + spread * points)))).sum(axis=-1)
    return _fit_chances(chance)


def _fit_chances(chance: Array) -> Array:
    """Bradley–Terry log-odds of mean 0 for chances of all pairs, met equally often."""
    size = len(chance)
    found = np.zeros(size)
    for _ in range(100):
        model = 1 / (1 + np.exp(-(found[:, None] - found)))
        gradient = (chance - model).sum(axis=1)
        information = model * (1 - model)
        np.fill_diagonal(information, 0)
        bread = np.diag(information.sum(axis=1)) - information + 1 / size
        step = np.linalg.solve(bread, gradient)
        found += step
        if np.abs(step).max() < 1e-12:
            break
    return np.asarray(found - found.mean())


def simulate(
    scene: Scene, strengths: Array, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp], Array, NDArray[np.intp]]:
    rows = scene.prompts * scene.rows_a_prompt
    prompt = np.repeat(np.arange(scene.prompts), scene.rows_a_prompt)
    first = rng.integers(0, scene.models, rows)
    second = (first + rng.integers(1, scene.models, rows)) % scene.models
    favour = scene.favour * rng.standard_normal((scene.prompts, scene.models))
    difference = strengths[first] - strengths[second]
    difference = difference + favour[prompt, first] - favour[prompt, second]
    chance = 1 / (1 + np.exp(-difference))
    # Some battles are decided by two judges; where they disagree it is a tie. The expected
    # score stays the chance, as ties worth half ask for.
    score = (rng.random(rows) < chance).astype(np.float64)
    other = (rng.random(rows) < chance).astype(np.float64)
    twice = rng.random(rows) < scene.twice
    return first, second, np.where(twice, (score + other) / 2, score), prompt


def measure(
    scene: Scene,
    *,
    runs: int,
    seed: int,
    by_prompt: bool,
    intervals: Intervals = "sandwich",
    replicates: int = 300,
) -> Covered:
    rng = np.random.default_rng(seed)
    names = [f"m{number:02d}" for number in range(scene.models)]
    held = ranks_held = wrong = pairs = 0
    for run in range(runs):
        strengths = np.sort(rng.normal(0, 0.7, scene.models))[::-1]
        truth = true_log_odds(scene, strengths - strengths.mean())
        first, second, score, prompt = simulate(scene, strengths, rng)
        ranking = rank_battles(
            first,
            second,
            score,
            models=names,
            prompt=prompt if by_prompt else None,
            intervals=intervals,
            scale="log-odds",
            replicates=replicates,
            seed=run,
        )
        for row in ranking.models:
            place = int(row.model[1:])
            if row.low is not None and row.high is not None:
                held += row.low <= truth[place] <= row.high
            if row.rank_low is not None and row.rank_high is not None:
                ranks_held += row.rank_low <= place + 1 <= row.rank_high
        alike = {(pair.better, pair.worse) for pair in ranking.indistinguishable or ()}
        for better, worse in zip(ranking.models[:-1], ranking.models[1:], strict=True):
            pairs += 1
            told_apart = (better.model, worse.model) not in alike
            wrong += told_apart and better.model > worse.model
    return Covered(
        held / (runs * scene.models), ranks_held / (runs * scene.models), wrong / max(1, pairs)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(f"coverage of nominal 95 % intervals, {asked.runs} runs each, seed {asked.seed}")
    missed = False
    table: tuple[tuple[Scene, bool, Intervals, float, float], ...] = (
        (INDEPENDENT, False, "sandwich", LEAST, MOST),
        (INDEPENDENT, False, "bootstrap", LEAST, MOST),
        (CLUSTERED, True, "sandwich", LEAST, MOST),
        (CLUSTERED, True, "bootstrap", LEAST, MOST),
        (CLUSTERED, False, "sandwich", 0.0, ROW_LEVEL_MOST),
        (FEW, True, "sandwich", LEAST, MOST),
    )
    for scene, by_prompt, intervals, least, most in table:
        covered = measure(
            scene, runs=asked.runs, seed=asked.seed, by_prompt=by_prompt, intervals=intervals
        )
        fine = least <= covered.scores <= most and covered.ranks >= LEAST
        if not by_prompt and scene.favour:
            fine = covered.scores <= most  # shown for what it gets wrong
        missed |= not fine
        print(
            f"  {scene.name:<22} {intervals:<10} by {'prompt' if by_prompt else 'row':<7}"
            f" scores {covered.scores:6.1%}  ranks {covered.ranks:6.1%}"
            f"  told apart wrongly {covered.apart:5.2%}   {'held' if fine else 'NOT HELD'}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
