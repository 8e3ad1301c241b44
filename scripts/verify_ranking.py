"""How often the intervals of rankings hold the truth, by simulation.

    python -m scripts.verify_ranking

Nominal 95% intervals of log-odds must hold it in 93 to 97%: with independent rows, and with
prompts that favour a model in all of their rows, where intervals by row hold it far less often.

Rank ranges must hold for all models of a league together: a league is wrong where one range leaves
out a rank that its model, or one of the models that are equally good, truly has. At most 6% of
leagues may be, of equal models, of clumps of equal models, and of a ladder.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.ranking.leaderboard import rank_battles
from evenhand.stats.ranking.result import Intervals, Ranking, Ties
from evenhand.stats.ranking.uncertainty import quantile

Array = NDArray[np.float64]
LEAST, MOST = 0.93, 0.97
MOST_WRONG = 0.06  # of leagues whose nominal share is 5%
ROW_LEVEL_MOST = 0.90  # what is left of 95% where rows of a prompt are taken for independent
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
    apart: float  # how often two neighbours are wrongly significantly different


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
            different = (better.model, worse.model) not in alike
            wrong += different and better.model > worse.model
    return Covered(
        held / (runs * scene.models), ranks_held / (runs * scene.models), wrong / max(1, pairs)
    )


@dataclass(frozen=True, slots=True)
class League:
    """Models in clumps of equal ones, `gap` log-odds apart; prompts of one row are rows."""

    name: str
    clumps: tuple[int, ...]
    gap: float
    prompts: int
    rows_a_prompt: int
    intervals: Intervals = "sandwich"
    ties: Ties = "half"

    @property
    def strengths(self) -> Array:
        steps = np.arange(len(self.clumps))[::-1] * self.gap
        return np.repeat(steps - steps.mean(), self.clumps)

    @property
    def scene(self) -> Scene:
        favour = 0.0 if self.rows_a_prompt == 1 else 1.2
        return Scene(
            self.name, sum(self.clumps), self.prompts, self.rows_a_prompt, favour, twice=0.5
        )


@dataclass(frozen=True, slots=True)
class Wrong:
    """How many leagues have a wrong rank range, and how many ranks a range holds on average.

    `alone` and `width_alone` are of ranges that hold for one model alone (Bonferroni's inequality
    over its own differences).
    """

    together: float
    width: float
    alone: float | None = None
    width_alone: float | None = None


def _leagues() -> list[League]:
    kinds: tuple[tuple[str, tuple[int, ...], float], ...] = (
        ("8 equal", (8,), 0.0),
        ("20 equal", (20,), 0.0),
        ("ladder of 8", (1,) * 8, 0.3),
        ("8 in 2 clumps", (4, 4), 1.0),
        ("20 in 4 clumps", (5, 5, 5, 5), 0.8),
    )
    ways: tuple[tuple[Intervals, Ties], ...] = (
        ("sandwich", "half"),
        ("bootstrap", "half"),
        ("sandwich", "davidson"),
    )
    return [
        League(name, clumps, gap, prompts, rows, intervals, ties)
        for intervals, ties in ways
        for name, clumps, gap in kinds
        for prompts, rows in ((100 * sum(clumps), 1), (100, sum(clumps)), (40, sum(clumps)))
        if not gap or (prompts != 40 and ties == "half")
    ]


LEAGUES = _leagues()


def measure_league(league: League, *, runs: int, seed: int, replicates: int = 300) -> Wrong:
    rng = np.random.default_rng(seed)
    truth, scene = league.strengths, league.scene
    names = [str(place) for place in range(len(truth))]
    by_prompt = league.rows_a_prompt > 1
    levels = [0.95]
    if league.intervals == "sandwich":
        levels.append(_level_alone(len(truth), league.prompts - 1.0))
    counted = np.zeros((len(levels), 2))
    for run in range(runs):
        first, second, score, prompt = simulate(scene, truth, rng)
        for place, level in enumerate(levels):
            ranking = rank_battles(
                first,
                second,
                score,
                models=names,
                prompt=prompt if by_prompt else None,
                intervals=league.intervals,
                ties=league.ties,
                level=level,
                replicates=replicates,
                seed=run,
            )
            counted[place] += _wrong_and_width(ranking, truth)
    wrong, width, *alone = (counted / runs).ravel().tolist()
    return Wrong(wrong, width, *alone)


def _level_alone(size: int, freedom: float) -> float:
    """At which all pairs together have the critical value of one model's own at 95%."""
    alone = quantile(1 - 0.05 / (size - 1), freedom)
    low, high = 0.01, 0.999
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if quantile(middle, freedom, models=size) < alone else (low, middle)
        )
    return (low + high) / 2


def _wrong_and_width(ranking: Ranking, truth: Array) -> tuple[float, float]:
    wrong, widths = False, []
    for row in ranking.models:
        assert row.rank_low is not None
        assert row.rank_high is not None
        own = truth[int(row.model)]
        best, worst = 1 + (truth > own + 1e-9).sum(), (truth > own - 1e-9).sum()
        wrong |= bool(row.rank_low > best or row.rank_high < worst)
        widths.append(row.rank_high - row.rank_low + 1)
    return float(wrong), float(np.mean(widths))


def _measure_all(runs: int, seed: int) -> bool:
    """Each league in a process of its own; those that take longer have half as many runs."""
    print(f"leagues with a wrong rank range (95%), {runs} runs each, seed {seed}")
    print(
        "  (bootstrap and Davidson: half as many runs; alone: ranges that hold for one model alone)"
    )
    held = True
    with ProcessPoolExecutor() as pool:
        waiting = [
            pool.submit(
                measure_league,
                each,
                runs=runs if (each.intervals, each.ties) == ("sandwich", "half") else runs // 2,
                seed=seed,
            )
            for each in LEAGUES
        ]
        for league, found in zip(LEAGUES, waiting, strict=True):
            wrong = found.result()
            held &= wrong.together <= MOST_WRONG
            unit = f"{league.prompts} prompts of {league.rows_a_prompt}"
            rows = f"{league.prompts:,} rows" if league.rows_a_prompt == 1 else unit
            alone = (
                ""
                if wrong.alone is None
                else f"  alone {wrong.alone:5.1%} {wrong.width_alone:5.2f}"
            )
            print(
                f"  {league.name:<15} {rows:<19} {league.intervals:<10} {league.ties:<9}"
                f" wrong {wrong.together:5.1%}  width {wrong.width:5.2f}"
                f"   {'held' if wrong.together <= MOST_WRONG else 'NOT HELD'}{alone}",
                flush=True,
            )
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--leagues", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(f"coverage of nominal 95% intervals, {asked.runs} runs each, seed {asked.seed}")
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
            f"  wrongly different {covered.apart:5.2%}   {'held' if fine else 'NOT HELD'}"
        )
    missed |= not _measure_all(asked.leagues, asked.seed)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
