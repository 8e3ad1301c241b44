from __future__ import annotations

import pytest

from evenhand.messages.numbers import level, p_value, rate
from evenhand.quantities import interval


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
    assert (level(0.95), level(0.999), level(1 / 3)) == ("95%", "99.9%", "33.3333%")
    assert (p_value(0.0135), p_value(0.00002), p_value(1.0)) == ("p = 0.013", "p < 0.0001", "p = 1")
