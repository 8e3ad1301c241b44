"""The same-family effect. Expected numbers are written out beside the assertions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student

from evenhand.stats.estimates import EstimatedValue
from evenhand.stats.rates.family_effect import effect_between_judges, effect_beyond_labels

Floats = NDArray[np.float64]


def test_the_effect_between_judges_is_the_mean_difference_with_students_interval() -> None:
    own = np.array([1, 1, 1, 1, 1, 1, 0, 0.0])
    others = np.array([1, 0, 1, 0, 1, 0, 1, 0.0])
    effect = effect_between_judges(own, others, prompts=np.arange(8), level=0.95)
    # Differences 0 1 0 1 0 1 -1 0: mean 2/8; squares about it 4 - 8/16 = 3.5; 3.5 / (8 x 7) = 1/16.
    assert effect.value == 0.25
    half = 2.364624 * 0.25  # Student's quantile for 7 degrees of freedom, by the table
    assert effect.low == pytest.approx(0.25 - half, abs=1e-6)
    assert effect.high == pytest.approx(0.25 + half, abs=1e-6)


def test_each_prompt_weighs_the_same() -> None:
    # Prompt 0 has three rows that differ by 1, five others one row each that differs by 0.
    own = np.array([1, 1, 1, 1, 0, 1, 0, 1.0])
    others = np.array([0, 0, 0, 1, 0, 1, 0, 1.0])
    prompts = np.array([0, 0, 0, 1, 2, 3, 4, 5])
    effect = effect_between_judges(own, others, prompts=prompts, level=0.95)
    assert effect.value == pytest.approx(1 / 6)  # and not 3 / 8


def test_judges_who_never_differ_leave_an_interval_that_is_no_point() -> None:
    same = np.tile([1.0, 0.0], 10)
    effect = effect_between_judges(same, same, prompts=np.arange(20), level=0.95)
    assert effect.value == 0
    assert effect.low is not None
    assert effect.low == pytest.approx(-(effect.high or 0))
    assert effect.low < -0.1


def test_few_prompts_give_a_reason_and_no_number() -> None:
    one = np.ones(8)
    effect = effect_between_judges(one, 1 - one, prompts=np.zeros(8, int), level=0.95)
    assert effect.value is None
    assert "1 prompt" in (effect.reason or "")


def labelled(other_right: int, other_wrong: int) -> EstimatedValue:
    """Ten own pairs: the labels prefer the family in 6, the judge in 8. And other pairs."""
    others = other_right + other_wrong
    labels = np.array([1.0] * 6 + [0.0] * 4 + [1.0, 0.0] * (others // 2))
    judged = np.array([1.0] * 8 + [0.0] * 2 + [1.0, 0.0] * (others // 2))
    judged[10 : 10 + other_wrong] = 1 - judged[10 : 10 + other_wrong]
    own = np.arange(labels.size) < 10
    return effect_beyond_labels(judged, labels, own=own, prompts=np.arange(labels.size), level=0.95)


def test_without_other_pairs_the_effect_is_the_judge_less_people() -> None:
    assert labelled(0, 0).value == pytest.approx(0.8 - 0.6)


def test_other_pairs_say_how_much_of_a_label_the_judge_takes_over() -> None:
    # Right on 8 of 10 other pairs: b = (8 - 2) / 10. (0.8 - 0.5) - 0.6 x (0.6 - 0.5) = 0.24.
    assert labelled(8, 2).value == pytest.approx(0.24)
    # Right on all of them: b = 1, and the effect is the plain difference.
    assert labelled(10, 0).value == pytest.approx(0.2)


def test_exchanging_the_sides_of_other_pairs_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    judged, labels = rng.integers(0, 3, (2, 40)) / 2
    own, prompts = np.arange(40) < 20, np.arange(40) // 2
    turned = ~own & (rng.random(40) < 0.5)

    def effect(judged: Floats, labels: Floats) -> EstimatedValue:
        return effect_beyond_labels(judged, labels, own=own, prompts=prompts, level=0.9)

    there = effect(judged, labels)
    turned_round = effect(
        np.where(turned, 1 - judged, judged), np.where(turned, 1 - labels, labels)
    )
    assert turned_round.value == pytest.approx(there.value)
    assert turned_round.low == pytest.approx(there.low)


def test_a_careless_judge_without_a_family_preference_shows_none() -> None:
    """People prefer the family in 80 %; a judge that is right in 70 % prefers it in 62 %, which is
    18 points less than people and no preference at all."""
    labels = np.concatenate([np.ones(80), np.zeros(20), np.tile([1.0, 0.0], 50)])
    # 70 % right of those that people give the family, of those they do not, and of other pairs.
    right = np.concatenate([np.arange(rows) < 0.7 * rows for rows in (80, 20, 100)])
    judged = np.where(right, labels, 1 - labels)
    own = np.arange(200) < 100
    effect = effect_beyond_labels(judged, labels, own=own, prompts=np.arange(200), level=0.95)
    # Other pairs: 70 of 100 right, b = 0.4. (0.62 - 0.5) - 0.4 x (0.8 - 0.5) = 0.
    assert judged[own].mean() == pytest.approx(0.62)
    assert effect.value == pytest.approx(0.0, abs=1e-12)


def test_a_known_effect_is_covered_as_often_as_the_level_says() -> None:
    """60 prompts of 3 pairs, a prompt's quality shared by its pairs; in a fifth of the pairs the
    judge takes its own family whatever it is worth, which gains 0.2 x one half."""
    rng = np.random.default_rng(11)
    hits, runs, prompts = 0, 300, np.repeat(np.arange(60), 3)
    for _ in range(runs):
        quality = 1 / (1 + np.exp(-rng.normal(0, 0.8, 60)[prompts] - rng.normal(0, 0.5, 180)))
        others = (rng.random(180) < quality).astype(float)
        biased = rng.random(180) < 0.2
        own = np.where(biased, 1.0, rng.random(180) < quality)
        effect = effect_between_judges(own, others, prompts=prompts, level=0.95)
        assert effect.low is not None
        assert effect.high is not None
        hits += effect.low <= 0.1 <= effect.high
    # Two binomial standard errors of 95 % in 300 are 2.5 points; three, to be safe, 3.8.
    assert abs(hits / runs - 0.95) < 3 * math.sqrt(0.95 * 0.05 / runs)


def test_the_quantile_of_the_first_test_is_the_tables() -> None:
    assert student.ppf(0.975, 7) == pytest.approx(2.364624, abs=1e-6)
