"""Wilson's interval against the published examples."""

from __future__ import annotations

import pytest

from evenhand.stats.proportions import wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_published_intervals_come_out(
    successes: int, trials: int, low: float, high: float
) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_nothing_counted_has_no_interval() -> None:
    assert wilson_interval(0, 0) is None


def test_more_successes_than_trials_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="3 successes in 2 trials"):
        wilson_interval(3, 2)
