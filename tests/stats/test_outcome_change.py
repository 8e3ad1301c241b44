"""Two judgements of the same pairs: who moved where, and how sure the difference is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.stats.rates.outcome_change import OutcomeChange, outcome_change
from evenhand.stats.rates.paired_difference import paired_difference
from evenhand.stats.rates.win_rate import Circumstances

A, B, T, I, X = WIN_A, WIN_B, TIE, INCONSISTENT, INVALID  # noqa: E741 - a letter an outcome
CODES = {"A": A, "B": B, "T": T, "I": I, "X": X}
MIRRORED = {A: B, B: A, T: T, I: I, X: X}


def changed(moves: dict[str, int], **more: Any) -> OutcomeChange:
    """`moves` has two letters, before and after, and how many pairs moved so."""
    rows = [(CODES[move[0]], CODES[move[1]]) for move, n in moves.items() for _ in range(n)]
    return outcome_change([row[0] for row in rows], [row[1] for row in rows], **more)


def test_the_flow_counts_each_outcome_against_each() -> None:
    change = changed({"AA": 30, "BB": 20, "AB": 9, "BA": 3, "AT": 4, "IT": 2, "XB": 1, "BX": 1})
    rows = {
        row.outcome: (row.a, row.tie, row.inconsistent, row.b, row.invalid) for row in change.flow
    }
    assert list(rows) == ["A", "tie", "inconsistent", "B", "invalid"]
    assert rows["A"] == (30, 4, 0, 9, 0)
    assert rows["inconsistent"] == (0, 2, 0, 0, 0)
    assert rows["B"] == (3, 0, 0, 20, 1)
    assert rows["invalid"] == (0, 0, 0, 1, 0)
    assert (change.pairs, change.valid, change.changed) == (70, 68, 9 + 3 + 4 + 2 + 1 + 1)
    # From A to a tie is half a step towards B; from inconsistent to a tie is none.
    assert (change.towards_b, change.towards_a) == (9 + 4, 3)
    # B has 23 of 68 first, and an inconsistent pair is half: (23 + 2 / 2) / 68; then 29 of 68 and
    # 6 ties.
    assert change.rate_first == pytest.approx((23 + 1) / 68)
    assert change.rate_second == pytest.approx((29 + 3) / 68)
    assert change.difference == pytest.approx((9 + 4 / 2 - 3) / 68)


def test_the_test_on_flips_is_mcnemars_exact_one() -> None:
    change = changed({"AA": 50, "BB": 48, "AB": 9, "BA": 3})
    assert change.sign_test is not None
    assert change.sign_test.p_value == pytest.approx(binomtest(3, 12).pvalue)
    assert change.difference == pytest.approx(6 / 110)


def test_where_all_is_decided_the_interval_is_tangos_of_the_paired_shares() -> None:
    for aa, bb, ab, ba in ((50, 48, 9, 3), (10, 20, 8, 0), (3, 4, 2, 1), (100, 0, 0, 0)):
        change = changed({"AA": aa, "BB": bb, "AB": ab, "BA": ba})
        more = np.repeat([False, False, True, False], [aa, bb, ab, ba])
        less = np.repeat([False, False, False, True], [aa, bb, ab, ba])
        plain = paired_difference(more, less, np.arange(more.size), level=0.95)
        assert (change.difference, change.low, change.high) == pytest.approx(
            (plain.value, plain.low, plain.high)
        )
        assert change.doubts == ()


def test_nothing_that_changed_still_has_an_interval_with_a_width() -> None:
    change = changed({"AA": 40, "BB": 60})
    assert change.difference == 0
    assert change.low is not None
    assert change.high is not None
    assert -0.1 < change.low < 0 < change.high < 0.1


def test_what_may_hide_in_undecided_pairs_widens_the_interval() -> None:
    sure = changed({"AA": 20, "BB": 60, "AB": 20})
    # The same moves, among as many pairs of which the second judge left twenty undecided.
    unsure = changed({"AA": 20, "BB": 40, "BI": 20, "AB": 20})
    assert sure.low is not None
    assert unsure.low is not None
    assert unsure.high is not None
    assert sure.low > 0.1
    # Left out they are none of B's losses: of the other 80, B has 60 where it had 40.
    assert unsure.high > (60 - 40) / 80


def test_a_judge_that_follows_the_position_shows_no_difference() -> None:
    change = changed({"AI": 45, "BI": 15, "AB": 10, "BB": 30})
    assert change.doubts == ("position",)
    # It may have preferred B in every pair, or A: from 45 of 100 to 100, or to none.
    assert (change.high or 0) > 1 - 0.45
    assert (change.low or 0) < -0.45


def test_one_fixed_order_concludes_nothing() -> None:
    one = np.ones(100, dtype=np.bool_)
    known = Circumstances(), Circumstances(one_order=one)
    change = changed({"AA": 40, "AB": 60}, circumstances=known)
    assert change.doubts == ("one_order",)
    assert change.low is not None
    assert change.low <= 0
    allowed = changed({"AA": 40, "AB": 60})
    assert (allowed.low or 0) > 0.4


def test_invalid_pairs_beyond_the_limit_count_against_every_claim() -> None:
    few = changed({"AA": 88, "AB": 11, "AX": 1})
    many = changed({"AA": 79, "AB": 11, "AX": 10})
    assert few.doubts == ()
    assert (few.low or 0) > 0
    assert many.doubts == ("missing",)
    # All of them may have been B's before, and A's then: 11 steps towards B, and 10 back.
    assert (many.low or 0) < 0.01


def test_pending_pairs_count_against_every_claim() -> None:
    known = Circumstances(), Circumstances(pending=30)
    assert (changed({"AA": 60, "AB": 20}).low or 0) > 0
    held = changed({"AA": 60, "AB": 20}, circumstances=known)
    assert held.doubts == ("pending",)
    assert (held.low or 0) < 0


def test_rows_of_one_prompt_count_as_one() -> None:
    moves = {"AA": 40, "AB": 20}
    alone = changed(moves)
    copied = changed({move: 5 * n for move, n in moves.items()}, prompts=np.repeat(range(60), 5))
    assert copied.clustered
    assert copied.sign_test is not None
    assert copied.sign_test.by == "prompt"
    assert copied.difference == pytest.approx(alone.difference)
    assert copied.low == pytest.approx(alone.low, abs=0.01)


def test_too_few_pairs_have_a_reason_and_no_interval() -> None:
    change = changed({"AA": 3, "AB": 2})
    assert (change.difference, change.low, change.reason) == (
        None,
        None,
        "not enough data: 5 valid pairs; at least 6 are needed",
    )
    assert change.towards_b == 2


letters = st.sampled_from([A, B, T, I, X])


@given(st.lists(st.tuples(letters, letters), min_size=6, max_size=60))
def test_exchanging_a_and_b_or_the_runs_mirrors_the_difference(rows: list[tuple[int, int]]) -> None:
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    change = outcome_change(first, second)
    for other in (
        outcome_change([MIRRORED[each] for each in first], [MIRRORED[each] for each in second]),
        outcome_change(second, first),
    ):
        assert (other.towards_a, other.towards_b) == (change.towards_b, change.towards_a)
        if change.difference is None or change.low is None or change.high is None:
            assert other.difference is None
            continue
        assert (other.difference, other.low, other.high) == pytest.approx(
            (-change.difference, -change.high, -change.low), abs=1e-9
        )
        assert change.low <= change.difference <= change.high


@pytest.mark.parametrize("noise", [(0.0, 0.0), (0.1, 0.1), (0.0, 0.15), (0.15, 0.0)])
def test_the_interval_holds_the_true_difference_whatever_noise_hides(
    noise: tuple[float, float],
) -> None:
    """Two judges with preferences of their own on each pair; a pass errs with the judge's chance,
    and passes that differ are inconsistent."""
    rng = np.random.default_rng(7)
    times, pairs, missed = 100, 150, 0
    for _ in range(times):
        before = rng.random(pairs) < 0.6
        # The second judge sees every fifth pair the other way, more often for B.
        after = before ^ (rng.random(pairs) < np.where(before, 0.1, 0.3))
        codes = []
        for own, chance in zip((before, after), noise, strict=True):
            passes = [own ^ (rng.random(pairs) < chance) for _ in range(2)]
            winner = np.where(passes[0], B, A)
            codes.append(np.where(passes[0] == passes[1], winner, I))
        change = outcome_change(codes[0], codes[1])
        # 0.6 prefer B at first; then 0.6 × 0.9 + 0.4 × 0.3.
        true = 0.6 * 0.9 + 0.4 * 0.3 - 0.6
        assert change.low is not None
        assert change.high is not None
        missed += not change.low <= true <= change.high
    assert missed <= 11  # of 100 at most 5 are expected, and more than 11 in 0.4%
