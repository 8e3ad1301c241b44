"""Power and expected sizes against sums over all outcomes, and against simulated runs."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import multinomial
from scripts.verify_planning import passes, refuses

from evenhand.stats.clusters import normal_quantile
from evenhand.stats.intervals import score_interval
from evenhand.stats.stopping.planning import (
    OutcomeShares,
    TruePair,
    fixed_chances,
    gate_power,
    sequential_chances,
)
from evenhand.stats.stopping.sequential import SequentialPlan, follow


def naive_fixed_power(prompts: int, win: float, loss: float, alpha: float) -> float:
    power = 0.0
    for wins in range(prompts + 1):
        for losses in range(prompts + 1 - wins):
            halves = prompts - wins - losses
            if wins <= losses:
                continue
            decisive = wins + losses
            tail = sum(comb(decisive, k) for k in range(losses + 1)) / 2**decisive
            if 2 * tail <= alpha:
                ways = comb(prompts, wins) * comb(prompts - wins, losses)
                power += ways * win**wins * loss**losses * (1 - win - loss) ** halves
    return power


@pytest.mark.parametrize(("rate", "ties"), [(0.7, 0.0), (0.7, 0.3), (0.6, 0.6), (0.9, 0.2)])
def test_fixed_power_is_the_sum_over_all_counts(rate: float, ties: float) -> None:
    for prompts in (4, 6, 17, 40):
        expected = naive_fixed_power(prompts, rate - ties / 2, 1 - rate - ties / 2, 0.05)
        found = fixed_chances(prompts, TruePair(rate, 1 - ties), alpha=0.05).power
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "ties"), [(0.6, 0.0), (0.65, 0.4)])
def test_sequential_chances_are_those_of_the_real_test(rate: float, ties: float) -> None:
    plan, runs = SequentialPlan(planned=150), 600
    rng = np.random.default_rng(0)
    win = rate - ties / 2
    named, prompts = 0, 0
    for _ in range(runs):
        thrown = rng.random(150)
        scores = np.where(thrown < win, 1.0, np.where(thrown < win + ties, 0.5, 0.0))
        said = follow(plan, scores.tolist()).final()
        named += said.decided == "A"
        prompts += said.prompts
    chances = sequential_chances(plan, TruePair(rate, 1 - ties))
    # Four standard errors: of a share at most 2/√600, of a mean with deviation below 60 10.
    assert named / runs == pytest.approx(chances.power, abs=0.08)
    assert prompts / runs == pytest.approx(chances.prompts, abs=10)


@pytest.mark.parametrize("threshold", [0.35, 0.45, 0.6])
def test_gate_power_is_about_the_sum_over_all_counts(threshold: float) -> None:
    pairs = 70
    counts = np.array(
        [
            (wins, losses, flips, pairs - wins - losses - flips)
            for wins in range(pairs + 1)
            for losses in range(pairs + 1 - wins)
            for flips in range(pairs + 1 - wins - losses)
        ]
    )
    wins, losses, flips, _ = counts.T.astype(float)
    passed = passes(wins, losses, flips, np.full(len(wins), float(pairs)), threshold=threshold)
    for won, lost, flipped in ((0.5, 0.2, 0.2), (0.55, 0.45, 0.0), (0.6, 0.1, 0.1), (0.4, 0.3, 0)):
        tied = max(0.0, 1 - won - lost - flipped)
        exact = multinomial.pmf(counts, pairs, [won, lost, flipped, tied]) @ passed
        shares = OutcomeShares(won, lost, tied, flipped)
        found = gate_power(pairs, shares, threshold=threshold, alpha=0.05)
        assert found == pytest.approx(exact, abs=0.05)  # normal; a step of 70 pairs is so large


def test_second_implementation_of_the_score_test_is_that_of_the_interval() -> None:
    rng = np.random.default_rng(0)
    critical = normal_quantile(0.95)
    for wins, losses, halves in rng.integers(1, 40, (100, 3)):
        low, _ = score_interval(wins, halves, losses, critical=critical)
        pairs = np.full(2, float(wins + losses + halves))
        around = np.clip([low - 1e-6, low + 1e-6], 1e-9, 1 - 1e-9)
        below, above = refuses(np.full(2, wins), np.full(2, losses), pairs, around, 0.95)
        assert (below, above) == (True, False)


def test_the_issue_is_met_at_805_prompts() -> None:
    plan = SequentialPlan(planned=805)
    for rate, least in ((0.6, 0.55), (0.7, 0.9), (0.8, 0.95)):
        assert 1 - sequential_chances(plan, TruePair(rate, 1.0)).prompts / 805 >= least
    fixed = fixed_chances(805, TruePair(0.55, 1.0), alpha=0.05).power
    assert fixed - sequential_chances(plan, TruePair(0.55, 1.0)).power <= 0.03


@pytest.mark.parametrize("ties", [0.0, 0.3, 0.6])
def test_without_a_difference_either_side_is_named_in_at_most_alpha(ties: float) -> None:
    plan = SequentialPlan(planned=300)
    # `power` is that of naming A; B is named as often.
    assert 2 * sequential_chances(plan, TruePair(0.5, 1 - ties)).power <= 0.05


def test_long_plans_are_scaled_and_stay_close() -> None:
    # Twice the prompts at 1/√2 of the difference: about the same power, twice the prompts.
    short = sequential_chances(SequentialPlan(planned=3000), TruePair(0.525, 1.0))
    long = sequential_chances(SequentialPlan(planned=6000), TruePair(0.5 + 0.025 / 2**0.5, 1.0))
    assert long.power == pytest.approx(short.power, abs=0.01)
    assert long.prompts == pytest.approx(2 * short.prompts, rel=0.02)
