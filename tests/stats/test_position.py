"""Position: what two passes tell of a judge's taste for a place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.stats.proportions import wilson_interval
from evenhand.stats.rates.position_bias import (
    PASS_A,
    PASS_B,
    PASS_TIE,
    SPLIT,
    UNREAD,
    position_bias,
)

# the first pass shows A first and the second B: who wins from the first place wins both passes
FIRST = (PASS_A, PASS_B)
SECOND = (PASS_B, PASS_A)
AGREED = (PASS_A, PASS_A)
passes = st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(0, 9)), max_size=80)


def _columns(pairs: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [first for first, _ in pairs], [second for _, second in pairs]


def test_consistency_is_the_share_of_agreeing_orders() -> None:
    found = position_bias(*_columns([AGREED] * 15 + [FIRST] * 3 + [SECOND] * 2))
    assert (found.consistency.part, found.consistency.of) == (15, 20)
    assert found.consistency.value == pytest.approx(0.75)
    expected = wilson_interval(15, 20)
    assert (found.consistency.low, found.consistency.high) == pytest.approx(expected)


def test_a_judge_that_takes_the_first_is_named() -> None:
    found = position_bias(*_columns([AGREED] * 10 + [FIRST] * 9 + [SECOND]))
    # 2 (1 + 10) / 2^10
    assert found.p_value == pytest.approx(22 / 1024)
    assert found.favours == "first"
    assert found.first_preference.value == pytest.approx(0.9)


def test_a_judge_that_takes_the_second_is_named() -> None:
    assert position_bias(*_columns([SECOND] * 8)).favours == "second"


def test_even_flips_favour_no_place() -> None:
    found = position_bias(*_columns([FIRST] * 10 + [SECOND] * 10))
    assert (found.favours, found.reason, found.p_value) == (None, None, 1.0)


def test_flips_between_a_win_and_a_tie_lean_too_and_are_shown_apart() -> None:
    leaning_first = [(PASS_A, PASS_TIE), (PASS_TIE, PASS_B)]
    leaning_second = [(PASS_B, PASS_TIE), (PASS_TIE, PASS_A)]
    found = position_bias(*_columns(leaning_first * 2 + leaning_second + [FIRST] * 3))
    assert (found.flips_first, found.flips_second) == (3, 0)
    assert (found.half_flips_first, found.half_flips_second) == (4, 2)
    assert (found.first_preference.part, found.first_preference.of) == (7, 9)


def test_an_order_that_split_is_not_consistent_and_leans_nowhere() -> None:
    split = [(SPLIT, SPLIT), (SPLIT, PASS_A), (PASS_B, SPLIT), (PASS_TIE, SPLIT)]
    found = position_bias(*_columns([AGREED] * 5 + [FIRST] + split + [(SPLIT, UNREAD)]))
    assert (found.pairs, found.unread, found.split) == (10, 1, 4)
    assert (found.consistency.part, found.consistency.of) == (5, 10)
    assert (found.first_preference.part, found.first_preference.of) == (1, 1)
    assert (found.flips_first, found.flips_second) == (1, 0)
    assert (found.half_flips_first, found.half_flips_second) == (0, 0)


def test_two_ties_agree() -> None:
    assert position_bias([PASS_TIE] * 6, [PASS_TIE] * 6).consistency.value == 1.0


def test_an_unread_pass_is_counted_and_not_compared() -> None:
    found = position_bias(*_columns([FIRST] * 6 + [(UNREAD, PASS_A), (PASS_B, UNREAD)]))
    assert (found.pairs, found.unread) == (6, 2)


def test_few_inconsistent_pairs_are_not_enough() -> None:
    found = position_bias(*_columns([AGREED] * 50 + [FIRST] * 5))
    assert found.reason == "not enough data: 5 inconsistent pairs; at least 6 are needed"
    assert found.first_preference.value is None
    assert found.favours is None
    assert found.consistency.value == pytest.approx(50 / 55)


def test_no_rows_are_not_enough() -> None:
    found = position_bias([], [])
    assert found.consistency.reason == (
        "not enough data: 0 pairs readable in both orders; at least 6 are needed"
    )
    assert (found.p_value, found.favours) == (None, None)


def test_a_prompt_leans_once_however_often_it_is_asked() -> None:
    pairs = ([FIRST] * 10) * 5 + [SECOND]
    prompts = [number for number in range(5) for _ in range(10)] + [5]
    found = position_bias(*_columns(pairs), prompts=prompts)
    # five prompts lean first and one second: 2 (1 + 6) / 2^6, where rows would say 1e-14
    assert (found.test_by, found.signs_first, found.signs_second) == ("prompt", 5, 1)
    assert found.p_value == pytest.approx(14 / 64)
    assert found.favours is None


def test_in_a_prompt_a_full_flip_outweighs_a_half_one() -> None:
    found = position_bias(*_columns([FIRST, (PASS_TIE, PASS_A)] * 6), prompts=[0, 0, 1, 1] * 3)
    assert (found.signs_first, found.signs_second) == (2, 0)


@given(passes=passes, clustered=st.booleans())
def test_swapping_the_labels_keeps_the_place(
    passes: list[tuple[int, int, int]], clustered: bool
) -> None:
    # compare(B, A) has the passes exchanged and the labels renamed: the place stays the place
    renamed = {PASS_A: PASS_B, PASS_B: PASS_A, PASS_TIE: PASS_TIE, UNREAD: UNREAD, SPLIT: SPLIT}
    prompts = [prompt for _, _, prompt in passes] if clustered else None
    first, second = [row[0] for row in passes], [row[1] for row in passes]
    found = position_bias(first, second, prompts=prompts)
    mirror = position_bias(
        [renamed[winner] for winner in second],
        [renamed[winner] for winner in first],
        prompts=prompts,
    )
    assert mirror == found


@given(passes=passes)
def test_reversing_the_passes_reverses_the_place(passes: list[tuple[int, int, int]]) -> None:
    first, second = [row[0] for row in passes], [row[1] for row in passes]
    found, turned = position_bias(first, second), position_bias(second, first)
    assert turned.p_value == found.p_value
    opposite = {"first": "second", "second": "first", None: None}
    assert turned.favours == opposite[found.favours]
    if found.first_preference.low is not None:
        assert turned.first_preference.high == 1 - found.first_preference.low


def test_an_unknown_winner_is_named_with_its_row() -> None:
    with pytest.raises(InputError, match="second winners has 3 in row 1; give codes from -2 to 2"):
        position_bias([0, 0], [0, 3])
