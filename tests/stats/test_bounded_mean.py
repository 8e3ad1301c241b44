"""The score interval of a bounded mean is Wilson's and Tango's where those apply."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.intervals import MOST_ATOMS, mean_interval, score_interval

counts = st.integers(0, 40)


@given(wins=counts, ties=counts, losses=counts, critical=st.floats(0.5, 4))
def test_three_outcomes_have_tangos_interval(
    wins: int, ties: int, losses: int, critical: float
) -> None:
    if wins + ties + losses == 0:
        return
    values = np.repeat([1.0, 0.0, -1.0], [wins, ties, losses])
    low, high = mean_interval(
        values, np.ones(values.size), ends=(-1, 1), size=values.size, critical=critical
    )
    expected = score_interval(wins, ties, losses, critical=critical)
    assert ((1 + low) / 2, (1 + high) / 2) == pytest.approx(expected, abs=1e-9)


def test_an_error_that_was_not_seen_may_yet_be_there() -> None:
    # Wilson's end for 0 of 30: 1.96^2 / (30 + 1.96^2), here on a range of 2
    low, high = mean_interval(np.zeros(30), np.ones(30), ends=(-2, 2), size=30, critical=1.96)
    assert high == pytest.approx(2 * 3.8416 / 33.8416)
    assert low == -high


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=50))
def test_negated_values_mirror_the_interval(values: list[float]) -> None:
    column, even = np.array(values), np.ones(len(values))
    low, high = mean_interval(column, even, ends=(-1, 1), size=column.size, critical=1.96)
    other = mean_interval(-column, even, ends=(-1, 1), size=column.size, critical=1.96)
    assert other == (-high, -low)
    assert -1 <= low <= column.mean() + 1e-12
    assert column.mean() - 1e-12 <= high <= 1


def test_many_distinct_values_are_binned_without_a_difference() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, 5 * MOST_ATOMS)
    low, high = mean_interval(
        values, np.ones(values.size), ends=(-1, 1), size=values.size, critical=1.96
    )
    # Many values: the interval is the normal one
    half = 1.96 * float(values.std()) / np.sqrt(values.size)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=1e-4)
