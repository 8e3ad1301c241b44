"""Accuracy of juries on prompts they were not learned from: by counting, and in known worlds."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.juries.accuracy import LITTLE, jury_accuracy
from evenhand.stats.juries.jury import learn_jury
from evenhand.stats.juries.votes import Winners


def world(pairs: int, *accuracies: float, seed: int = 0) -> tuple[Winners, Winners]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, pairs)
    right = rng.random((pairs, len(accuracies))) < np.array(accuracies)
    votes = np.where(right, labels[:, None], 1 - labels[:, None])
    return votes.astype(np.int8), labels.astype(np.int8)


def test_the_majority_and_each_judge_are_counted() -> None:
    votes = [[0, 0, 1], [0, 1, -1], [1, 1, 1], [2, 2, 0], [-1, -1, -1], [0, 0, 0]]
    labels = [0, 0, 1, 0, 1, -1]
    found = jury_accuracy(np.array(votes), labels, judges=("x", "y", "z"))
    # Five have a label. Majority: right, hung, right, wrong, no votes. x: rows 1, 2, 3 are right;
    # y: rows 1 and 3; z: rows 3 and 4.
    parts = {rule.rule: (rule.accuracy.part, rule.accuracy.of) for rule in found.rules}
    assert parts == {"majority": (2, 5), "x": (3, 5), "y": (2, 5), "z": (2, 5)}
    assert found.worth is None
    assert found.reason == "not enough data: 4 labels; at least 40 are needed"


def test_a_jury_without_its_quorum_is_not_right() -> None:
    votes = np.array([[0, -1, -1], [0, 0, -1]])
    told = [
        jury_accuracy(votes, [0, 0], judges=("x", "y", "z"), quorum=quorum).rules[0].accuracy.part
        for quorum in (1, 2, 3)
    ]
    assert told == [2, 1, 0]


def test_a_learned_jury_is_as_right_on_new_prompts_as_it_says() -> None:
    votes, labels = world(4_000, 0.8, 0.65, 0.55)
    fresh, truth = world(200_000, 0.8, 0.65, 0.55, seed=1)
    found = jury_accuracy(votes, labels, judges=("x", "y", "z")).rules[0]
    really = float((learn_jury(votes, labels).predict(fresh).winners == truth).mean())
    assert found.rule == "learned"
    assert found.accuracy.low is not None
    assert found.accuracy.high is not None
    assert found.accuracy.low < really < found.accuracy.high


def test_a_judge_is_worth_what_the_jury_loses_without_it() -> None:
    votes, labels = world(4_000, 0.8, 0.65, 0.5)
    copied = np.hstack([votes, votes[:, :1]])
    found = jury_accuracy(copied, labels, judges=("good", "fair", "coin", "copy"))
    assert found.worth is not None
    good, fair, coin, copy = found.worth
    for useless in (good, coin, copy):  # the good judge's copy speaks for it
        assert useless.high is not None
        assert useless.high < LITTLE
    assert fair.low is not None
    assert fair.low > LITTLE


def test_a_judge_of_little_worth_is_right_on_57_per_cent() -> None:
    # Entropy of a coin less that of an error in 43 of 100, in nats.
    worth = np.log(2) + 0.57 * np.log(0.57) + 0.43 * np.log(0.43)
    assert worth == pytest.approx(LITTLE, rel=0.05)


def test_labels_of_noise_teach_nothing() -> None:
    rng = np.random.default_rng(5)
    votes = rng.integers(0, 2, (200, 8)).astype(np.int8)
    labels = rng.integers(0, 2, 200)
    learned = jury_accuracy(votes, labels, judges=tuple("abcdefgh")).rules[0]
    assert learned.accuracy.low is not None
    assert learned.accuracy.low < 0.5
    assert learned.log_loss is not None
    assert learned.log_loss > 0.95 * np.log(2)


@pytest.mark.slow
@pytest.mark.parametrize("fields", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_rows_of_a_prompt_are_never_learned_from_and_tried_on(fields: int) -> None:
    # All is noise, but a prompt's rows are alike: who has seen some of them knows the others.
    prompts = np.repeat(np.arange(60), 20)
    together: list[float] = []
    apart: list[float] = []
    for seed in range(fields):
        rng = np.random.default_rng(seed)
        votes = rng.integers(0, 2, (60, 6))[prompts]
        labels = rng.integers(0, 2, 60)[prompts]
        for known, found in ((prompts, together), (None, apart)):
            tried = jury_accuracy(votes, labels, judges=tuple("abcdef"), prompts=known)
            found.append(tried.rules[0].accuracy.part / 1200)
    # The mean of so many shares of 60 coins has this standard error.
    assert abs(float(np.mean(together)) - 0.5) < 4 * 0.5 / np.sqrt(fields * 60)
    assert float(np.mean(apart)) > 0.58


def test_a_single_judge_has_no_worth_without_itself() -> None:
    votes, labels = world(100, 0.8)
    found = jury_accuracy(votes, labels, judges=("x",))
    assert found.worth == ()
    # A jury of one judge that is mostly right says what it says.
    assert found.rules[0].accuracy.part == found.rules[2].accuracy.part


def test_too_many_judges_are_tried_by_their_majority_alone() -> None:
    votes, labels = world(100, *[0.7] * 32)
    found = jury_accuracy(votes, labels, judges=[str(place) for place in range(32)])
    assert found.rules[0].rule == "majority"
    assert found.worth is None
    assert found.reason == "32 judges are too many to learn from; at most 31 are tried"
