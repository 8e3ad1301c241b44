"""The same-family effect. Expected numbers are written out beside the assertions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student

from evenhand.stats.rates.family_effect import adjusted_difference, preference_difference

Floats = NDArray[np.float64]


def test_the_preference_difference_is_the_mean_difference_with_students_interval() -> None:
    own = np.array([1, 1, 1, 1, 1, 1, 0, 0.0])
    others = np.array([1, 0, 1, 0, 1, 0, 1, 0.0])
    effect = preference_difference(own, others, prompts=np.arange(8), level=0.95)
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
    effect = preference_difference(own, others, prompts=prompts, level=0.95)
    assert effect.value == pytest.approx(1 / 6)  # and not 3 / 8


def test_judges_who_never_differ_leave_an_interval_that_is_no_point() -> None:
    same = np.tile([1.0, 0.0], 10)
    effect = preference_difference(same, same, prompts=np.arange(20), level=0.95)
    assert effect.value == 0
    assert effect.low is not None
    assert effect.low == pytest.approx(-(effect.high or 0))
    assert effect.low < -0.1


def test_few_prompts_give_a_reason_and_no_number() -> None:
    one = np.ones(8)
    effect = preference_difference(one, 1 - one, prompts=np.zeros(8, int), level=0.95)
    assert effect.value is None
    assert "1 prompt" in (effect.reason or "")


def two_matchups(
    right: float, strong: float = 0.8, prompts: int = 100
) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Of `prompts` prompts the family's side and the stronger of two other models are preferred by
    others in a share `strong`; own judges agree with them in a share `right`, wherever they
    stand. Prompts are parted so that every share is met exactly."""
    ahead = round(strong * prompts)
    others = np.concatenate([np.ones(ahead), np.zeros(prompts - ahead)])
    agrees = np.concatenate([np.arange(n) < right * n for n in (ahead, prompts - ahead)])
    own = np.where(agrees, others, 1 - others)
    matchups = np.repeat([-1, 0], prompts)
    # The same prompt is not at the same place in both, so that no prompt is right twice as often.
    places = np.concatenate([np.arange(prompts), np.roll(np.arange(prompts), prompts // 2)])
    return np.tile(own, 2), np.tile(others, 2), matchups, places


def products(x: Floats, y: Floats) -> float:
    """Of every two different prompts, one by one."""
    return float(sum(a * b for i, a in enumerate(x) for k, b in enumerate(y) if i != k))


def test_other_matchups_say_how_much_of_a_difference_is_no_preference() -> None:
    """Others prefer the family in 80%; a judge that agrees with them in 70% prefers it in
    62%: 18 points less, and no preference at all, since other models lose as much."""
    own, others, matchups, prompts = two_matchups(0.7)
    family = matchups < 0
    plain = preference_difference(own[family], others[family], prompts=prompts[family], level=0.95)
    assert plain.value == pytest.approx(0.62 - 0.8)
    adjusted = adjusted_difference(own, others, matchups=matchups, prompts=prompts, level=0.95)
    assert adjusted is not None
    # b by the definition: products of different prompts of the other matchup.
    x, y = own[~family] - 0.5, others[~family] - 0.5
    slope = products(x, y) / products(y, y)
    assert adjusted.value == pytest.approx(0.12 - slope * 0.3)
    assert adjusted.value == pytest.approx(0.0, abs=0.01)
    assert adjusted.low is not None
    assert adjusted.high is not None
    assert adjusted.low < 0 < adjusted.high


def test_the_jackknife_of_the_adjusted_difference_is_that_of_each_prompt_left_out() -> None:
    own, others, matchups, prompts = two_matchups(0.8, strong=0.9, prompts=20)

    def effect(kept: NDArray[np.bool_]) -> float:
        family = (matchups < 0) & kept
        rest = (matchups == 0) & kept
        slope = products(own[rest] - 0.5, others[rest] - 0.5)
        slope /= products(others[rest] - 0.5, others[rest] - 0.5)
        return float((own[family] - 0.5).mean() - slope * (others[family] - 0.5).mean())

    whole = effect(np.ones(40, bool))
    deviations = np.array([effect(prompts != place) - whole for place in range(20)])
    variance = 19 / 20 * (deviations**2).sum()
    squares = deviations**2
    degrees = min(19.0, 3 * squares.sum() ** 2 / (squares**2).sum() - 1)
    half = student.ppf(0.975, degrees) * math.sqrt(variance)
    adjusted = adjusted_difference(own, others, matchups=matchups, prompts=prompts, level=0.95)
    assert adjusted is not None
    assert adjusted.value == pytest.approx(whole)
    assert adjusted.low == pytest.approx(max(-1, whole - half))
    assert adjusted.high == pytest.approx(whole + half)


def test_even_matchups_adjust_nothing() -> None:
    own, others, matchups, prompts = two_matchups(0.7, strong=0.55)
    assert adjusted_difference(own, others, matchups=matchups, prompts=prompts, level=0.95) is None
    family = matchups < 0
    alone = adjusted_difference(
        own[family], others[family], matchups=matchups[family], prompts=prompts[family], level=0.95
    )
    assert alone is None


def test_two_careless_judges_do_not_look_like_a_preference() -> None:
    """Both err in a fifth of all pairs, apart from each other: their scores agree in the mean, and
    their noise must not flatten the slope."""
    rng = np.random.default_rng(5)
    effects = []
    for _ in range(200):
        truth = np.tile(np.arange(100) < 90, 3)
        own, others = (np.where(rng.random(300) < 0.2, ~truth, truth) * 1.0 for _ in range(2))
        matchups, prompts = np.repeat([-1, 0, 1], 100), rng.permutation(300) % 100
        found = adjusted_difference(own, others, matchups=matchups, prompts=prompts, level=0.95)
        assert found is not None
        effects.append(found.value)
    # Both means are 0.9 x 0.6 - 0.3 = 0.24 above one half. The slope through single scores would
    # be 0.6 x 0.6 = 0.36, and the effect 0.24 - 0.36 x 0.24 = 0.15.
    assert abs(float(np.mean(np.array(effects, float)))) < 0.02


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
        effect = preference_difference(own, others, prompts=prompts, level=0.95)
        assert effect.low is not None
        assert effect.high is not None
        hits += effect.low <= 0.1 <= effect.high
    # Two binomial standard errors of 95% in 300 are 2.5 points; three, to be safe, 3.8.
    assert abs(hits / runs - 0.95) < 3 * math.sqrt(0.95 * 0.05 / runs)


def test_the_adjusted_difference_covers_a_known_effect() -> None:
    """Three other matchups of 80, 70 and 75%, own pairs of 80%, and others who make no error; the
    judge errs on 30% and takes its own family in a fifth of what it would have lost: it would have
    won 0.8 x 0.7 + 0.2 x 0.3 = 62%, and so gains 0.2 x 0.38."""
    rng = np.random.default_rng(7)
    prompts, matchups = np.tile(np.arange(80), 4), np.repeat([-1, 0, 1, 2], 80)
    strong = np.array([0.8, 0.8, 0.7, 0.75])[matchups + 1]
    hits, values, runs = 0, [], 300
    for _ in range(runs):
        others = (rng.random(320) < strong).astype(float)
        own = np.where(rng.random(320) < 0.3, 1 - others, others)
        own = np.where((matchups < 0) & (rng.random(320) < 0.2), 1.0, own)
        found = adjusted_difference(own, others, matchups=matchups, prompts=prompts, level=0.95)
        assert found is not None
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        values.append(found.value)
        hits += found.low <= 0.076 <= found.high
    assert float(np.mean(values)) == pytest.approx(0.076, abs=0.02)
    assert abs(hits / runs - 0.95) < 3 * math.sqrt(0.95 * 0.05 / runs)


def test_the_quantile_of_the_first_test_is_the_tables() -> None:
    assert student.ppf(0.975, 7) == pytest.approx(2.364624, abs=1e-6)
