"""Do corrected win rates cover 93 to 97%, no wider than people alone? By simulation.

    python -m scripts.verify_corrected [--replicates 400] [--seed 0]

Prints every cell and exits 1 where a limit is missed. A cell outside 93 to 97% is simulated again
with eight times as many replicates, and those count. In cells marked `few`, fewer than five
labelled pairs are to be expected that go against the others, or against the judge: coverage then
moves in coarse steps and may be higher than 97%, never lower than 93%. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.correction.corrected_rate import CorrectedRate, corrected_win_rate
from evenhand.stats.correction.labels import doubts_of_confidence, draw_labels

LIMITS = (0.93, 0.97)
WIDEST = 1.02
FEW = 5.0
AGAIN = 8
Floats = NDArray[np.float64]

# How often the judge does not look (and guesses instead), and how often a guess goes to A.
JUDGES = {
    "useless": (1.0, 0.5),
    "weak": (0.7, 0.5),
    "fair": (0.35, 0.5),
    "fair, favours A": (0.35, 0.95),
    "good": (0.15, 0.5),
    "good, favours A": (0.15, 1.0),
    "good, favours B": (0.15, 0.0),
    "excellent": (0.05, 0.5),
    "excellent, favours A": (0.05, 1.0),
}


@dataclass(frozen=True, slots=True)
class World:
    """`repeat` pairs a prompt; `steady` is how alike the verdicts of one prompt are."""

    judge: str
    labelled: int
    rate: float
    ties: float
    pairs: int = 1000
    repeat: int = 1
    steady: float = 0.0
    drawn: str = "evenly"

    @property
    def name(self) -> str:
        prompts = f", {self.repeat} a prompt" if self.repeat > 1 else ""
        return (
            f"{self.judge:21} {self.labelled:4} of {self.pairs:5} labelled {self.drawn}{prompts}, "
            f"rate {self.rate:.2f}, ties {self.ties:.1f}"
        )


@dataclass(frozen=True, slots=True)
class Cell:
    world: World
    replicates: int
    coverage: float
    people: float
    uncorrected: float
    width: float
    weight: float
    gain: float
    bias: float
    contrary: float

    @property
    def few(self) -> bool:
        return self.contrary < FEW

    @property
    def clear(self) -> bool:
        """Within the limits as they stand."""
        return self._within(0.0)

    @property
    def held(self) -> bool:
        # Two and a half standard errors: of a hundred cells, one may err by chance.
        return self._within(2.5 * math.sqrt(0.05 * 0.95 / self.replicates))

    def _within(self, slack: float) -> bool:
        highest = 1.0 if self.few else LIMITS[1] + slack
        return LIMITS[0] - slack <= self.coverage <= highest and self.width <= WIDEST

    @property
    def _remark(self) -> str:
        if self.clear:
            return ""
        return " outside, within the simulation's error" if self.held else " MISSED"

    @property
    def line(self) -> str:
        return (
            f"{self.world.name:78} {self.coverage:6.1%} {self.people:6.1%} {self.uncorrected:6.1%}"
            f" {self.width:6.3f} {self.weight:5.2f} {self.gain:5.2f} {self.bias:+7.4f}"
            f"{' few' if self.few else ''}{self._remark}"
        )


def draw_world(rng: np.random.Generator, world: World) -> tuple[Floats, Floats, Floats]:
    """People's scores, the judge's, and how sure it is: less so where it guessed."""
    prompts = world.pairs // world.repeat
    win, loss = world.rate - world.ties / 2, 1 - world.rate - world.ties / 2
    shares = [win, world.ties, max(0.0, loss)]

    def verdicts(size: int) -> Floats:
        return rng.choice([1.0, 0.5, 0.0], p=shares, size=size)

    common = np.repeat(verdicts(prompts), world.repeat)
    people = np.where(rng.random(world.pairs) < world.steady, common, verdicts(world.pairs))
    asleep, leaning = JUDGES[world.judge]
    # A judge that does not look at one answer to a prompt looks no better at the next.
    nodding = np.repeat(rng.random(prompts) < asleep, world.repeat)
    again = rng.random(world.pairs) < asleep
    guessed = np.where(rng.random(world.pairs) < world.steady, nodding, again)
    judge = np.where(guessed, (rng.random(world.pairs) < leaning).astype(float), people)
    sure = np.where(guessed, rng.uniform(0.5, 0.9, world.pairs), rng.uniform(0.7, 1, world.pairs))
    return people, judge, sure


def one_rate(rng: np.random.Generator, world: World) -> tuple[CorrectedRate, float]:
    people, judge, sure = draw_world(rng, world)
    chances = None
    if world.drawn == "by doubt":
        draw = draw_labels(doubts_of_confidence(sure), seed=int(rng.integers(2**31)))
        rows, chances = draw.queue[: world.labelled], draw.chances_after(world.labelled)
    else:
        rows = rng.choice(world.pairs, world.labelled, replace=False)
    found = corrected_win_rate(
        judge,
        rows,
        label_scores=people[rows],
        prompts=None if world.repeat == 1 else np.arange(world.pairs) // world.repeat,
        chances=chances,
    )
    # Labels that say nothing new: those like most others, and those like the judge.
    labels = people[rows]
    common = max(float((labels == score).sum()) for score in (0.0, 0.5, 1.0))
    return found, min(labels.size - common, float((labels != judge[rows]).sum()))


def simulate(rng: np.random.Generator, world: World, replicates: int) -> Cell:
    hits, widths = np.zeros(3), np.zeros(3)
    weight = gain = bias = contrary = 0.0
    for _ in range(replicates):
        found, against = one_rate(rng, world)
        contrary += against
        for place, part in enumerate((found.corrected, found.people_only, found.uncorrected)):
            assert part.low is not None, part.reason
            assert part.high is not None, part.reason
            hits[place] += part.low <= world.rate <= part.high
            widths[place] += part.high - part.low
        assert found.corrected.rate is not None
        bias += found.corrected.rate - world.rate
        weight += found.judge_weight or 0.0
        gain += found.gain or 0.0
    return Cell(
        world=world,
        replicates=replicates,
        coverage=float(hits[0] / replicates),
        people=float(hits[1] / replicates),
        uncorrected=float(hits[2] / replicates),
        width=float(widths[0] / widths[1]),
        weight=weight / replicates,
        gain=gain / replicates,
        bias=bias / replicates,
        contrary=contrary / replicates,
    )


def worlds() -> Iterator[World]:
    rates = ((0.5, 0.0), (0.6, 0.3), (0.75, 0.1), (0.9, 0.0), (0.9, 0.1))
    for labelled in (30, 50, 100, 300):
        for rate, ties in rates:
            for judge in JUDGES:
                yield World(judge=judge, labelled=labelled, rate=rate, ties=ties)
    for labelled in (50, 100, 300):
        for rate, ties in ((0.5, 0.0), (0.75, 0.1)):
            for judge in ("useless", "fair", "good, favours A"):
                plain = World(judge=judge, labelled=labelled, rate=rate, ties=ties)
                yield replace(plain, repeat=5, steady=0.5)
                yield replace(plain, drawn="by doubt")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--replicates", type=int, default=400)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    rng = np.random.default_rng(chosen.seed)
    print(f"level 0.95, {chosen.replicates} replicates a cell, seed {chosen.seed}\n")
    print(
        "coverage: corrected, people only, judge only; mean width corrected / people only;"
        " weight of the judge; gain; bias\n"
    )
    cells = []
    for world in worlds():
        cell = simulate(rng, world, chosen.replicates)
        if not cell.clear:
            # Chance, or the method? More replicates, of their own and not added, tell.
            cell = simulate(rng, world, AGAIN * chosen.replicates)
        cells.append(cell)
        print(cell.line, flush=True)
    return report(cells)


def report(cells: list[Cell]) -> int:
    missed = [cell for cell in cells if not cell.held]
    for title, group in (
        ("enough labels", [cell for cell in cells if not cell.few]),
        ("few", [cell for cell in cells if cell.few]),
    ):
        if group:
            coverages = [cell.coverage for cell in group]
            print(
                f"\n{title}: {len(group)} cells, coverage {min(coverages):.1%} to"
                f" {max(coverages):.1%}, mean {np.mean(coverages):.1%}; judge only"
                f" {np.mean([cell.uncorrected for cell in group]):.1%}; width at most"
                f" {max(cell.width for cell in group):.3f} of people only",
                end="",
            )
    print(f"\n{len(missed)} of {len(cells)} cells outside their limits")
    for cell in missed:
        print(f"  MISSED {cell.line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
