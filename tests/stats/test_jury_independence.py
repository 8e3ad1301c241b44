"""Effective votes, by arithmetic and in worlds whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.juries.independence import effective_votes


def test_copies_of_a_judge_are_one_vote() -> None:
    labels = np.arange(60) % 2
    one = np.where(np.arange(60) % 3, labels, 1 - labels)
    found = effective_votes(np.stack([one] * 4, axis=1), labels)
    assert found.value == pytest.approx(1)
    assert found.low == pytest.approx(1)
    assert found.high == pytest.approx(1)


def test_effective_votes_are_judges_over_the_design_effect() -> None:
    # Of each 20 pairs both are right on 9, each alone on 3, neither on 5. So each is right on 12:
    # covariance 9/20 - (12/20)^2 = 0.09, variance 0.6 * 0.4 = 0.24, correlation 0.375, and
    # 2 / (1 + 0.375) votes.
    labels = np.zeros(200, dtype=np.int8)
    first = np.array(([0] * 9 + [0] * 3 + [1] * 3 + [1] * 5) * 10)
    second = np.array(([0] * 9 + [1] * 3 + [0] * 3 + [1] * 5) * 10)
    found = effective_votes(np.stack([first, second], axis=1), labels)
    assert found.value == pytest.approx(2 / 1.375)
    # Fisher's interval of r = 0.375 from 200 pairs: tanh(atanh(0.375) -+ 1.96 / sqrt(197)).
    ends = np.tanh(np.arctanh(0.375) + np.array([1, -1]) * 1.96 / np.sqrt(197))
    assert (found.low, found.high) == pytest.approx(tuple(2 / (1 + ends)), abs=0.02)


def test_independent_judges_count_fully_and_never_for_more() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2000)
    right = rng.random((2000, 4)) < 0.7
    found = effective_votes(np.where(right, labels[:, None], 1 - labels[:, None]), labels)
    assert found.value == pytest.approx(4, abs=0.2)
    assert found.high == 4


def test_effective_votes_need_labels_and_errors() -> None:
    votes = np.array([[0, 1, 0]] * 30)
    assert effective_votes(votes, [-1] * 30).reason == (
        "no pair has a label, and only labels show whether judges err together"
    )
    assert "right, or wrong, on every labelled pair" in str(effective_votes(votes, [0] * 30).reason)
