"""Juries: majority and hung votes, weights that know copies, and frozen juries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.stats.juries.jury import Jury, learn_jury, make_jury
from evenhand.stats.juries.votes import majority_vote, plurality_vote, split_votes

Table = NDArray[np.int64]
ONE_GOOD_FOUR_ALIKE = ([0.8, 0.65, 0.65, 0.65, 0.65], [0, 1, 1, 1, 1], 0.95)
FIVE_ALONE = ([0.7] * 5, [0, 1, 2, 3, 4], 0.0)


def court(
    seed: int, pairs: int, accuracies: list[float], camps: list[int], alike: float, *, ties: float
) -> tuple[Table, Table]:
    """Votes and truth; judges of one camp err together with the chance `alike`."""
    rng = np.random.default_rng(seed)
    truth = rng.choice([0, 1, 2], p=[0.55 * (1 - ties), 0.45 * (1 - ties), ties], size=pairs)
    others = 3 if ties else 2
    luck, slip = rng.random((pairs, 9)), rng.integers(1, others, (pairs, 9))
    columns = []
    for accuracy, camp in zip(accuracies, camps, strict=True):
        together = rng.random(pairs) < alike
        own = np.where(together, luck[:, camp], rng.random(pairs))
        wrong = np.where(together, slip[:, camp], rng.integers(1, others, pairs))
        columns.append(np.where(own < accuracy, truth, (truth + wrong) % others))
    return np.stack(columns, axis=1), truth


def accuracy(jury: Jury, votes: Table, truth: Table) -> float:
    return float((jury.predict(votes).winners == truth).mean())


def test_the_largest_group_wins() -> None:
    found = majority_vote([[0, 0, 1], [2, 2, 0], [1, 2, 1], [-1, -1, 1]])
    assert found.winners.tolist() == [0, 2, 1, 1]
    assert found.dissent.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert found.voters.tolist() == [3, 3, 3, 1]
    assert not found.hung.any()


def test_a_hung_jury_is_no_tie() -> None:
    found = majority_vote([[0, 1], [0, 2], [2, 2], [0, 1]])
    assert found.winners.tolist() == [-1, -1, 2, -1]
    assert found.hung.tolist() == [True, True, False, True]
    assert found.dissent.tolist() == [0.5, 0.5, 0.0, 0.5]


def test_a_jury_without_votes_is_not_hung() -> None:
    found = majority_vote([[-1, -1]])
    assert (found.winners.tolist(), found.hung.tolist(), found.voters.tolist()) == (
        [-1],
        [False],
        [0],
    )


def test_a_judge_whose_orders_differ_has_half_a_vote_for_each() -> None:
    # 3 is A and B, 4 A and a tie, 5 B and a tie.
    table = [[0, 3, 3], [4, 5, 1], [4, 3, -1], [3, 3, 3], [0, 1, 5], [2, 3, 3]]
    found = plurality_vote(table)
    # In halves for A, B and a tie: 4 2 0; 1 3 2; 2 1 1; 3 3 0; 2 3 1; 2 2 2.
    assert found.winners.tolist() == [0, 1, 0, -1, 1, -1]
    assert found.hung.tolist() == [False, False, False, True, False, True]
    assert found.dissent.tolist() == pytest.approx([1 / 3, 1 / 2, 1 / 2, 1 / 2, 1 / 2, 2 / 3])
    assert found.voters.tolist() == [1, 1, 0, 0, 2, 1]
    # A majority hears whole votes alone.
    assert majority_vote(table).winners.tolist() == [0, 1, -1, -1, -1, 2]


def test_half_votes_come_from_two_orders_that_name_different_winners() -> None:
    first, second = np.array([0, 1, 2, 2, 0, -1, -2]), np.array([1, 0, 0, 1, 0, 1, 0])
    assert split_votes(first, second).tolist() == [3, 3, 4, 5, -1, -1, -1]


def test_a_jury_of_one_member_says_what_that_judge_says() -> None:
    jury = make_jury("abc", method="member", member=1)
    found = jury.predict([[0, 1, 0], [0, 3, 0], [0, -1, 0]])
    assert found.winners.tolist() == [1, -1, -1]
    assert found.hung.tolist() == [False, True, False]
    assert found.dissent[0] == pytest.approx(2 / 3)


def test_each_judges_vote_is_kept() -> None:
    assert majority_vote([[0, 1, 2]]).votes.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("ties", [0.0, 0.15])
@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_exchanging_a_and_b_exchanges_the_verdicts(seed: int, ties: float) -> None:
    votes, truth = court(seed, 120, [0.8, 0.7, 0.6], [0, 1, 1], 0.5, ties=ties)
    mirror = np.array([1, 0, 2])
    own = learn_jury(votes, truth, seed=seed).predict(votes)
    other = learn_jury(mirror[votes], mirror[truth], seed=seed).predict(mirror[votes])
    assert own.chances is not None
    assert other.chances is not None
    assert other.chances[:, [1, 0, 2]] == pytest.approx(own.chances, abs=1e-7)
    assert np.array_equal(other.hung, own.hung)


@pytest.mark.parametrize("ties", [0.0, 0.15])
@pytest.mark.parametrize("judges", [ONE_GOOD_FOUR_ALIKE, FIVE_ALONE])
def test_a_learned_jury_is_as_good_as_its_best_judge(judges: Any, ties: float) -> None:
    votes, truth = court(1, 300, *judges, ties=ties)
    new_votes, new_truth = court(2, 20_000, *judges, ties=ties)
    learned = accuracy(learn_jury(votes, truth), new_votes, new_truth)
    best = max(float((new_votes[:, judge] == new_truth).mean()) for judge in range(5))
    assert learned > best - 0.01


def test_four_that_err_together_do_not_outvote_the_one_who_knows() -> None:
    votes, truth = court(1, 300, *ONE_GOOD_FOUR_ALIKE, ties=0.15)
    new_votes, new_truth = court(2, 20_000, *ONE_GOOD_FOUR_ALIKE, ties=0.15)
    learned = accuracy(learn_jury(votes, truth), new_votes, new_truth)
    majority = accuracy(make_jury("abcde", method="majority"), new_votes, new_truth)
    # The one who knows has 0.80; the other four, who err together, have 0.65.
    assert learned > 0.79
    assert majority < 0.70


def test_copies_of_a_judge_change_almost_nothing() -> None:
    votes, truth = court(3, 300, [0.75, 0.7, 0.65, 0.6], [0, 0, 1, 1], 0.6, ties=0.15)
    new_votes, _ = court(4, 5000, [0.75, 0.7, 0.65, 0.6], [0, 0, 1, 1], 0.6, ties=0.15)
    crowd, new_crowd = votes[:, [0, 1, 2, 3, 1, 1]], new_votes[:, [0, 1, 2, 3, 1, 1]]
    alone = learn_jury(votes, truth).predict(new_votes)
    copied = learn_jury(crowd, truth).predict(new_crowd)
    assert alone.chances is not None
    assert copied.chances is not None
    assert float(np.abs(alone.chances - copied.chances).mean()) < 0.01
    assert float((alone.winners != copied.winners).mean()) < 0.03


def test_its_probability_means_what_it_says() -> None:
    votes, truth = court(5, 2000, *FIVE_ALONE, ties=0.15)
    new_votes, new_truth = court(6, 20_000, *FIVE_ALONE, ties=0.15)
    found = learn_jury(votes, truth).predict(new_votes)
    assert found.probability is not None
    right = found.winners == new_truth
    assert float(found.probability.mean()) == pytest.approx(float(right.mean()), abs=0.015)
    unsure = found.probability < 0.8
    assert float(found.probability[unsure].mean()) == pytest.approx(
        float(right[unsure].mean()), abs=0.03
    )


def test_it_knows_how_many_labels_and_prompts_taught_it() -> None:
    votes, truth = court(1, 300, *ONE_GOOD_FOUR_ALIKE, ties=0.15)
    jury = learn_jury(votes, truth, judges="abcde", prompts=np.arange(300) // 3)
    assert (jury.labels, jury.prompts, jury.folds) == (300, 100, 5)


def test_a_jury_travels_as_json() -> None:
    votes, truth = court(1, 300, *FIVE_ALONE, ties=0.15)
    jury = learn_jury(votes, truth)
    again = Jury.model_validate_json(jury.model_dump_json())
    assert again == jury
    assert np.array_equal(again.predict(votes).winners, jury.predict(votes).winners)


def test_unread_votes_and_labels_without_a_winner_are_borne() -> None:
    votes, truth = court(1, 300, *FIVE_ALONE, ties=0.15)
    votes[::3, 0] = -1
    votes[0] = -1
    truth[1] = -1
    jury = learn_jury(votes, truth)
    assert jury.labels == 298
    found = jury.predict(votes)
    assert found.winners[0] == -1
    assert not found.hung[0]


def test_too_few_labels_give_the_majority_and_say_so() -> None:
    jury = learn_jury([[0, 1, 0]] * 5, [0] * 5)
    assert jury.method == "majority"
    assert jury.reason == "not enough data: 5 labels; at least 20 are needed"
    assert jury.predict([[0, 1, 0]]).winners.tolist() == [0]


def test_a_judge_that_never_erred_has_a_finite_weight() -> None:
    truth = np.array([0, 1] * 20)
    jury = learn_jury(truth[:, None], truth)
    assert jury.weights is not None
    assert 0.5 < jury.weights[0] < 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: majority_vote([0, 1]), "not a table of codes"),
        (lambda: majority_vote([[0, 6]]), "votes has 6 in row 1"),
        (lambda: majority_vote([[0], [0, 1]]), "unequal length"),
        (lambda: make_jury("ab", method="majority").predict([[0]]), "votes has 1 columns"),
        (lambda: learn_jury([[0]], [0, 1]), "label_winners has length 2"),
        (lambda: learn_jury([[0]], [0], judges=["a", "b"]), "judges has 2 names"),
        (lambda: learn_jury([[0]], [0], folds=1), "folds is 1"),
    ],
)
def test_a_mistake_is_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
