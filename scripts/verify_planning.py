"""Plans, measured: does a gate pass as often as `evenhand plan` says it will?

    python -m scripts.verify_planning [--runs 20000] [--seed 0]

Prints the tables of docs/stopping.md and ends with 1 where the power of a planned run misses the
power that was asked for. The gate's rule is written here a second time, as a test of many simulated
runs at once; it shares no code with the planner. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from itertools import product
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INCONSISTENT as FLIP
from evenhand.contract.codes import WIN_A, WIN_B
from evenhand.stats.clusters import normal_quantile
from evenhand.stats.rates.win_rate import win_rate
from evenhand.stats.stopping.planning import Certainty, PairPlan, StudyDesign, plan_pairs

Counts: TypeAlias = NDArray[np.float64]
Facts: TypeAlias = NDArray[np.bool_]

MOST_OFF = 0.03
# With fewer decided pairs a plan may have more power than asked for: counts come in steps, and at
# 0.5 the exact sign test is planned for, which is stricter than the gate's score interval.
FEW_DECIDED = 150
LARGEST = 20_000
THRESHOLDS = (0.4, 0.45, 0.48, 0.5, 0.55, 0.6)
WIN_RATES = (0.45, 0.5, 0.55, 0.6, 0.7)
INCONSISTENT = (0.0, 0.1, 0.2, 0.3, 0.4)
TIES = (0.0, 0.2, 0.4)


def refuses(wins: Counts, losses: Counts, pairs: Counts, rates: Counts, level: float) -> Facts:
    """Whether the two-sided score test refuses each rate from below.

    That is: whether the lower bound of the interval lies above it. The share of losses is where
    the likelihood of the three counts is greatest if the mean is that rate.
    """
    lead = 2 * rates - 1
    halves = pairs - wins - losses
    linear = wins * (1 - lead) - 2 * halves * lead + losses * (1 - 3 * lead)
    constant = losses * lead * (1 - lead)
    lost = (linear + np.sqrt(np.maximum(linear**2 + 8 * pairs * constant, 0))) / (4 * pairs)
    lost = np.maximum(lost, np.maximum(0, -lead))
    variance = np.maximum(2 * lost + lead - lead**2, 0)
    distance = wins - losses - pairs * lead
    critical = normal_quantile(level)
    return np.asarray((distance > 0) & (distance**2 > critical**2 * pairs * variance))


def half_count_rates(wins: Counts, losses: Counts, flips: Counts, threshold: float) -> Counts:
    """What the half count's bound must exceed in each run; 0.5 where half of the pairs flip."""
    if threshold >= 0.5:
        return np.full(wins.shape, threshold)
    named = np.maximum(wins + losses + flips, 1)
    share = flips / named
    share = share + NormalDist().inv_cdf(0.75) * np.sqrt(share * (1 - share) / named)
    return np.asarray(0.5 - (0.5 - threshold) * np.maximum(1 - 2 * share, 0))


def passes(
    wins: Counts,
    losses: Counts,
    flips: Counts,
    pairs: Counts,
    *,
    threshold: float,
    level: float = 0.95,
) -> Facts:
    """The gate on runs of single pairs: the half count, and the count without flips."""
    needed = half_count_rates(wins, losses, flips, threshold)
    shown = refuses(wins, losses, pairs, needed, level)
    whole = np.full(wins.shape, threshold)
    kept = np.maximum(pairs - flips, 1)
    return np.asarray(shown & refuses(wins, losses, kept, whole, level))


def simulated_power(plan: PairPlan, *, runs: int, seed: int) -> float:
    """A judge that follows the position in the share of pairs that is inconsistent."""
    shape, win_rate = plan.shape, plan.win_rate
    agreeing = 1 - shape.inconsistent_share
    won = agreeing * win_rate - shape.tie_share / 2
    lost = agreeing * (1 - win_rate) - shape.tie_share / 2
    shares = np.clip([won, lost, shape.inconsistent_share, shape.tie_share], 0, 1)
    drawn = np.random.default_rng(seed).multinomial(plan.prompts, shares / shares.sum(), size=runs)
    wins, losses, flips, _ = drawn.T.astype(np.float64)
    pairs = np.full(runs, float(plan.prompts))
    level = 1 - plan.certainty.alpha
    found = passes(wins, losses, flips, pairs, threshold=plan.min_win_rate, level=level)
    return float(found.mean())


def noisy_power(preference: float, plan: PairPlan, *, runs: int, seed: int) -> float:
    """A judge that errs in each pass by itself, so often that as many pairs are inconsistent."""
    errs = (1 - math.sqrt(1 - 2 * plan.shape.inconsistent_share)) / 2
    won = preference * (1 - errs) ** 2 + (1 - preference) * errs**2
    lost = (1 - preference) * (1 - errs) ** 2 + preference * errs**2
    shares = [won, lost, 1 - won - lost]
    drawn = np.random.default_rng(seed).multinomial(plan.prompts, shares, size=runs)
    wins, losses, flips = drawn.T.astype(np.float64)
    pairs = np.full(runs, float(plan.prompts))
    return float(passes(wins, losses, flips, pairs, threshold=plan.min_win_rate).mean())


def clustered_power(plan: PairPlan, *, correlation: float, runs: int, seed: int) -> float:
    """Rows of a prompt share its own preference (beta); the interval is that of reports."""
    rng = np.random.default_rng(seed)
    shape, size, passed = plan.shape, 1 / correlation - 1, 0
    for _ in range(runs):
        own = rng.beta(plan.win_rate * size, (1 - plan.win_rate) * size, plan.prompts)
        flips = rng.binomial(shape.rows_per_prompt, shape.inconsistent_share, plan.prompts)
        kept = shape.rows_per_prompt - flips
        wins = rng.binomial(kept, own).astype(np.float64)
        losses = kept - wins
        counts = np.column_stack([wins, losses, flips]).astype(np.int64)
        kinds = np.tile([WIN_A, WIN_B, FLIP], plan.prompts)
        prompts = np.repeat(np.arange(plan.prompts), 3)
        times = counts.ravel()
        found = win_rate(np.repeat(kinds, times), prompts=np.repeat(prompts, times))
        passed += found.low is not None and found.low > plan.min_win_rate
    return passed / runs


def plans(power: float) -> Iterator[PairPlan]:
    certainty = Certainty(power=power)
    for threshold, rate, inconsistent, ties in product(THRESHOLDS, WIN_RATES, INCONSISTENT, TIES):
        shape = StudyDesign(tie_share=ties, inconsistent_share=inconsistent)
        if threshold < 0.5 and inconsistent >= (1 - ties) / 2:
            continue
        # Win rates that barely pass need no table: their sizes are beyond any run.
        if not shape.lowest_win_rate(threshold) + 0.01 < rate <= shape.highest_win_rate:
            continue
        plan = plan_pairs(rate, min_win_rate=threshold, certainty=certainty, shape=shape)
        if plan.prompts <= LARGEST:
            yield plan


def is_small(plan: PairPlan) -> bool:
    return plan.pairs * plan.shape.decisive_share < FEW_DECIDED


def describe(plan: PairPlan) -> str:
    shape = plan.shape
    return (
        f"{plan.min_win_rate} | {plan.win_rate} | {shape.inconsistent_share:.0%} "
        f"| {shape.tie_share:.0%} | {plan.pairs:,}"
    )


def check_grid(runs: int, seed: int) -> list[str]:
    missed: list[str] = []
    print("\n| gate at | power asked | decided pairs | plans | power: lowest | highest | mean |")
    print("|---|---|---|---|---|---|---|")
    for power in (0.8, 0.9):
        seen = [(plan, simulated_power(plan, runs=runs, seed=seed)) for plan in plans(power)]
        for threshold, few in product(THRESHOLDS, (False, True)):
            found = [
                (plan, real)
                for plan, real in seen
                if plan.min_win_rate == threshold and is_small(plan) == few
            ]
            if not found:
                continue
            real = [each for _, each in found]
            size = f"below {FEW_DECIDED}" if few else f"{FEW_DECIDED} and more"
            print(
                f"| {threshold} | {power:.0%} | {size} | {len(found)} | {min(real):.1%} "
                f"| {max(real):.1%} | {np.mean(real):.1%} |",
                flush=True,
            )
            for plan, each in found:
                if each < power - MOST_OFF or (not few and each > power + MOST_OFF):
                    missed.append(f"{describe(plan)}: {each:.1%}, not {power:.0%}")
    return missed


def check_examples(runs: int, seed: int) -> list[str]:
    missed = []
    print(f"\n| gate at | true win rate | inconsistent | ties | pairs | power, {runs:,} runs |")
    print("|---|---|---|---|---|---|")
    for threshold, rate, inconsistent, ties in (
        (0.5, 0.6, 0.0, 0.0), (0.5, 0.6, 0.3, 0.0), (0.5, 0.55, 0.15, 0.2),
        (0.45, 0.5, 0.0, 0.0), (0.45, 0.5, 0.15, 0.2), (0.45, 0.5, 0.3, 0.0),
        (0.55, 0.6, 0.15, 0.2), (0.6, 0.7, 0.3, 0.0),
    ):  # fmt: skip
        shape = StudyDesign(tie_share=ties, inconsistent_share=inconsistent)
        plan = plan_pairs(rate, min_win_rate=threshold, shape=shape)
        real = simulated_power(plan, runs=runs, seed=seed)
        print(f"| {describe(plan)} | {real:.1%} |", flush=True)
        if abs(real - 0.8) > MOST_OFF:
            missed.append(f"{describe(plan)}: {real:.1%}, not 80%")
    return missed


def check_noise(runs: int, seed: int) -> list[str]:
    """A noisy judge is planned for by its preference where its orders agree."""
    missed = []
    print("\n| gate at | without noise | inconsistent | where orders agree | pairs | power |")
    print("|---|---|---|---|---|---|")
    for threshold, preference, share in ((0.5, 0.6, 0.3), (0.5, 0.6, 0.15), (0.45, 0.5, 0.3)):
        agreed = 0.5 + (preference - 0.5) * math.sqrt(1 - 2 * share) / (1 - share)
        plan = plan_pairs(
            agreed, min_win_rate=threshold, shape=StudyDesign(inconsistent_share=share)
        )
        real = noisy_power(preference, plan, runs=runs, seed=seed)
        print(
            f"| {threshold} | {preference} | {share:.0%} | {agreed:.3f} | {plan.pairs:,} "
            f"| {real:.1%} |"
        )
        if abs(real - 0.8) > MOST_OFF:
            missed.append(f"noise, {describe(plan)}: {real:.1%}, not 80%")
    return missed


def check_rows(runs: int, seed: int) -> list[str]:
    """The runs are fewer here: each has an interval of its own."""
    runs, correlation = max(200, runs // 10), 0.3
    missed = []
    print(
        "\n| gate at | true win rate | inconsistent | rows a prompt | prompts "
        f"| power, {runs:,} runs |"
    )
    print("|---|---|---|---|---|---|")
    for threshold, rate, inconsistent in ((0.45, 0.5, 0.2), (0.55, 0.65, 0.1)):
        shape = StudyDesign(
            inconsistent_share=inconsistent,
            rows_per_prompt=4,
            correlation=score_correlation(rate, inconsistent, correlation),
        )
        plan = plan_pairs(rate, min_win_rate=threshold, shape=shape)
        real = clustered_power(plan, correlation=correlation, runs=runs, seed=seed)
        print(f"| {threshold} | {rate} | {inconsistent:.0%} | 4 | {plan.prompts} | {real:.1%} |")
        if abs(real - 0.8) > MOST_OFF + 3 * math.sqrt(0.16 / runs):
            missed.append(f"rows, {describe(plan)}: {real:.1%}, not 80%")
    return missed


def score_correlation(rate: float, inconsistent: float, correlation: float) -> float:
    """Of scores 1, one half and 0, where flips fall by themselves and winners are correlated."""
    agreeing, lead = 1 - inconsistent, 2 * rate - 1
    shared = agreeing**2 * correlation * (1 - lead**2)
    return shared / (agreeing - (agreeing * lead) ** 2)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    missed = check_examples(options.runs, options.seed)
    missed += check_grid(options.runs, options.seed)
    missed += check_noise(options.runs, options.seed)
    missed += check_rows(options.runs, options.seed)
    for one in missed:
        print(f"MISSED {one}")
    print("\nall limits kept" if not missed else f"\n{len(missed)} limits missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
