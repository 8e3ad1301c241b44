"""Do nominal 95% intervals cover 93 to 97%? Exact for independent rows, simulated for prompts.

    python -m scripts.verify_coverage [--replicates 1000] [--seed 0]

Prints a table for each interval and exits 1 where a limit is missed. Cells with few pairs (a coarse
lattice of outcomes) or fewer than four contrary prompts to be expected are marked `few`: they have
wider limits of their own, and those outside 93 to 97% are named. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, ndtr, ndtri

from evenhand.contract.codes import TIE, WIN_A, WIN_B
from evenhand.stats.clusters import normal_quantile
from evenhand.stats.intervals import score_interval
from evenhand.stats.rates.length_bias import length_effect
from evenhand.stats.rates.position_bias import PASS_A, PASS_B, position_bias
from evenhand.stats.rates.win_rate import Circumstances, win_rate

LIMITS = (0.93, 0.97)
# Few pairs: coverage jumps from one lattice point to the next (20 pairs without ties at 0.95 can
# only be covered by 92.5 or 98.4%). Few prompts: better too wide than too short.
LATTICE_BELOW = 100
FEW_PAIRS_LIMITS = (0.92, 0.98)
FEW_PROMPTS_LIMITS = (0.91, 1.0)
CONTRARY_PROMPTS = 4
RATES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
TIE_SHARES = (0.0, 0.1, 0.3, 0.6)
TELLS_APART = Circumstances(discriminates=True)
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cell:
    name: str
    coverage: float
    limits: tuple[float, float]
    slack: float = 0.0

    @property
    def held(self) -> bool:
        low, high = self.limits
        return low - self.slack <= self.coverage <= high + self.slack


def exact_coverage(pairs: int, rate: float, ties: float) -> float:
    """Over every outcome of the trinomial that has a chance worth counting."""
    win, loss = rate - ties / 2, 1 - rate - ties / 2
    critical = normal_quantile(0.95)
    wins, losses = np.meshgrid(np.arange(pairs + 1), np.arange(pairs + 1), indexing="ij")
    possible = wins + losses <= pairs
    wins, losses = wins[possible], losses[possible]
    halves = pairs - wins - losses
    logs = gammaln(pairs + 1) + sum(
        _log_term(count, share) for count, share in ((wins, win), (losses, loss), (halves, ties))
    )
    chances = np.exp(logs)
    likely = chances > 1e-8
    covered = 0.0
    columns = (wins[likely], halves[likely], losses[likely], chances[likely])
    for won, tied, lost, chance in zip(*(column.tolist() for column in columns), strict=True):
        low, high = score_interval(won, tied, lost, critical=critical)
        covered += chance * (low <= rate <= high)
    return covered


def _log_term(counts: Counts, share: float) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = -gammaln(counts + 1)
    if share > 1e-12:
        return logs + counts * math.log(share)
    return np.where(counts == 0, logs, -np.inf)


def independent_cells(sizes: tuple[int, ...]) -> Iterator[Cell]:
    for pairs in sizes:
        for rate in RATES:
            for ties in TIE_SHARES:
                loss = 1 - rate - ties / 2
                if loss < -1e-12:
                    continue
                few = pairs < LATTICE_BELOW
                yield Cell(
                    name=f"{pairs:5} pairs, rate {rate:.2f}, ties {ties:.1f}"
                    + (" (few)" if few else ""),
                    coverage=exact_coverage(pairs, rate, ties),
                    limits=FEW_PAIRS_LIMITS if few else LIMITS,
                )


def prompt_counts(
    rng: np.random.Generator,
    *,
    sizes: Counts,
    rate: float,
    ties: float,
    correlation: float,
    shape: str,
) -> tuple[Counts, Counts]:
    """Wins and losses of each prompt, whose rows share a Dirichlet draw or a normal one."""
    loss, win = 1 - rate - ties / 2, rate - ties / 2
    if correlation == 0:
        lost = rng.binomial(sizes, loss)
        return rng.binomial(sizes - lost, win / (1 - loss)), lost
    if shape == "dirichlet":
        strength = (1 - correlation) / correlation
        shares = rng.dirichlet(np.maximum([win, ties, loss], 1e-9) * strength, size=sizes.size)
        drawn = rng.multinomial(sizes, shares)
        return drawn[:, 0], drawn[:, 2]
    mood = math.sqrt(correlation) * rng.standard_normal(sizes.size)
    rest = math.sqrt(1 - correlation)
    below = ndtr((ndtri(loss) - mood) / rest)
    above = 1 - ndtr((ndtri(loss + ties) - mood) / rest)
    lost = rng.binomial(sizes, below)
    return rng.binomial(sizes - lost, np.clip(above / (1 - below), 0, 1)), lost


def clustered_coverage(
    rng: np.random.Generator,
    *,
    replicates: int,
    sizes: Counts,
    rate: float,
    ties: float,
    correlation: float,
    shape: str,
) -> tuple[float, float]:
    """The share of intervals that hold the rate: clustered by prompt, and by rows as if alone."""
    hits = np.zeros(2)
    for _ in range(replicates):
        wins, losses = prompt_counts(
            rng, sizes=sizes, rate=rate, ties=ties, correlation=correlation, shape=shape
        )
        counts = np.column_stack([wins, losses, sizes - wins - losses]).ravel()
        outcomes = np.repeat(np.tile([WIN_A, WIN_B, TIE], sizes.size), counts)
        prompts = np.repeat(np.repeat(np.arange(sizes.size), 3), counts)
        for place, own in enumerate((prompts, None)):
            found = win_rate(outcomes, prompts=own, circumstances=TELLS_APART)
            hits[place] += (found.low or 0.0) <= rate <= (found.high or 1.0)
    return float(hits[0] / replicates), float(hits[1] / replicates)


def clustered_cells(rng: np.random.Generator, replicates: int) -> Iterator[tuple[Cell, float]]:
    shapes = (("dirichlet", 0.2), ("dirichlet", 0.6), ("normal", 0.4), ("none", 0.0))
    for prompts in (5, 10, 20, 40, 100):
        for size in (3, 10, 0):
            sizes = np.full(prompts, size) if size else 1 + np.arange(prompts) * 7 % 13
            for rate, ties in ((0.5, 0.0), (0.5, 0.4), (0.7, 0.2), (0.9, 0.1), (0.95, 0.0)):
                few = prompts * (1 - rate) < CONTRARY_PROMPTS or prompts < 20
                for shape, correlation in shapes:
                    clustered, rows = clustered_coverage(
                        rng,
                        replicates=replicates,
                        sizes=sizes,
                        rate=rate,
                        ties=ties,
                        correlation=correlation,
                        shape=shape,
                    )
                    name = (
                        f"{prompts:4} prompts of {size or '1-13':>4}, rate {rate:.2f}, "
                        f"ties {ties:.1f}, {shape} {correlation:.1f}" + (" (few)" if few else "")
                    )
                    limits = FEW_PROMPTS_LIMITS if few else LIMITS
                    yield Cell(name, clustered, limits, slack=_noise(replicates)), rows


def _noise(replicates: int) -> float:
    """Two and a half standard errors: of a hundred cells, one in a hundred may err by chance."""
    return 2.5 * math.sqrt(0.05 * 0.95 / replicates)


def length_cells(rng: np.random.Generator, replicates: int) -> Iterator[tuple[Cell, float, float]]:
    """Planted: log-odds at equal length, the effect of length, how much longer A is, prompts."""
    plans = [
        (pairs, size, base, effect, longer)
        for pairs, size in ((50, 1), (100, 1), (400, 1), (200, 5))
        for base, effect, longer in ((0.0, 1.0, 0.0), (0.5, 1.0, 0.7), (2.0, 0.5, 0.5))
    ]
    for pairs, size, base, effect, longer in plans:
        truth = float(expit(base))
        hits, rates, effects, told = 0, [], [], 0
        for _ in range(replicates):
            difference = rng.normal(longer, 1.0, pairs)
            chance = expit(base + effect * np.tanh(difference))
            outcomes = np.where(rng.random(pairs) < chance, WIN_A, WIN_B)
            controlled = length_effect(
                outcomes,
                length_a=1000 + 300 * np.maximum(difference, 0),
                length_b=1000 + 300 * np.maximum(-difference, 0),
                prompts=np.repeat(np.arange(pairs // size), size),
            ).controlled[0]
            if controlled.rate is None or controlled.low is None or controlled.high is None:
                continue
            told += 1
            hits += controlled.low <= truth <= controlled.high
            rates.append(controlled.rate)
            effects.append(controlled.effect or 0.0)
        name = f"{pairs:4} pairs, {size} a prompt, rate {truth:.2f}, A longer by {longer:.1f} sd"
        few = pairs < LATTICE_BELOW
        cell = Cell(
            name + (" (few)" if few else ""),
            hits / told,
            (LIMITS[0], 1.0) if few else LIMITS,
            slack=_noise(told),
        )
        yield cell, float(np.mean(rates)) - truth, float(np.mean(effects)) - effect * math.tanh(1)


def false_alarms(rng: np.random.Generator, replicates: int) -> float:
    """How often a judge without a favourite place is said to have one; prompts of five rows."""
    alarms = 0
    for _ in range(replicates):
        chance = np.repeat(rng.beta(0.5, 0.5, 40), 5)
        first = np.where(rng.random(200) < chance, PASS_A, PASS_B)
        second = np.where(rng.random(200) < chance, PASS_A, PASS_B)
        found = position_bias(first, second, prompts=np.repeat(np.arange(40), 5))
        alarms += found.favours is not None
    return alarms / replicates


def half_tie_widths(pairs: int) -> tuple[float, float]:
    """The width for half ties and a fair rest: by three outcomes, and by Wilson as if by two."""
    quarter, critical = pairs / 4, normal_quantile(0.95)
    three = score_interval(quarter, 2 * quarter, quarter, critical=critical)
    two = score_interval(2 * quarter, 0, 2 * quarter, critical=critical)
    return three[1] - three[0], two[1] - two[0]


def report(title: str, cells: list[Cell], *, say: Callable[[str], None]) -> bool:
    missed = [cell for cell in cells if not cell.held]
    coverages = [cell.coverage for cell in cells]
    say(
        f"{title}: {len(cells)} cells, {min(coverages):.1%} to {max(coverages):.1%}, "
        f"mean {np.mean(coverages):.1%}, {len(missed)} outside their limits"
    )
    for cell in cells:
        if cell.held and not LIMITS[0] <= cell.coverage <= LIMITS[1]:
            say(f"  outside 93 to 97%: {cell.name}: {cell.coverage:.2%}")
    for cell in missed:
        say(f"  MISSED {cell.name}: {cell.coverage:.2%}, limits {cell.limits}")
    return not missed


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--replicates", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    rng = np.random.default_rng(chosen.seed)
    print(f"level 0.95, {chosen.replicates} replicates a simulated cell, seed {chosen.seed}\n")

    alone = list(independent_cells((20, 50, 100, 200, 500, 1000)))
    for cell in alone:
        print(f"  {cell.name:45} {cell.coverage:7.2%}")
    together = []
    print("\n  prompts, by cluster and (rows as if alone)")
    for cell, rows in clustered_cells(rng, chosen.replicates):
        together.append(cell)
        print(f"  {cell.name:65} {cell.coverage:6.1%} ({rows:.1%})", flush=True)
    _, rows = clustered_coverage(
        rng,
        replicates=chosen.replicates,
        sizes=np.full(100, 5),
        rate=0.6,
        ties=0.2,
        correlation=0.25,
        shape="dirichlet",
    )
    print(f"\n  rows as if alone, 100 prompts of 5 with correlation 0.25: {rows:.1%}")
    lengths = []
    print("\n  length-controlled rate: coverage, bias of the rate, bias of the effect")
    for cell, bias, effect_bias in length_cells(rng, chosen.replicates):
        lengths.append(cell)
        print(f"  {cell.name:60} {cell.coverage:6.1%} {bias:+.3f} {effect_bias:+.3f}", flush=True)
    alarms = false_alarms(rng, chosen.replicates)
    three, two = half_tie_widths(1000)
    print(f"\n  a place favoured where there is none: {alarms:.1%} (limit 5.5%)")
    print(f"  width at 1,000 pairs, half of them ties: {three:.4f}; Wilson on halves {two:.4f}\n")

    few = [cell for cell in together if "(few)" in cell.name]
    enough = [cell for cell in together if "(few)" not in cell.name]
    held = [
        report("independent rows", [c for c in alone if "(few)" not in c.name], say=print),
        report("independent rows, few", [c for c in alone if "(few)" in c.name], say=print),
        report("clustered prompts", enough, say=print),
        report("clustered prompts, few", few, say=print),
        report("length-controlled", lengths, say=print),
        alarms <= 0.055 + _noise(chosen.replicates),
    ]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
