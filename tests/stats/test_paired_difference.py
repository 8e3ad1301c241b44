"""Differences of paired shares: in whole pairs and in halves, and how many labels settle them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.rates.paired_difference import PairedDifference, difference_in_halves


def difference(value: float, low: float, high: float, *, pairs: int = 100) -> PairedDifference:
    return PairedDifference(pairs=pairs, value=value, low=low, high=high, reason=None)


@given(st.lists(st.integers(-2, 2), min_size=6, max_size=60))
def test_the_difference_is_the_mean_gain_and_inside_its_interval(gains: list[int]) -> None:
    gain = np.array(gains, dtype=np.int8)
    found = difference_in_halves(gain, np.arange(gain.size), level=0.95)
    assert found.value == pytest.approx(gain.mean() / 2)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.pairs == gain.size


@given(st.lists(st.integers(-2, 2), min_size=6, max_size=40))
def test_turned_round_it_is_its_mirror_image(gains: list[int]) -> None:
    gain = np.array(gains, dtype=np.int8)
    found = difference_in_halves(gain, np.arange(gain.size), level=0.95)
    turned = difference_in_halves(-gain, np.arange(gain.size), level=0.95)
    assert turned.low == pytest.approx(-(found.high or 0.0))
    assert turned.high == pytest.approx(-(found.low or 0.0))
    assert turned.percents("second") == pytest.approx(found.percents("first"))


def test_halves_against_a_coin_have_the_interval_of_the_share() -> None:
    # 54 of 60 right and a coin's half on each: Wilson's limits of 0.9 are 0.799 and 0.953.
    gain = np.array([1] * 54 + [-1] * 6, dtype=np.int8)
    found = difference_in_halves(gain, np.arange(60), level=0.95)
    assert found.low == pytest.approx(0.799 - 0.5, abs=0.001)
    assert found.high == pytest.approx(0.953 - 0.5, abs=0.001)


@pytest.mark.slow
def test_intervals_of_mixed_gains_cover_their_mean() -> None:
    """Whole pairs and halves together, in 600 samples of 60: 95% within three standard errors."""
    rng = np.random.default_rng(20261117)
    values, chances = np.array([-2, -1, 0, 1, 2]), [0.1, 0.15, 0.3, 0.25, 0.2]
    mean = float(values @ chances) / 2
    held = 0
    for _ in range(600):
        gain = rng.choice(values, size=60, p=chances).astype(np.int8)
        found = difference_in_halves(gain, np.arange(60), level=0.95)
        held += (found.low or 0.0) <= mean <= (found.high or 0.0)
    assert held / 600 >= 0.95 - 3 * (0.95 * 0.05 / 600) ** 0.5


@pytest.mark.parametrize(
    ("found", "useful", "needed"),
    [
        # Down to 0 it is 0.25, and the interval reaches 0.3: 2.04 · (0.3 / 0.25)² · 20 = 58.8.
        (difference(0.25, -0.05, 0.55, pairs=20), 1 / 6, 59),
        # No lead at all: up to 1/6 it reaches 0.2 of 0.1667: 2.04 · 1.44 · 50 = 146.9, and an
        # interval of 0.4 is narrower than 1/6 with 5.76 · 50 = 288.
        (difference(0.0, -0.2, 0.2, pairs=50), 1 / 6, 150),
        # Halfway between, only a narrow interval settles it: (0.4 / 0.1667)² · 50 = 288.
        (difference(1 / 12, -0.1167, 0.2833, pairs=50), 1 / 6, 290),
        (difference(0.0, -0.2, 0.2), 0.0, None),  # nothing is better than what is always right
    ],
)
def test_about_so_many_pairs_settle_it(
    found: PairedDifference, useful: float, needed: int | None
) -> None:
    assert found.pairs_to_settle(useful) == needed


@pytest.mark.slow
def test_so_many_labels_settle_it_in_four_of_five_samples() -> None:
    """A judge that is right on 70% of 40 labels: what is said to do, does, in 300 samples."""
    right = np.array([1] * 28 + [-1] * 12, dtype=np.int8)
    needed = difference_in_halves(right, np.arange(40), level=0.95).pairs_to_settle(1 / 6)
    assert needed is not None
    rng = np.random.default_rng(20261117)
    settled = 0
    for _ in range(300):
        gain = np.where(rng.random(needed) < 0.7, 1, -1).astype(np.int8)
        found = difference_in_halves(gain, np.arange(needed), level=0.95)
        settled += (found.low or 0.0) > 0 or (found.high or 0.0) < 1 / 6
    assert settled / 300 >= 0.8 - 3 * (0.8 * 0.2 / 300) ** 0.5
