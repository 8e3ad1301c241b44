"""The walk's chances against counting all sequences of coins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evenhand.stats.always_valid import Bets, planned_bets
from evenhand.stats.stopping.final_test import fair_end, fair_ends, stopping_leads, walk

LENGTH = 14
BETS = planned_bets(LENGTH)
ALPHA = 0.1


def naive_stop(sequence: tuple[int, ...]) -> tuple[int | None, int]:
    """Where the capital first reaches 1/alpha, and the lead there or at the end."""
    on_a, on_b = [1.0] * len(BETS.stakes), [1.0] * len(BETS.stakes)
    lead = 0
    for place, step in enumerate(sequence, 1):
        lead += step
        on_a = [held * (1 + step * stake) for held, stake in zip(on_a, BETS.stakes, strict=True)]
        on_b = [held * (1 - step * stake) for held, stake in zip(on_b, BETS.stakes, strict=True)]
        if (sum(on_a) + sum(on_b)) / (2 * len(BETS.stakes)) >= 1 / ALPHA:
            return place, lead
    return None, lead


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.5, 0.7])
def test_a_walk_is_the_sum_over_all_sequences(chance: float) -> None:
    leads = stopping_leads(BETS, alpha=ALPHA, longest=LENGTH)
    found = walk(leads, chance, range(LENGTH, LENGTH + 1))
    stops_a, stops_b = np.zeros(LENGTH + 1), np.zeros(LENGTH + 1)
    ends: dict[int, float] = {}
    for sequence in itertools.product((1, -1), repeat=LENGTH):
        wins = sequence.count(1)
        weight = chance**wins * (1 - chance) ** (LENGTH - wins)
        place, lead = naive_stop(sequence)
        if place is None:
            ends[lead] = ends.get(lead, 0.0) + weight
        elif lead > 0:
            stops_a[place] += weight
        else:
            stops_b[place] += weight
    assert stops_a.sum() > 0
    np.testing.assert_allclose(found.stops_a, stops_a, atol=1e-12)
    np.testing.assert_allclose(found.stops_b, stops_b, atol=1e-12)
    last, chances = found.ends[LENGTH]
    assert {int(k): pytest.approx(v) for k, v in zip(last, chances, strict=True) if v} == ends


def test_the_final_test_spends_what_the_looks_left_and_no_more() -> None:
    leads = stopping_leads(BETS, alpha=ALPHA / 4, longest=LENGTH)
    for pairs, end in fair_ends(leads, range(LENGTH + 1)).items():
        critical = end.critical_lead(ALPHA)
        assert end.used <= ALPHA / 4
        if critical <= pairs:
            assert end.p_value(critical) <= ALPHA
        if critical - 2 >= 0:
            assert end.p_value(critical - 2) > ALPHA
        # Chances of stopping, and of all ends, add up to 1.
        assert end.p_value(pairs % 2) == pytest.approx(1.0)


def test_without_looks_it_is_the_sign_test() -> None:
    # A stake of almost nothing never gains: five coins, all heads or all tails, 2/32.
    end = fair_end(5, stopping_leads(Bets((1e-9,)), alpha=0.01, longest=5))
    assert end.used == 0
    assert end.p_value(5) == pytest.approx(2 / 32)
    assert end.p_value(-3) == pytest.approx(12 / 32)
    assert end.critical_lead(0.07) == 5
    assert end.critical_lead(0.05) == 7  # more than there are: nothing decides
    assert end.critical_z(0.07) == pytest.approx(4 / math.sqrt(5))


def test_the_level_of_the_whole_is_exact_at_805() -> None:
    bets = planned_bets(805)
    end = fair_end(805, stopping_leads(bets, alpha=0.0125, longest=805))
    assert 0.009 < end.used <= 0.0125
    assert end.p_value(end.critical_lead(0.05)) <= 0.05
    # The next lead inwards adds 2·P(lead), at most 2·√(2/(805π))·exp(-z²/2) ≈ 0.0075.
    assert end.p_value(end.critical_lead(0.05)) > 0.05 - 0.0075
