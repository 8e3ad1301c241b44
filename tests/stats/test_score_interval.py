"""The score interval of three outcomes, against published examples and a naive likelihood."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from evenhand.stats.intervals import exact_lower, score_interval
from evenhand.stats.proportions import wilson_interval

Z95 = 1.959963984540054
Z90 = 1.6448536269514722
counts = st.integers(min_value=0, max_value=400)


@pytest.mark.parametrize(
    ("wins", "losses", "pairs", "critical", "low", "high"),
    [
        # Fagerland, Lydersen and Laake, Statistics in Medicine 33 (2014): airway reactivity,
        # Tango's interval of the paired difference
        (1, 7, 21, Z95, -0.517, -0.026),
        # PropCIs, scoreci.mp(25, 28, 618) at 90%, whose difference is 28 less 25
        (28, 25, 618, Z90, -0.0148, 0.0247),
    ],
)
def test_published_differences_come_out(
    wins: int, losses: int, pairs: int, critical: float, low: float, high: float
) -> None:
    found = score_interval(wins, pairs - wins - losses, losses, critical=critical)
    digits = 3 if abs(low) > 0.1 else 4
    assert [round(2 * rate - 1, digits) for rate in found] == [low, high]


@given(wins=counts, losses=counts)
def test_without_ties_it_is_wilsons(wins: int, losses: int) -> None:
    if wins + losses == 0:
        return
    expected = wilson_interval(wins, wins + losses)
    found = score_interval(wins, 0, losses, critical=Z95)
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("pairs", [1, 6, 20, 1_000_000])
def test_all_ties_are_not_certainty(pairs: int) -> None:
    # T(d) = -sqrt(n d / (1 - d)) at no win and no loss, so d = z^2 / (n + z^2)
    reach = Z95**2 / (pairs + Z95**2)
    found = score_interval(0, pairs, 0, critical=Z95)
    assert found == pytest.approx(((1 - reach) / 2, (1 + reach) / 2), abs=1e-12)


@pytest.mark.parametrize("pairs", [1, 6, 20, 1_000_000])
def test_all_wins_are_not_certainty(pairs: int) -> None:
    # n (1 - rate)^2 = z^2 rate (1 - rate), so rate = n / (n + z^2)
    low, high = score_interval(pairs, 0, 0, critical=Z95)
    assert (low, high) == pytest.approx((pairs / (pairs + Z95**2), 1.0), abs=1e-12)
    assert high == 1.0


@given(wins=counts, ties=counts, losses=counts)
def test_swapping_the_sides_mirrors_it_exactly(wins: int, ties: int, losses: int) -> None:
    if wins + ties + losses == 0:
        return
    low, high = score_interval(wins, ties, losses, critical=Z95)
    assert score_interval(losses, ties, wins, critical=Z95) == (1 - high, 1 - low)


@given(wins=counts, ties=counts, losses=counts)
def test_it_holds_its_rate_and_stays_inside_0_and_1(wins: int, ties: int, losses: int) -> None:
    total = wins + ties + losses
    if total == 0:
        return
    low, high = score_interval(wins, ties, losses, critical=Z95)
    assert 0 <= low <= (wins + ties / 2) / total <= high <= 1
    assert low < high


def test_ties_narrow_it() -> None:
    tied = score_interval(25, 50, 25, critical=Z95)
    decided = score_interval(50, 0, 50, critical=Z95)
    # variance 1/8 a row against 1/4: narrower by about sqrt(2)
    ratio = (decided[1] - decided[0]) / (tied[1] - tied[0])
    assert ratio == pytest.approx(math.sqrt(2), rel=0.02)


def _best_share_of_ties(wins: float, ties: float, losses: float, rate: float) -> float:
    """The likeliest share of ties at a given rate, by ternary search of a concave function."""

    def log_likelihood(tied: float) -> float:
        shares = (rate - tied / 2, tied, 1 - rate - tied / 2)
        terms = [
            count * math.log(share) if share > 0 else (-math.inf if count else 0.0)
            for count, share in zip((wins, ties, losses), shares, strict=True)
        ]
        return sum(terms)

    left, right = 0.0, 2 * min(rate, 1 - rate)
    for _ in range(200):
        third = (right - left) / 3
        if log_likelihood(left + third) < log_likelihood(right - third):
            left += third
        else:
            right -= third
    return (left + right) / 2


def _naive_interval(wins: int, ties: int, losses: int) -> tuple[float, float]:
    """The same test inverted with no formula: likelihood by search, ends by bisection."""
    total = wins + ties + losses
    mean = (wins + ties / 2) / total

    def refused(rate: float) -> bool:
        tied = _best_share_of_ties(wins, ties, losses, rate)
        variance = (rate - tied / 2) + tied / 4 - rate * rate
        return (mean - rate) ** 2 > Z95**2 * variance / total

    ends = []
    for edge in (0.0, 1.0):
        outside, inside = edge, mean
        for _ in range(45):
            middle = (outside + inside) / 2
            if refused(middle):
                outside = middle
            else:
                inside = middle
        ends.append(inside)
    return ends[0], ends[1]


@pytest.mark.parametrize(
    ("wins", "ties", "losses"),
    [(12, 5, 3), (1, 30, 4), (0, 4, 9), (40, 20, 40), (7, 1, 0), (150, 300, 80)],
)
def test_a_naive_search_of_the_likelihood_agrees(wins: int, ties: int, losses: int) -> None:
    found = score_interval(wins, ties, losses, critical=Z95)
    assert found == pytest.approx(_naive_interval(wins, ties, losses), abs=1e-6)


@pytest.mark.parametrize("pairs", [6, 13, 30, 49])
def test_exact_ends_err_by_no_more_than_they_say(pairs: int) -> None:
    """Over every outcome of the trinomial: how often the lower end lies above the true rate."""
    counts = [(w, losses) for w in range(pairs + 1) for losses in range(pairs + 1 - w)]
    wins, lost = (np.array(column) for column in zip(*counts, strict=True))
    ties = pairs - wins - lost
    ends = np.array([exact_lower(w, pairs - w - n, n, level=0.95) for w, n in counts])
    for tie_share in (0.0, 0.1, 0.3, 0.6, 0.9):
        for rate in np.linspace(0.05, 0.95, 46):
            win, loss = rate - tie_share / 2, 1 - rate - tie_share / 2
            if min(win, loss) < 0:
                continue
            chances = multinomial.pmf(
                np.column_stack([wins, ties, lost]), pairs, [win, tie_share, loss]
            )
            assert chances[ends > rate + 1e-9].sum() <= 0.025


def test_exact_end_without_ties_is_clopper_and_pearsons() -> None:
    # 9 of 10: the p at which 9 or more have a chance of 2.5%, from their published table
    assert exact_lower(9, 0, 1, level=0.95) == pytest.approx(0.5550, abs=5e-5)
    assert exact_lower(10, 0, 0, level=0.95) == pytest.approx(0.025 ** (1 / 10))


def test_exact_end_keeps_to_the_sign_test() -> None:
    # 5 to 0 has a two-sided p-value of 2 / 32, which excludes nothing at 5%
    assert exact_lower(5, 25, 0, level=0.95) <= 0.5
    assert exact_lower(6, 24, 0, level=0.95) > 0.5
