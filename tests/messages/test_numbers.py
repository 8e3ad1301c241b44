"""How numbers are written wherever people read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.messages.numbers import (
    decimal,
    dollars,
    duration,
    number,
    percent,
    points,
    rate,
    short,
    tenths,
    thousandths,
)


@pytest.mark.parametrize("written", [percent, points, rate, decimal, tenths])
@given(share=st.floats(0, 1))
def test_a_rounded_share_stays_on_its_side_of_one_half(
    written: Callable[[float], str], share: float
) -> None:
    text = written(share).removesuffix("%")
    half = 0.5 if written in (rate, decimal) else 50.0
    if text[0] in "<>":
        read = float(text[1:]) + (1e-9 if text[0] == ">" else -1e-9)
    else:
        read = float(text)
    assert (read > half, read < half) == (share > 0.5, share < 0.5)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        *((None, "—"), (0, "$0"), (0.1, "$0.10"), (1234.5, "$1,234.50")),
        *((0.0999, "$0.1"), (0.00123, "$0.0012")),
    ],
)
def test_small_costs_have_two_digits_and_others_cents(amount: float | None, text: str) -> None:
    assert dollars(amount) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((None, "—"), (0.04, "0.0 s"), (9.4, "9.4 s"), (10, "10 s"), (59.4, "59 s")),
        *((60, "1 min 00 s"), (3599, "59 min 59 s"), (3600, "1 h 00 min"), (9000, "2 h 30 min")),
    ],
)
def test_a_duration_has_the_units_that_fit(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_other_numbers() -> None:
    assert (number(1234.4), number(0)) == ("1,234", "0")
    assert (short(999), short(1_234), short(2_500_000)) == ("999", "1.23 k", "2.5 M")
    assert (thousandths(-0.0004), thousandths(0.12345)) == ("0.000", "0.123")
    # 57.35 is just above in binary
    assert (tenths(0.5735), tenths(-0.0), tenths(0.9999)) == ("57.4", "0.0", "99.99")
