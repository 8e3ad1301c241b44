"""Effective votes and accuracy without labels, by arithmetic and in worlds whose truth is known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from evenhand.stats.juries.accuracy import half_credit
from evenhand.stats.juries.independence import effective_votes, label_free_accuracy
from evenhand.stats.juries.votes import Winners, plurality_vote


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
        "no pair has a label; how far judges err together shows only against labels"
    )
    assert "right, or wrong, on every labelled pair" in str(effective_votes(votes, [0] * 30).reason)


def independent(chances: tuple[float, ...], *, times: int) -> tuple[Winners, Winners]:
    """Every pattern of right and wrong, as often as judges that err independently show it."""
    rows, truth = [], []
    for label in (0, 1):
        for right in product((True, False), repeat=len(chances)):
            share = np.prod(
                [own if well else 1 - own for own, well in zip(chances, right, strict=True)]
            )
            number = times * float(share)
            assert number == pytest.approx(round(number))
            rows += [[label if well else 1 - label for well in right]] * round(number)
            truth += [label] * round(number)
    return np.array(rows, dtype=np.int8), np.array(truth, dtype=np.int8)


@pytest.mark.parametrize("chances", [(0.9, 0.8, 0.7), (0.9, 0.8, 0.7, 0.4)])
def test_judges_that_err_independently_are_known_without_labels(
    chances: tuple[float, ...],
) -> None:
    votes, truth = independent(chances, times=10_000)
    jury = plurality_vote(votes).winners
    found = label_free_accuracy(votes, jury)
    assert [each.value for each in found.judges] == pytest.approx(chances, abs=1e-4)
    assert found.jury.value == pytest.approx(float(half_credit(jury, truth).mean()), abs=1e-4)
    assert found.jury.low is not None
    assert found.jury.high is not None
    assert found.jury.low < (found.jury.value or 0) < found.jury.high


def test_exchanging_a_and_b_changes_no_estimate() -> None:
    votes, _ = independent((0.9, 0.8, 0.7), times=1000)
    own = label_free_accuracy(votes, plurality_vote(votes).winners)
    turned = label_free_accuracy(1 - votes, plurality_vote(1 - votes).winners)
    assert [each.value for each in turned.judges] == pytest.approx(
        [each.value for each in own.judges]
    )
    assert turned.jury.value == pytest.approx(own.jury.value)


def test_judges_that_err_together_look_better_than_they_are() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 2000)
    common = rng.random(2000) < 0.65
    votes = np.empty((2000, 3), dtype=np.int8)
    for place in range(3):
        right = np.where(rng.random(2000) < 0.8, common, rng.random(2000) < 0.65)
        votes[:, place] = np.where(right, truth, 1 - truth)
    found = label_free_accuracy(votes, plurality_vote(votes).winners)
    # The truth is 65 %; 0.8^2 of the pairs of judges say the same whatever it is.
    assert min(each.low or 0 for each in found.judges) > 0.75
    assert "too high on 60" in found.error


def test_two_judges_tell_nothing_of_their_accuracy() -> None:
    votes = np.array([[0, 1], [0, 0]] * 20)
    found = label_free_accuracy(votes, plurality_vote(votes).winners)
    assert found.jury.value is None
    assert found.reason == (
        "agreement says nothing of accuracy with 2 judges; at least 3 are needed"
    )


def test_a_judge_that_shares_no_pair_with_another_is_not_estimated() -> None:
    votes, _ = independent((0.9, 0.8, 0.7), times=1000)
    alone = np.full((len(votes), 1), -1, dtype=np.int8)
    rows = np.vstack([np.hstack([votes, alone]), [[-1, -1, -1, 0]] * 10])
    found = label_free_accuracy(rows, plurality_vote(rows).winners)
    assert found.judges[3].value is None
    assert found.judges[0].value == pytest.approx(0.5 + 0.4 * len(votes) / len(rows), abs=1e-3)


@pytest.mark.slow
def test_intervals_without_labels_cover_where_judges_err_independently() -> None:
    rng = np.random.default_rng(2)
    chances, draws = np.array([0.85, 0.75, 0.65]), 200
    covered = np.zeros(3)
    for _ in range(draws):
        truth = rng.integers(0, 2, 400)
        right = rng.random((400, 3)) < chances
        votes = np.where(right, truth[:, None], 1 - truth[:, None]).astype(np.int8)
        found = label_free_accuracy(votes, plurality_vote(votes).winners)
        covered += [
            (each.low or 0) <= own <= (each.high or 0)
            for each, own in zip(found.judges, chances, strict=True)
        ]
    # 95 % less four standard errors of 200 draws and the skewness of ratios of small products.
    assert (covered / draws > 0.87).all()
