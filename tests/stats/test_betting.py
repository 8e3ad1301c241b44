"""The capital of a bettor: fair under the claim, exactly, and growing where it is false."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.always_valid import BROAD_BETS, Bets, planned_bets

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=30)


def naive_capital(bets: Bets, scores: list[float], claim: float) -> float:
    """Coin by coin, as one would on paper."""
    total = 0.0
    for stake in bets.stakes:
        on_a = on_b = 1.0
        for score in scores:
            on_a *= 1 - stake + stake * score / claim
            on_b *= 1 - stake + stake * (1 - score) / (1 - claim)
        total += (on_a + on_b) / 2
    return total / len(bets.stakes)


def test_one_win_against_a_half_moves_each_stake_by_itself() -> None:
    # A stake of 0.2 on A becomes 1 - 0.2 + 0.2/0.5 = 1.2, on B 0.8: together still 1.
    assert math.exp(Bets((0.2,)).log_capital({1.0: 1}, 0.5)) == pytest.approx(1.0)
    # Two wins: (1.44 + 0.64) / 2 = 1.04.
    assert math.exp(Bets((0.2,)).log_capital({1.0: 2}, 0.5)) == pytest.approx(1.04)


def test_ties_are_no_evidence_against_a_half() -> None:
    assert BROAD_BETS.log_capital({0.5: 1000}, 0.5) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("chances", "claim"),
    [
        ({1.0: Fraction(1, 2), 0.0: Fraction(1, 2)}, 0.5),
        ({1.0: Fraction(1, 5), 0.5: Fraction(3, 5), 0.0: Fraction(1, 5)}, 0.5),
        ({1.0: Fraction(1, 3), 0.25: Fraction(2, 3)}, 0.5),
        ({1.0: Fraction(1, 4), 0.0: Fraction(3, 4)}, 0.25),
    ],
)
def test_the_mean_capital_over_all_sequences_is_one(
    chances: dict[float, Fraction], claim: float
) -> None:
    bets = planned_bets(100)
    mean = 0.0
    for sequence in itertools.product(chances, repeat=6):
        chance = math.prod(chances[score] for score in sequence)
        mean += float(chance) * math.exp(bets.log_capital(Counter(sequence), claim))
    assert mean == pytest.approx(1.0, abs=1e-12)


def test_the_chance_of_ever_reaching_twenty_is_at_most_a_twentieth() -> None:
    bets, reached = planned_bets(12), 0
    for sequence in itertools.product((0.0, 1.0), repeat=12):
        if any(naive_capital(bets, list(sequence[:n]), 0.5) >= 20 for n in range(1, 13)):
            reached += 1
    assert 0 < reached / 2**12 <= 1 / 20


@given(scores=SCORES, claim=st.floats(0.05, 0.95))
def test_capital_equals_the_naive_product(scores: list[float], claim: float) -> None:
    fast = BROAD_BETS.log_capital(Counter(scores), claim)
    assert fast == pytest.approx(math.log(naive_capital(BROAD_BETS, scores, claim)), abs=1e-9)


@given(scores=SCORES, low=st.floats(0.02, 0.5), high=st.floats(0.5, 0.98))
def test_the_logarithm_of_the_capital_is_convex_in_the_claim(
    scores: list[float], low: float, high: float
) -> None:
    counts = Counter(scores)
    ends = BROAD_BETS.log_capital(counts, low) + BROAD_BETS.log_capital(counts, high)
    assert BROAD_BETS.log_capital(counts, (low + high) / 2) <= ends / 2 + 1e-9


@given(prompts=st.integers(1, 10**7))
def test_stakes_lie_between_nothing_and_all(prompts: int) -> None:
    stakes = planned_bets(prompts).stakes
    assert 0 < stakes[0] < stakes[-1] < 1
    assert list(stakes) == sorted(stakes)
