"""Accuracy of juries on prompts they were not learned from: by counting, and in known worlds."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.stats.estimates import EstimatedValue
from evenhand.stats.juries.accuracy import (
    LITTLE,
    JuryAccuracy,
    RuleAccuracy,
    choose_jury,
    half_credit,
    jury_accuracy,
)
from evenhand.stats.juries.jury import learn_jury
from evenhand.stats.juries.votes import Winners


def world(pairs: int, *accuracies: float, seed: int = 0) -> tuple[Winners, Winners]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, pairs)
    right = rng.random((pairs, len(accuracies))) < np.array(accuracies)
    votes = np.where(right, labels[:, None], 1 - labels[:, None])
    return votes.astype(np.int8), labels.astype(np.int8)


def rule(found: JuryAccuracy, name: str) -> RuleAccuracy:
    return next(each for each in found.rules if each.rule == name)


def test_the_majority_and_each_judge_are_counted() -> None:
    votes = [[0, 0, 1], [0, 1, -1], [1, 1, 1], [2, 2, 0], [-1, -1, -1], [0, 0, 0]]
    labels = [0, 0, 1, 0, 1, -1]
    found = jury_accuracy(np.array(votes), labels, judges=("x", "y", "z"))
    # Five have a label. Majority: right, hung, right, wrong, no votes. x: rows 1, 2, 3 are right;
    # y: rows 1 and 3; z: rows 3 and 4.
    parts = {each.rule: (each.accuracy.part, each.accuracy.of) for each in found.rules}
    expected = {"plurality": (2, 5), "majority": (2, 5), "x": (3, 5), "y": (2, 5), "z": (2, 5)}
    assert parts == expected
    assert found.choice_reason == "not enough data: 5 labels, 4 with a vote; at least 20 are needed"
    assert found.worth is None
    assert found.reason == "not enough data: 5 labels, 4 with a vote; at least 40 are needed"


def test_a_jury_without_its_quorum_is_not_right() -> None:
    votes = np.array([[0, -1, -1], [0, 0, -1]])
    told = [
        rule(
            jury_accuracy(votes, [0, 0], judges=("x", "y", "z"), quorum={"majority": quorum}),
            "majority",
        )
        for quorum in (1, 2, 3)
    ]
    assert [each.accuracy.part for each in told] == [2, 1, 0]
    assert [each.decided.part for each in told] == [2, 1, 0]
    assert [each.quorum for each in told] == [1, 2, 3]


def test_no_rule_is_shown_under_another_ones_quorum() -> None:
    # Of three judges one votes on each pair, and is right on all but every tenth.
    labels = np.arange(100) % 2
    votes = np.full((100, 3), -1)
    votes[np.arange(100), np.arange(100) % 3] = np.where(np.arange(100) % 10, labels, 1 - labels)
    found = jury_accuracy(votes, labels, judges=("x", "y", "z"))
    shown = {name: rule(found, name).accuracy.part for name in ("majority", "plurality", "learned")}
    assert shown == {"majority": 0, "plurality": 90, "learned": 90}


def test_what_is_undecided_counts_half_for_every_rule() -> None:
    # Labels A x 20, B x 10, tie x 10; x says A on all, y a tie on all, z nothing.
    labels = np.array([0] * 20 + [1] * 10 + [2] * 10)
    votes = np.tile([0, 2, -1], (40, 1))
    found = jury_accuracy(votes, labels, judges=("x", "y", "z"))
    # x: 20 right of 40. y: a tie is half on 30 pairs with a winner, right on 10: 15 + 10 of 40.
    # z: half of 40. Plurality: A against a tie is hung on all 40.
    shown = {each.rule: each.half_credit.value for each in found.rules}
    assert (shown["x"], shown["y"], shown["z"]) == (0.5, 25 / 40, 0.5)
    assert shown["plurality"] == 0.5
    assert half_credit([0, 2, -1, 1], [0, 0, 0, 0]).tolist() == [1.0, 0.5, 0.5, 0.0]
    # y is the best in all but by chance the folds, so that it has no gain over itself.
    assert rule(found, "best member").picks == {"y": 5}
    assert rule(found, "y").gain == EstimatedValue(value=0, low=0, high=0, reason=None)
    gain = rule(found, "plurality").gain
    assert gain is not None
    assert gain.value == pytest.approx(0.5 - 25 / 40)


def test_the_best_member_is_not_the_luckiest() -> None:
    # Twenty coins on 36 pairs: the luckiest is right on 60 to 75%, each on new pairs on half.
    found, luckiest = [], []
    for seed in range(30):
        votes, labels = world(36, *[0.5] * 20, seed=seed)
        tried = jury_accuracy(votes, labels, judges=[str(place) for place in range(20)])
        found.append(rule(tried, "best member").half_credit.value or 0)
        luckiest.append(max(each.half_credit.value or 0 for each in tried.rules[-20:]))
    # The mean of 30 shares of 36 coins has the standard error 0.5 / sqrt(1080) = 0.015.
    assert abs(float(np.mean(found)) - 0.5) < 4 * 0.5 / np.sqrt(1080)
    assert float(np.mean(luckiest)) > 0.6


@pytest.mark.parametrize(
    ("accuracies", "method"),
    [
        ((0.95, 0.5, 0.5), {"member", "learned"}),
        ((0.75,) * 5, {"plurality", "majority", "learned"}),
    ],
)
def test_labels_choose_a_rule_that_suits_the_judges(
    accuracies: tuple[float, ...], method: set[str]
) -> None:
    votes, labels = world(1000, *accuracies)
    jury = choose_jury(votes, labels, judges=[str(place) for place in range(len(accuracies))])
    assert jury.method in method
    assert jury.labels == 1000
    assert jury.member in (None, 0)
    # Five that are right on 75% are together right on 90%: sum of C(5, k) .75^k .25^(5-k), k > 2.
    fresh, truth = world(20_000, *accuracies, seed=9)
    right = float((jury.predict(fresh).winners == truth).mean())
    assert right > {3: 0.94, 5: 0.88}[len(accuracies)]


def test_a_rule_needs_a_clear_gain_over_the_best_member() -> None:
    """One judge is right on 85%, two are on 65%: together, by plurality, on 81% (.85·.65² +
    .85·2·.65·.35 + .15·.65²). By 60 labels the plurality looked better in a third of the panels."""
    methods = [
        choose_jury(*world(60, 0.85, 0.65, 0.65, seed=seed), judges=tuple("xyz")).method
        for seed in range(20)
    ]
    # A test at 2.5% for each of three rules: of 20 panels 1.5, and 3 at most with some luck.
    assert methods.count("member") >= 17


def test_prompts_with_many_labels_count_once_in_a_clear_gain() -> None:
    """Each label ten times on one prompt: no more is known than by each once."""
    votes, labels = world(40, 0.85, 0.7, 0.7, seed=7)
    copied = np.repeat(votes, 10, axis=0), np.repeat(labels, 10)
    prompts = np.repeat(np.arange(40), 10)
    assert choose_jury(votes, labels, judges=tuple("xyz")).method == "member"
    assert choose_jury(*copied, judges=tuple("xyz"), prompts=prompts).method == "member"
    assert choose_jury(*copied, judges=tuple("xyz")).method == "plurality"


def test_too_few_labels_choose_nothing_and_plurality_is_taken() -> None:
    votes, labels = world(19, 0.9, 0.6, 0.6)
    jury = choose_jury(votes, labels, judges=tuple("xyz"))
    assert (jury.method, jury.labels) == ("plurality", 0)
    assert jury.reason == "not enough data: 19 labels; at least 20 are needed"


@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_rule_is_not_worse_than_the_best_member_beyond_its_interval(seed: int) -> None:
    # One good judge among coins that are never undecided: a majority throws its knowledge away.
    votes, labels = world(200, 0.9, 0.5, 0.5, 0.5, seed=seed)
    found = jury_accuracy(votes, labels, judges=tuple("wxyz"))
    chosen, majority = rule(found, "chosen").gain, rule(found, "majority").gain
    assert chosen is not None
    assert majority is not None
    assert chosen.high is not None
    assert chosen.high >= 0
    assert majority.high is not None
    assert majority.high < -0.05


def test_a_learned_jury_is_as_right_on_new_prompts_as_it_says() -> None:
    votes, labels = world(4_000, 0.8, 0.65, 0.55)
    fresh, truth = world(200_000, 0.8, 0.65, 0.55, seed=1)
    found = rule(jury_accuracy(votes, labels, judges=("x", "y", "z")), "learned")
    really = float((learn_jury(votes, labels).predict(fresh).winners == truth).mean())
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
    tried = jury_accuracy(votes, labels, judges=tuple("abcdefgh"))
    learned = rule(tried, "learned")
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
            found.append(rule(tried, "learned").accuracy.part / 1200)
    # The mean of so many shares of 60 coins has this standard error.
    assert abs(float(np.mean(together)) - 0.5) < 4 * 0.5 / np.sqrt(fields * 60)
    assert float(np.mean(apart)) > 0.58


@pytest.mark.parametrize("cast", [0, 19])
def test_a_judge_without_usable_votes_is_neither_best_member_nor_chosen(cast: int) -> None:
    """It has half credit on nearly every pair, and the others less: 40% of 100."""
    labels = np.zeros(100, dtype=np.int8)
    votes = np.full((100, 3), -1, dtype=np.int8)
    votes[:cast, 0] = 0
    votes[:, 1] = [0] * 40 + [1] * 60
    votes[:, 2] = [1] * 62 + [0] * 38
    found = jury_accuracy(votes, labels, judges=("silent", "y", "z"))
    assert set(rule(found, "best member").picks) <= {"y", "z"}
    assert choose_jury(votes, labels, judges=("silent", "y", "z")).member != 0
    # y is right on 40, the silent judge has 50 or more: the gain of y is over itself or z.
    gain = rule(found, "y").gain
    assert gain is not None
    assert gain.value is not None
    assert gain.value >= 0


def test_no_member_is_best_where_none_has_votes_enough() -> None:
    votes = np.full((30, 2), -1, dtype=np.int8)
    votes[:15, 0] = votes[15:, 1] = 0
    found = jury_accuracy(votes, np.zeros(30, dtype=np.int8), judges=("x", "y"))
    assert found.choice_reason == (
        "not enough data: no judge has more than 15 votes on labelled pairs; at least 20 are needed"
    )


def test_a_single_judge_has_no_worth_without_itself() -> None:
    votes, labels = world(100, 0.8)
    found = jury_accuracy(votes, labels, judges=("x",))
    assert found.worth == ()
    # A jury of one judge that is mostly right says what it says.
    assert rule(found, "learned").accuracy.part == rule(found, "x").accuracy.part


def test_too_many_judges_are_tried_without_learned_weights() -> None:
    votes, labels = world(100, *[0.7] * 32)
    found = jury_accuracy(votes, labels, judges=[str(place) for place in range(32)])
    assert [each.rule for each in found.rules[:4]] == [
        "chosen",
        "best member",
        "plurality",
        "majority",
    ]
    assert found.worth is None
    assert found.reason == "32 judges are too many to learn from; the limit is 22"
