"""The test that stops early, measured: how often it errs, what it saves, what power it keeps.

    python -m scripts.verify_sequential [--runs 20000] [--seed 0]

Prints the tables of docs/stopping.md and ends with 1 where a limit is missed. Runs are simulated
with capitals of their own, bet by bet, and a part of them is given to the real test, which must
decide the same at the same prompt. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.stopping.final_test import AlphaSpending, run_final_test
from evenhand.stats.stopping.planning import TruePair, fixed_chances, sequential_chances
from evenhand.stats.stopping.sequential import SequentialPlan, follow

Scores: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[np.random.Generator, int, int], Scores]  # runs × prompts

PLANNED = 805
ALPHA = 0.05
UNDER_WAY = 100  # pairs that are out when a decision falls, with 128 in flight
MOST_FALSE = 0.055
LEAST_SAVED = {0.60: 0.55, 0.70: 0.90, 0.80: 0.95}
MOST_POWER_LOST = 0.03
LEAST_COVERED = 0.95 - 0.005  # less three standard errors of 20,000 runs
_AT_ONCE = 2_000
_COMPARED = 20  # runs of each batch that the real test follows as well


@dataclass(frozen=True, slots=True)
class Outcome:
    """Many simulated runs: who was named how often, after how many prompts."""

    named_a: float
    named_b: float
    prompts: NDArray[np.int64]
    covered: float

    @property
    def named(self) -> float:
        return self.named_a + self.named_b

    def saved(self, planned: int, *, under_way: int = 0) -> float:
        return float(1 - np.minimum(self.prompts + under_way, planned).mean() / planned)


def single_pairs(win_rate: float, tie_share: float) -> Draw:
    win = win_rate - tie_share / 2

    def draw(rng: np.random.Generator, runs: int, prompts: int) -> Scores:
        thrown = rng.random((runs, prompts))
        return np.where(thrown < win, 1.0, np.where(thrown < win + tie_share, 0.5, 0.0))

    return draw


def prompt_means(win_rate: float, *, rows: int, correlation: float, tie_share: float) -> Draw:
    """Rows of a prompt share its own win rate, which varies from prompt to prompt (beta)."""
    size = 1 / correlation - 1

    def draw(rng: np.random.Generator, runs: int, prompts: int) -> Scores:
        own = rng.beta(win_rate * size, (1 - win_rate) * size, (runs, prompts))
        total = np.zeros((runs, prompts))
        for _ in range(rows):
            row = (rng.random((runs, prompts)) < own).astype(float)
            row[rng.random((runs, prompts)) < tie_share] = 0.5
            total += row
        return total / rows

    return draw


def lopsided(rng: np.random.Generator, runs: int, prompts: int) -> Scores:
    """A mean of one half without symmetry: two in three prompts 0.25, one in three 1."""
    return np.where(rng.random((runs, prompts)) < 2 / 3, 0.25, 1.0)


def simulate(plan: SequentialPlan, draw: Draw, *, truth: float, runs: int, seed: int) -> Outcome:
    rng = np.random.default_rng(seed)
    named: Counter[str | None] = Counter()
    covered = 0
    prompts = []
    for first in range(0, runs, _AT_ONCE):
        scores = draw(rng, min(_AT_ONCE, runs - first), plan.planned)
        stops = first_crossings(plan, scores)
        prompts.append(stops)
        for number in np.argsort([np.abs(run - 0.5).sum() for run in scores]):
            at = int(stops[number])
            side, holds = _decide(plan, scores[number, :at], truth)
            named[side] += 1
            covered += holds
            if number < _COMPARED:
                _compare(plan, scores[number], at, side)
    return Outcome(named["A"] / runs, named["B"] / runs, np.concatenate(prompts), covered / runs)


def first_crossings(plan: SequentialPlan, scores: Scores) -> NDArray[np.int64]:
    """Where each run's capital, multiplied out naively, first reaches 1/alpha, or the end."""
    stakes = np.array(plan.bets.stakes)[:, None]
    capital_a = np.full((len(stakes), len(scores)), 0.5 / len(stakes))
    capital_b = capital_a.copy()
    stops = np.full(len(scores), plan.planned)
    running = np.ones(len(scores), dtype=bool)
    for place in range(plan.planned):
        gain = stakes * (2 * scores[:, place] - 1)
        capital_a *= 1 + gain
        capital_b *= 1 - gain
        crossed = running & (capital_a.sum(0) + capital_b.sum(0) >= 1 / plan.betting_alpha)
        stops[crossed] = place + 1
        running &= ~crossed
    return stops


def _decide(plan: SequentialPlan, scores: Scores, truth: float) -> tuple[str | None, bool]:
    """The side named, and whether the interval that goes with it holds the truth."""
    counts = Counter(scores.tolist())
    side = "A" if scores.mean() > 0.5 else "B"
    enough = -math.log(plan.betting_alpha)
    if len(scores) < plan.planned or plan.bets.log_capital(counts, 0.5) >= enough:
        return side, plan.bets.log_capital(counts, truth) < enough
    test = run_final_test(counts, AlphaSpending(plan.alpha, plan.betting_alpha, plan.bets))
    return (side if test.p_value <= plan.alpha else None), test.low <= truth <= test.high


def _compare(plan: SequentialPlan, scores: Scores, at: int, expected: str | None) -> None:
    """Ends the script where the real test, given every score, says anything else."""
    said = follow(plan, scores.tolist()).final()
    if (said.prompts, said.decided) != (at, expected):
        raise SystemExit(
            f"the real test said {said.decided} at {said.prompts}, not {expected} at {at}"
        )


def check_errors(plan: SequentialPlan, runs: int, seed: int) -> list[str]:
    missed = []
    print(f"\n| no difference, {runs:,} runs | a winner named | interval holds 0.5 |")
    print("|---|---|---|")
    cases: dict[str, Draw] = {
        "no ties": single_pairs(0.5, 0.0),
        "30% ties": single_pairs(0.5, 0.3),
        "60% ties": single_pairs(0.5, 0.6),
        "5 rows a prompt, correlation 0.3": prompt_means(
            0.5, rows=5, correlation=0.3, tie_share=0.2
        ),
        "lopsided: 0.25 twice as often as 1": lopsided,
    }
    for name, draw in cases.items():
        seen = simulate(plan, draw, truth=0.5, runs=runs, seed=seed)
        print(f"| {name} | {seen.named:.2%} | {seen.covered:.2%} |", flush=True)
        if seen.named > MOST_FALSE:
            missed.append(f"{name}: {seen.named:.2%} false, at most {MOST_FALSE:.1%}")
    return missed


def check_savings(plan: SequentialPlan, runs: int, seed: int) -> list[str]:
    missed = []
    print(
        f"\n| win rate | ties | saved, exact | saved, {runs:,} runs | with {UNDER_WAY} under way "
        "| power | fixed test | interval holds the rate |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for rate, ties in (
        (0.55, 0.0), (0.60, 0.0), (0.70, 0.0), (0.80, 0.0), (0.55, 0.3), (0.60, 0.3), (0.70, 0.3)
    ):  # fmt: skip
        pair = TruePair(rate, 1 - ties)
        exact = sequential_chances(plan, pair)
        fixed = fixed_chances(plan.planned, pair, alpha=plan.alpha).power
        seen = simulate(plan, single_pairs(rate, ties), truth=rate, runs=runs, seed=seed)
        saved = seen.saved(plan.planned)
        print(
            f"| {rate:.2f} | {ties:.0%} | {1 - exact.prompts / plan.planned:.1%} | {saved:.1%} "
            f"| {seen.saved(plan.planned, under_way=UNDER_WAY):.1%} "
            f"| {exact.power:.2%} | {fixed:.2%} | {seen.covered:.1%} |",
            flush=True,
        )
        if not ties and saved < LEAST_SAVED.get(rate, 0):
            missed.append(f"{rate}: {saved:.1%} saved, at least {LEAST_SAVED[rate]:.0%}")
        if fixed - min(exact.power, seen.named_a + 0.01) > MOST_POWER_LOST:
            missed.append(f"{rate}: power {exact.power:.2%} against {fixed:.2%}")
        if seen.covered < LEAST_COVERED:
            missed.append(f"{rate}: the interval holds the rate in {seen.covered:.2%} of runs")
    return missed


def show_shares(planned: int) -> None:
    """What other parts of alpha on the looks would give; exact."""
    print("\n| alpha on looks | power at 0.55 | saved at 0.55 | 0.60 | 0.70 | 0.80 |")
    print("|---|---|---|---|---|---|")
    for share in (0.05, 0.10, 0.20, 0.25, 0.30, 0.40, 0.60, 0.80):
        plan = SequentialPlan(planned=planned, alpha=ALPHA, betting_share=share)
        seen = [sequential_chances(plan, TruePair(rate, 1.0)) for rate in (0.55, 0.6, 0.7, 0.8)]
        saved = " | ".join(f"{1 - one.prompts / planned:.1%}" for one in seen)
        print(f"| {share:.0%} of it | {seen[0].power:.2%} | {saved} |")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    plan = SequentialPlan(planned=PLANNED, alpha=ALPHA)
    print(
        f"planned {plan.planned}, alpha {plan.alpha}, {plan.betting_share:.0%} of it on looks "
        f"after every prompt, seed {options.seed}"
    )
    missed = check_errors(plan, options.runs, options.seed)
    missed += check_savings(plan, options.runs, options.seed)
    show_shares(plan.planned)
    for one in missed:
        print(f"MISSED {one}")
    print("\nall limits kept" if not missed else f"\n{len(missed)} limits missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
