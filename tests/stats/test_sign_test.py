"""The sign test against the binomial written out."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.sign_test import sign_test, sign_test_p


def test_six_of_six_is_the_first_significant_count() -> None:
    # 2 / 2^6 and 2 / 2^5
    assert sign_test_p(6, 0) == pytest.approx(0.03125, rel=1e-12)
    assert sign_test_p(5, 0) == pytest.approx(0.0625, rel=1e-12)


@given(wins=st.integers(0, 120), losses=st.integers(0, 120))
def test_it_is_the_exact_binomial(wins: int, losses: int) -> None:
    total = wins + losses
    tail = sum(Fraction(comb(total, k), 2**total) for k in range(min(wins, losses) + 1))
    assert sign_test_p(wins, losses) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-9)


def test_a_million_wins_are_no_p_of_zero() -> None:
    assert 0 < sign_test_p(1_000_000, 0) < 1e-300


def test_half_and_half_has_a_p_of_one() -> None:
    assert sign_test_p(500_000, 500_000) == 1.0


def test_nobody_decided_is_no_test() -> None:
    assert sign_test(0, 0, by="pair") is None


def test_a_negative_count_is_a_mistake() -> None:
    with pytest.raises(InputError, match="-1 wins"):
        sign_test_p(-1, 3)
