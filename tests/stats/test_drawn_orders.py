"""Win rates of pairs that were judged in one order, drawn at random."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import beta, binom
from scripts.verify_conclusions import Setting, cell, interval

from evenhand.contract import Pair
from evenhand.contract.codes import INCONSISTENT, TIE, WIN_A, WIN_B
from evenhand.data.orders import OrderDraw
from evenhand.errors import InputError
from evenhand.stats.rates.win_rate import (
    Circumstances,
    WinRate,
    most_disagreement,
    stretch_estimated,
    win_rate,
)
from evenhand.stats.stopping.planning import (
    Certainty,
    StudyDesign,
    plan_both_orders,
    plan_pairs,
)
from scripted import make_pair

Codes = NDArray[np.int8]


def rate_of(drawn: Codes, twice: Codes, **more: Any) -> WinRate:
    """Of rows in a drawn order, then of rows in both; inconsistent ones changed with the order."""
    codes = np.concatenate([drawn, twice]).astype(np.int8)
    in_one = np.arange(codes.size) < drawn.size
    return win_rate(codes, circumstances=Circumstances(drawn=in_one), **more)


def codes(wins: int, losses: int, ties: int = 0, flips: int = 0) -> Codes:
    return np.repeat([WIN_A, WIN_B, TIE, INCONSISTENT], [wins, losses, ties, flips]).astype(np.int8)


PAIRS = [make_pair(prompt=f"Is {n} prime?", response_a="yes", response_b="no") for n in range(200)]


def always_first(pair: Pair) -> int:
    """What a judge that always takes the first response makes of a pair."""
    said = [WIN_A if order == "original" else WIN_B for order in pair.orders]
    return said[0] if len(said) == 1 else INCONSISTENT


_SEEDS = 80


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_judge_that_always_takes_the_first_gives_one_half_with_its_real_noise(
    share: float,
) -> None:
    found = []
    for seed in range(_SEEDS):
        pairs = [OrderDraw(seed, share).draw(pair) for pair in PAIRS]
        drawn = np.array([not pair.swap_positions for pair in pairs])
        outcomes = np.array([always_first(pair) for pair in pairs])
        found.append((win_rate(outcomes, circumstances=Circumstances(drawn=drawn)), drawn.sum()))
    rates = np.array([each.rate for each, _ in found])
    # A throw has the standard deviation 1/2, and a pair in both orders none.
    noise = math.sqrt((1 - share) / 200) / 2
    assert abs(rates.mean() - 0.5) < 4 * noise / math.sqrt(_SEEDS)
    assert rates.std() == pytest.approx(noise, rel=0.25)
    ends = [(each.low or 0.0, each.high or 1.0) for each, _ in found]
    assert sum(low > 0.5 or high < 0.5 for low, high in ends) <= binom.ppf(0.999, _SEEDS, 0.05)
    # Whatever it shows, it never bounds what the position hides.
    assert all(low == 0 or low > 0.5 for low, _ in ends)
    assert all(high == 1 or high < 0.5 for _, high in ends)
    assert [each.drawn_order for each, _ in found] == [one_order for _, one_order in found]


def test_a_claim_above_one_half_needs_no_second_order() -> None:
    found = rate_of(codes(140, 60), codes(0, 0))
    # Wilson's interval of 140 of 200 begins at 0.633; how far up it goes the noise hides.
    assert found.low == pytest.approx(0.633, abs=0.001)
    assert (found.high, found.doubts) == (1.0, ("drawn_order",))
    assert found.sign_test is not None
    assert (found.sign_test.wins_a, found.sign_test.wins_b) == (140, 60)
    assert found.rate_without_inconsistent is None


def test_below_one_half_pairs_in_both_orders_tell_how_much_the_position_decides() -> None:
    drawn, twice = codes(430, 470), codes(45, 45, flips=10)
    found = rate_of(drawn, twice)
    assert found.rate == pytest.approx((475 + 5) / 1000)
    assert (found.doubts, found.flips, found.decided, found.drawn_order) == ((), 10, 90, 900)
    # Clopper and Pearson's limit of 10 in 100, by the quantile of a beta distribution.
    most = float(beta.ppf(0.975, 11, 90))
    assert most == pytest.approx(most_disagreement(10, 100, level=0.95))
    assert most == pytest.approx(0.1762, abs=0.0001)
    # The interval of the count alone: further out than the stretch by the estimate, and not as far
    # as by both limits at once.
    alone = win_rate(codes(475, 515, ties=10)).low
    assert alone is not None
    assert found.low is not None
    by_both, by_estimate = (0.5 - (0.5 - alone) / (1 - 2 * i) for i in (most, 0.1))
    assert by_both < found.low < by_estimate


@given(
    difference=st.floats(-0.3, 0.5),
    error=st.floats(0.01, 0.3),
    share=st.floats(0, 0.4),
    more=st.floats(0, 0.09),
)
def test_the_limit_of_the_ratio_solves_its_equation(
    difference: float, error: float, share: float, more: float
) -> None:
    """Donner and Zou's limit U is where difference - U·r has 0 for its upper limit."""
    upper = max(0.001, difference + error)
    end = stretch_estimated(difference, upper, disagreement=share, most_disagreement=share + more)
    r, least = 1 - 2 * share, 1 - 2 * (share + more)

    def limit(ratio: float) -> float:
        spread = (upper - difference) ** 2 + (ratio * (r - least)) ** 2
        return difference - ratio * r + math.sqrt(spread)

    ratio = brentq(limit, 0, 1e6)
    assert end == pytest.approx(0.5 - min(1.0, ratio) / 2, abs=1e-9)
    assert ratio >= upper / r - 1e-12


def test_too_few_pairs_in_both_orders_claim_no_end_below_one_half() -> None:
    # Of five agreeing pairs up to 52% may be decided by position: 1 - 0.025^(1/5).
    assert most_disagreement(0, 5, level=0.95) == pytest.approx(1 - 0.025**0.2)
    few = rate_of(codes(95, 105), codes(3, 2))
    assert (few.low, few.high, few.doubts) == (0.0, 1.0, ("drawn_order",))
    more = rate_of(codes(95, 105), codes(15, 15))
    assert more.doubts == ()
    assert 0.3 < (more.low or 0) < 0.5 < (more.high or 1) < 0.7


def test_a_subsample_that_flips_shows_position() -> None:
    found = rate_of(codes(95, 105), codes(10, 10, flips=30))
    assert (found.low, found.high, found.doubts) == (0.0, 1.0, ("position",))


def test_position_is_named_from_half_of_twenty_pairs_on() -> None:
    """Below that too few were judged in both orders to tell."""
    for twice, doubt in (
        (codes(5, 5, flips=10), "position"),  # 10 of 20
        (codes(6, 5, flips=10), "drawn_order"),  # 10 of 21
        (codes(4, 5, flips=10), "drawn_order"),  # 10 of 19
    ):
        assert rate_of(codes(95, 105), twice).doubts == (doubt,)


def test_ties_need_winners_that_both_orders_named() -> None:
    """A judge that guesses names winners in one order as often as one that knows."""
    assert rate_of(codes(60, 60, ties=200), codes(9, 9, ties=30)).doubts == ("ties",)
    assert rate_of(codes(60, 60, ties=200), codes(10, 10, ties=30)).doubts == ()
    # Of so few pairs in both orders it is no wonder.
    assert rate_of(codes(60, 60, ties=200), codes(9, 9)).doubts == ("drawn_order",)


@given(
    drawn=st.lists(st.integers(0, 2), min_size=6, max_size=80),
    twice=st.lists(st.integers(0, 3), max_size=60),
    ties=st.sampled_from(["half", "excluded"]),
    always_valid=st.booleans(),
)
def test_exchanging_a_and_b_mirrors_the_interval(
    drawn: list[int], twice: list[int], ties: Any, always_valid: bool
) -> None:
    turn = np.array([WIN_B, WIN_A, TIE, INCONSISTENT], dtype=np.int8)
    how = {"ties": ties, "always_valid": always_valid}
    rows = np.array(drawn, dtype=np.int8), np.array(twice, dtype=np.int8)
    one = rate_of(*rows, **how)
    other = rate_of(turn[rows[0]], turn[rows[1]], **how)
    assert (one.low is None) == (other.low is None)
    if one.low is not None and other.high is not None and one.rate is not None:
        assert one.low == pytest.approx(1 - other.high, abs=1e-12)
        assert one.low <= one.rate <= (one.high or 0)
    assert set(one.doubts) == set(other.doubts)


def test_without_drawn_rows_nothing_changes() -> None:
    rows = codes(90, 110, ties=30, flips=20)
    known = Circumstances(drawn=np.zeros(rows.size, dtype=np.bool_))
    assert win_rate(rows, circumstances=known) == win_rate(rows)


@pytest.mark.parametrize("judge", ["positional", "noisy"])
@pytest.mark.parametrize("rate", [0.45, 0.5])
def test_gates_at_the_true_rate_pass_no_oftener_than_they_may(judge: str, rate: float) -> None:
    """A small part of what scripts/verify_conclusions.py simulates."""
    rng = np.random.default_rng(5)
    found = cell(rng, Setting(judge, 300, 0.0, 0.3, both_orders=0.3), rate, 300)
    most = binom.ppf(0.999, 300, 0.025) / 300
    assert found.passed <= most
    assert found.failed <= most


def test_as_many_pairs_take_about_half_the_calls_where_no_order_disagrees() -> None:
    both = plan_pairs(0.55)
    random = plan_pairs(0.55, shape=StudyDesign(orders=1, both_orders=0.1))
    assert (random.pairs, random.pairs_in_both_orders) == (both.pairs, math.ceil(both.pairs / 10))
    assert random.calls == math.ceil(1.1 * both.pairs)
    # A pair that the position decides is worth half in both orders, and a coin in one.
    asked = StudyDesign(inconsistent_share=0.3)
    more = plan_pairs(0.55, shape=asked.model_copy(update={"orders": 1, "both_orders": 0.0}))
    assert more.pairs / plan_pairs(0.55, shape=asked).pairs == pytest.approx(1 / 0.7, rel=0.02)


def test_a_gate_below_one_half_is_planned_with_its_pairs_in_both_orders() -> None:
    shape = StudyDesign(inconsistent_share=0.1, tie_share=0.2, orders=1, both_orders=0.1)
    gate: Any = {"min_win_rate": 0.45, "certainty": Certainty()}
    chosen = plan_both_orders(0.55, shape=shape, **gate)
    share = chosen.shape.both_orders
    assert share is not None
    assert chosen.pairs_in_both_orders == math.ceil(share * chosen.pairs)
    for other in (0.01, share / 2, share * 1.5, 0.9):
        tried = shape.model_copy(update={"both_orders": other})
        assert plan_pairs(0.55, shape=tried, **gate).calls >= 0.98 * chosen.calls
    # The plan's inconsistent pairs are all decided by position, its ties a share of all pairs.
    rng = np.random.default_rng(8)
    setting = Setting("positional", chosen.pairs, 0.2 / 0.9, 0.1, both_orders=share)
    passed = np.mean([interval(rng, setting, 0.55)[0] > 0.45 for _ in range(250)])
    assert abs(passed - 0.8) < 4 * math.sqrt(0.8 * 0.2 / 250)


def test_a_gate_below_one_half_needs_some_pairs_in_both_orders() -> None:
    shape = StudyDesign(orders=1, both_orders=0.0)
    with pytest.raises(InputError, match=r"a gate at 0\.45 needs some pairs in both orders"):
        plan_pairs(0.5, min_win_rate=0.45, shape=shape)
    assert plan_pairs(0.6, shape=shape).calls == plan_pairs(0.6).pairs
