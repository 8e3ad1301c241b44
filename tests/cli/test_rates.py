from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.cli.figures import SCALE, bar, interval, percent
from evenhand.messages.numbers import p_value, rate


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((0, "0.00"), (1, "1.00"), (0.5, "0.50"), (0.666, "0.67"), (0.25, "0.25")),
        *((0.998, "0.998"), (0.9996, "0.9996"), (0.004, "0.004"), (0.502, "0.502")),
        *((0.4996, "0.4996"), (0.995, "0.99"), (0.506, "0.51")),
        *((0.50001, ">0.5"), (0.49999, "<0.5")),
    ],
)
def test_rate_has_more_digits_where_two_would_mislead(value: float, shown: str) -> None:
    assert rate(value) == shown


def test_interval_level_and_p_value_read_plainly() -> None:
    assert interval(0.54, 0.773) == "0.54 to 0.77"
    assert (percent(0.95), percent(0.999), percent(1 / 3)) == ("95%", "99.9%", "33.3333%")
    assert (p_value(0.0135), p_value(0.00002), p_value(1.0)) == ("p = 0.013", "p < 0.0001", "p = 1")


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted))
def test_bar_covers_one_half_only_where_the_interval_holds_it(bounds: list[float]) -> None:
    low, value, high = bounds
    drawn = bar(value, low, high)
    assert len(drawn) == len(SCALE) == 25
    assert drawn.count("•") == 1
    if low > 0.5 or high < 0.5:
        assert drawn[12] == "|"
    if low <= 0.5 <= high and low < 0.45 and high > 0.55:
        assert drawn[12] != "|"


def test_bar_stands_where_its_rate_is() -> None:
    assert bar(0.75, 0.625, 0.875) == " " * 12 + "|" + "  ━━━•━━━   "
    assert bar(0, 0, 0) == "•" + " " * 11 + "|" + " " * 12
