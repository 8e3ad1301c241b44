"""What the other models' results on a prompt tell of two models there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenhand.stats.rates.length_bias import PromptDifficulty

# Models 0, 1 and 2; the score is the first's.
FIRST = np.array([0, 0, 2, 2, 0])
SECOND = np.array([1, 1, 1, 0, 1])
SCORES = np.array([1.0, 0.0, 1.0, 0.5, 1.0])
PROMPTS = np.array([7, 9, 7, 7, 7])
VALID = np.array([True, True, True, True, False])


def log_odds(points: float, rows: int) -> float:
    share = (points + 0.5) / (rows + 1)
    return math.log(share / (1 - share))


def test_others_results_against_the_two_are_what_counts() -> None:
    found = PromptDifficulty(FIRST, SECOND, SCORES, prompts=PROMPTS, valid=VALID)
    # On prompt 7 model 2 won all of one game against model 1 and half of one against model 0;
    # nobody else was asked prompt 9.
    seven = log_odds(1, 1) - log_odds(0.5, 1)
    assert found.of(np.array([0, 1, 4])) == pytest.approx([seven, 0.0, seven])


def test_a_pair_of_its_own_tells_nothing() -> None:
    found = PromptDifficulty(
        FIRST[:2], SECOND[:2], SCORES[:2], prompts=PROMPTS[:2], valid=VALID[:2]
    )
    assert found.of(np.array([0, 1])).tolist() == [0.0, 0.0]


def test_an_invalid_row_tells_nothing() -> None:
    valid = np.array([True, True, False, False, False])
    found = PromptDifficulty(FIRST, SECOND, SCORES, prompts=PROMPTS, valid=valid)
    assert found.of(np.array([0, 1, 4])).tolist() == [0.0, 0.0, 0.0]


def test_no_rows_have_no_difficulty() -> None:
    none = np.zeros(0, dtype=np.intp)
    found = PromptDifficulty(none, none, none.astype(float), prompts=none, valid=none.astype(bool))
    assert found.of(none).size == 0


def naive(
    first: NDArray[np.intp], second: NDArray[np.intp], scores: list[float], row: int
) -> float:
    sides = {int(first[row]), int(second[row])}

    def against(model: int) -> float:
        points, rows = 0.0, 0
        for one, other, score in zip(first, second, scores, strict=True):
            if {int(one), int(other)} != sides and model in (one, other):
                points += score if other == model else 1 - score
                rows += 1
        return log_odds(points, rows)

    return against(int(second[row])) - against(int(first[row]))


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_it_is_the_naive_sum_and_changes_its_sign_with_the_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, 30)
    second = (first + rng.integers(1, 4, 30)) % 4
    scores = rng.choice([0.0, 0.5, 1.0], 30)
    one_prompt = np.zeros(30, dtype=np.intp)
    valid = np.ones(30, dtype=np.bool_)
    found = PromptDifficulty(first, second, scores, prompts=one_prompt, valid=valid)
    mirror = PromptDifficulty(second, first, 1 - scores, prompts=one_prompt, valid=valid)
    rows = np.flatnonzero(np.minimum(first, second) * 4 + np.maximum(first, second) == 1)
    expected = [naive(first, second, scores.tolist(), int(row)) for row in rows]
    assert found.of(rows) == pytest.approx(expected, abs=1e-12)
    assert mirror.of(rows).tolist() == (-found.of(rows)).tolist()
