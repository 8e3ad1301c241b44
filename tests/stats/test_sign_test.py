"""The sign test against the binomial written out."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.intervals import holm_adjusted, sign_test, sign_test_p


def test_six_of_six_is_the_first_significant_count() -> None:
    # 2 / 2^6 and 2 / 2^5
    assert sign_test_p(6, 0) == pytest.approx(0.03125, rel=1e-12)
    assert sign_test_p(5, 0) == pytest.approx(0.0625, rel=1e-12)


@given(wins=st.integers(0, 120), losses=st.integers(0, 120))
def test_it_is_the_exact_binomial(wins: int, losses: int) -> None:
    total = wins + losses
    tail = sum(Fraction(comb(total, k), 2**total) for k in range(min(wins, losses) + 1))
    assert sign_test_p(wins, losses) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-9)


def test_holm_s_procedure_by_hand() -> None:
    # From the smallest up: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 0.04 no less than the one before.
    assert holm_adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    # What has no p-value is no member of the family: 2 x 0.02, 1 x 0.9.
    assert list(holm_adjusted([None, 0.9, 0.02])) == [None, pytest.approx(0.9), 2 * 0.02]
    assert holm_adjusted([]) == ()
    # Twelve tags, one with p = 0.01: no finding.
    assert holm_adjusted([0.01] + [0.5] * 11)[0] == pytest.approx(0.12)
    with pytest.raises(InputError, match=r"a p-value is 1\.5; give numbers from 0 to 1"):
        holm_adjusted([1.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.2))
def test_holm_s_adjusted_values_decide_as_the_procedure_does(
    p_values: list[float], level: float
) -> None:
    """Rejected one after the other from the smallest, each at level / (how many are left), up to
    the first that is not."""
    rejected = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if (len(p_values) - rank) * p_values[place] > level:
            break
        rejected[place] = True
    adjusted = holm_adjusted(p_values)
    assert [p is not None and p <= level for p in adjusted] == rejected
    for given_p, p in zip(p_values, adjusted, strict=True):
        assert p is not None
        assert given_p <= p <= min(1.0, len(p_values) * given_p)


def test_a_million_wins_are_no_p_of_zero() -> None:
    assert 0 < sign_test_p(1_000_000, 0) < 1e-300


def test_half_and_half_has_a_p_of_one() -> None:
    assert sign_test_p(500_000, 500_000) == 1.0


def test_nobody_decided_is_no_test() -> None:
    assert sign_test(0, 0, by="pair") is None


def test_a_negative_count_is_a_mistake() -> None:
    with pytest.raises(InputError, match="-1 wins"):
        sign_test_p(-1, 3)
