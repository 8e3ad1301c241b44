"""Distribution functions against SciPy's, which a start is spared."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from evenhand.stats.distributions import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    binomial_tail,
    expit,
    f_tail,
    logit,
    normal_cdf,
    t_cdf,
    t_quantile,
)

sizes = st.floats(-0.3, 5.5).map(lambda power: 10**power)
chances = st.floats(1e-12, 1 - 1e-12)


def close_to(value: float) -> object:
    return pytest.approx(float(value), rel=1e-8, abs=1e-280)


@given(sizes, sizes, st.floats(-6, 6))
def test_beta_cdf_is_scipys(a: float, b: float, deviations: float) -> None:
    mean = a / (a + b)
    share = mean + deviations * math.sqrt(mean * (1 - mean) / (a + b + 1))
    share = min(max(share, 1e-9), 1 - 1e-9)
    assert beta_cdf(a, b, share) == close_to(special.betainc(a, b, share))


@given(sizes, sizes, chances)
def test_beta_quantile_has_its_chance_below_it(a: float, b: float, chance: float) -> None:
    share = beta_quantile(a, b, chance)
    # Where a step of the last digit moves the chance further, no share comes closer.
    below, above = (
        float(special.betainc(a, b, max(0.0, min(1.0, share * (1 + step)))))
        for step in (-1e-9, 1e-9)
    )
    assert below * (1 - 1e-8) <= chance <= above * (1 + 1e-8) or share == pytest.approx(
        float(special.betaincinv(a, b, chance)), rel=1e-9, abs=1e-15
    )


@given(st.integers(1, 100_000), st.floats(0, 1), st.sampled_from([0.5, 0.1, 0.9, 0.37]))
def test_binomial_tails_are_scipys(of: int, part: float, share: float) -> None:
    count = int(part * of)
    assert binomial_cdf(count, of, share) == close_to(special.bdtr(count, of, share))
    assert binomial_tail(count, of, share) == close_to(special.bdtrc(count, of, share))


@example(100.0, 5.960464477539063e-08)
@given(sizes, st.floats(-40, 40))
def test_t_and_its_tail_are_scipys(degrees: float, value: float) -> None:
    assert t_cdf(degrees, value) == close_to(special.stdtr(degrees, value))


@given(sizes, chances)
def test_t_quantile_is_scipys(degrees: float, chance: float) -> None:
    expected = float(special.stdtrit(degrees, chance))
    assert t_quantile(degrees, chance) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@given(st.floats(1, 60), st.floats(5, 2_000), st.floats(0, 20))
def test_f_tail_is_scipys(above: float, below: float, value: float) -> None:
    expected = float(special.fdtrc(above, below, value))
    assert f_tail(above, below, value) == pytest.approx(expected, rel=1e-7, abs=1e-30)


@given(st.floats(-30, 30))
def test_normal_cdf_is_scipys(deviations: float) -> None:
    assert normal_cdf(deviations) == close_to(special.ndtr(deviations))


def test_logistic_functions_are_scipys_and_do_not_overflow() -> None:
    odds = np.linspace(-700, 700, 2001)
    assert expit(odds) == pytest.approx(special.expit(odds), rel=1e-12)
    assert expit(-1e6) == 0.0
    assert expit(1e6) == 1.0
    rates = np.linspace(0.001, 0.999, 999)
    assert logit(rates) == pytest.approx(special.logit(rates), rel=1e-12, abs=1e-15)


def test_t_with_one_degree_of_freedom_is_cauchys() -> None:
    # Its quantile at 3/4 is tan(π/4) = 1, and at 0.95 tan(0.45 π).
    assert t_quantile(1, 0.75) == pytest.approx(1.0, rel=1e-12)
    assert t_quantile(1, 0.95) == pytest.approx(math.tan(0.45 * math.pi), rel=1e-12)


def test_a_fair_coin_counts_by_pascals_triangle() -> None:
    # Of 5 tosses at most 1 head: (1 + 5) / 32.
    assert binomial_cdf(1, 5, 0.5) == pytest.approx(6 / 32, rel=1e-13)
    assert binomial_tail(1, 5, 0.5) == pytest.approx(26 / 32, rel=1e-13)
    assert binomial_cdf(5, 5, 0.5) == 1.0
    assert binomial_tail(5, 5, 0.5) == 0.0
