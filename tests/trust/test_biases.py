"""What stands behind verdicts besides the answers, on tables that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.contract.codes import NO_WINNER, SAYS_A, SAYS_B, SAYS_TIE
from evenhand.stats.estimates import share_of_rows
from evenhand.stats.rates.paired_difference import paired_difference
from evenhand.trust.biases import (
    length_bias,
    measure_position_bias,
    self_preference,
)

A, B, T = SAYS_A, SAYS_B, SAYS_TIE


def each(*codes: int) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    return np.array(codes, dtype=np.int8)


def prompts(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(count)


def test_a_judge_that_takes_the_first_leans_wholly_to_it() -> None:
    found = measure_position_bias(each(*[A] * 20), each(*[B] * 20), prompts(20), level=0.95)
    assert found.lean.value == 1
    assert found.first_place_share.value == 1
    assert found.test.favours == "first"
    assert found.lean.low is not None
    assert found.lean.low > 0.6  # 20 of 20, and not certain


def test_a_consistent_judge_leans_nowhere() -> None:
    found = measure_position_bias(each(*[A, B] * 10), each(*[A, B] * 10), prompts(20), level=0.95)
    assert found.lean.value == 0
    assert found.first_place_share.value == 0.5  # A shown first and then B, in every pair
    assert found.test.consistency.value == 1


def test_pairs_whose_orders_split_lean_nowhere_and_are_counted() -> None:
    # Of 20 pairs 5 go by the first place; the other 15 have an order whose samples split evenly.
    found = measure_position_bias(
        each(*[A] * 5, *[-2] * 15), each(*[B] * 5, *[A] * 15), prompts(20), level=0.95
    )
    assert found.lean.value == 5 / 20
    assert found.lean.pairs == 20
    assert found.test.consistency.value == 0


def test_a_lean_is_a_difference_of_shares() -> None:
    # Of 20 pairs 6 lean first and 2 second: (6 - 2) / 20.
    more = np.array([True] * 6 + [False] * 14)
    less = np.array([False] * 6 + [True] * 2 + [False] * 12)
    found = paired_difference(more, less, prompts(20), level=0.95)
    assert found.value == pytest.approx(0.2)
    assert found.low is not None
    assert found.high is not None
    assert -1 < found.low < 0.2 < found.high < 1


@given(st.lists(st.sampled_from([(A, A), (A, B), (B, A), (B, B), (T, T)]), min_size=8, max_size=60))
def test_exchanging_the_places_turns_the_lean_round(verdicts: list[tuple[int, int]]) -> None:
    first = each(*[one for one, _ in verdicts])
    second = each(*[two for _, two in verdicts])
    rows = prompts(len(verdicts))
    lean = measure_position_bias(first, second, rows, level=0.95).lean
    turned = measure_position_bias(second, first, rows, level=0.95).lean
    assert turned.value is not None
    assert lean.value == pytest.approx(-turned.value)
    assert lean.low == pytest.approx(-(turned.high or 0.0))


def test_length_is_held_against_what_the_labels_say() -> None:
    """The judge takes the longer in 18 of 20, the labels in 10."""
    length_a, length_b = np.array([9] * 20), np.array([5] * 20)
    verdicts = each(*[A] * 18, *[B] * 2)
    labels = each(*[A] * 10, *[B] * 10)
    found = length_bias(
        verdicts, labels, length_a=length_a, length_b=length_b, prompts=prompts(20), level=0.95
    )
    assert (found.by_judge.part, found.by_judge.of) == (18, 20)
    assert (found.by_labels.part, found.by_labels.of) == (10, 20)
    assert found.excess.value == pytest.approx(0.4)
    assert found.excess.low is not None
    assert found.excess.low > 0


def test_equally_long_and_undecided_pairs_say_nothing_of_length() -> None:
    found = length_bias(
        each(A, B, T, NO_WINNER),
        each(A, A, A, A),
        length_a=np.array([3, 3, 9, 9]),
        length_b=np.array([3, 3, 5, 5]),
        prompts=prompts(4),
        level=0.95,
    )
    assert found.by_judge.of == 0
    assert (found.by_labels.part, found.by_labels.of) == (2, 2)


def test_a_judge_that_favours_its_own_model_is_seen() -> None:
    own = each(*[A] * 10, *[B] * 10, NO_WINNER)
    verdicts = each(*[A] * 10, *[B] * 10, A)  # its own in all of them
    labels = each(*[A] * 5, *[B] * 5, *[B] * 5, *[A] * 5, A)
    found = self_preference("m", own, verdicts, labels, prompts=prompts(21), level=0.95)
    assert (found.by_judge.part, found.by_judge.of) == (20, 20)
    assert (found.by_labels.part, found.by_labels.of) == (10, 20)
    assert found.excess.value == pytest.approx(0.5)


def test_rows_of_one_prompt_are_one_cluster() -> None:
    part = np.array([True] * 40 + [False] * 40)
    alone = share_of_rows(part, np.arange(80), level=0.95, unit="pair")
    together = share_of_rows(part, np.repeat(np.arange(8), 10), level=0.95, unit="pair")
    assert alone.low is not None
    assert together.low is not None
    assert together.low < alone.low  # eight prompts that are all of one kind
