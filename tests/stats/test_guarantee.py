"""The promise of agreement above a threshold, and how often it is broken."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.verify_calibration import CURVES, simulated_guarantee

from evenhand.errors import InputError
from evenhand.stats.calibration.guarantee import (
    check_promise,
    fewest_labels,
    guarantee_agreement,
    one_row_each,
)
from parts import examples


def test_fewer_labels_than_the_level_needs_guarantee_nothing() -> None:
    # 0.9^28 = 0.0523 and 0.9^29 = 0.0471
    assert fewest_labels(0.9) == 29
    assert guarantee_agreement([0.9] * 29, [1] * 29).threshold == 0.9
    found = guarantee_agreement([0.9] * 28, [1] * 28)
    assert found.threshold is None
    assert found.reason == (
        "no threshold can be guaranteed: 28 labelled prompts have a confidence; at least 29 "
        "are needed for 0.9 at an error level of 0.05, even if all agree"
    )


def test_labels_contradict_a_promise_by_the_exact_binomial_test() -> None:
    # Tables of the binomial distribution, n = 20, p = 0.1: 5 or more failures 0.0432, 4 or more
    # 0.1330.
    for agreeing, p_value, contradicted in ((15, 0.0432, True), (16, 0.1330, False)):
        found = check_promise([1] * agreeing + [0] * (20 - agreeing), target=0.9)
        assert found is not None
        assert (found.n, found.agreeing) == (20, agreeing)
        assert found.p_value == pytest.approx(p_value, abs=5e-5)
        assert found.contradicted is contradicted
    assert check_promise([], target=0.9) is None


def test_rows_of_one_prompt_contradict_a_promise_once() -> None:
    # 20 prompts of three rows each: four wrong prompts are 4 of 20, and not 12 of 60 (p = 0.01).
    right = np.repeat([0] * 4 + [1] * 16, 3)
    found = check_promise(right, target=0.9, prompts=np.repeat(np.arange(20), 3))
    assert found is not None
    assert (found.n, found.agreeing, found.contradicted) == (20, 16, False)


@given(st.integers(1, 60), st.floats(0.5, 0.99), st.integers(0, 60))
@settings(max_examples=examples(50))
def test_a_promise_is_contradicted_in_at_most_the_error_level_of_draws(
    n: int, target: float, seed: int
) -> None:
    """The chance of every count that contradicts it, where the promise is just kept."""
    chance = 0.0
    for agreeing in range(n + 1):
        found = check_promise([1] * agreeing + [0] * (n - agreeing), target=target, seed=seed)
        assert found is not None
        if found.contradicted:
            ways = math.comb(n, agreeing)
            chance += ways * target**agreeing * (1 - target) ** (n - agreeing)
    assert chance < 0.05


def test_a_single_disagreement_needs_more_labels() -> None:
    # 45 of 46: 0.9^46 + 46 * 0.1 * 0.9^45 = 0.0480; 44 of 45: 0.0524
    assert guarantee_agreement([0.9] * 46, [1] * 45 + [0]).threshold == 0.9
    found = guarantee_agreement([0.9] * 45, [1] * 44 + [0])
    assert found.reason == (
        "no threshold can be guaranteed: 44 of the 45 most confident verdicts agree; at "
        "least 45 must, for 0.9 at an error level of 0.05"
    )


def test_the_sequence_ends_at_the_first_failure() -> None:
    stated = np.repeat([0.99, 0.8, 0.6, 0.4], 50)
    right = np.repeat([1, 1, 0, 1], 50)
    found = guarantee_agreement(stated, right)
    assert found.threshold == 0.8
    assert [(test.n, test.passed) for test in found.tested] == [(100, True), (150, False)]
    assert found.coverage is not None
    assert (found.coverage.part, found.coverage.of) == (100, 200)
    assert found.agreement is not None
    assert (found.agreement.part, found.agreement.of, found.agreement.value) == (100, 100, 1)
    # The two surest groups, three, or all four: one in three of the 5%, and half of it below.
    # All 100 agree: the share at which that happens so rarely.
    assert found.thresholds == 3
    assert found.agreement.low == pytest.approx((0.05 / 3 / 2) ** (1 / 100))
    assert found.agreement.high == 1


def test_verdicts_at_or_above_the_threshold_are_kept() -> None:
    found = guarantee_agreement([0.9] * 40, [1] * 40)
    assert found.keeps([0.9, 0.89, None, 1.0]).tolist() == [True, False, False, True]
    refused = guarantee_agreement([0.9] * 40, [0] * 40)
    assert refused.threshold is None
    assert not refused.keeps([0.9, 1.0]).any()


def test_a_verdict_without_confidence_is_never_kept_but_counts_for_coverage() -> None:
    found = guarantee_agreement([0.9] * 40 + [None] * 10, [1] * 50)
    assert found.without_confidence == 10
    assert found.coverage is not None
    assert (found.coverage.part, found.coverage.of) == (40, 50)


def test_one_row_of_each_prompt_is_tested() -> None:
    found = guarantee_agreement([0.9] * 100, [1] * 100, prompts=[1, 2, 3, 4] * 25)
    assert found.prompts == 4
    assert found.threshold is None
    chosen = one_row_each(np.repeat(np.arange(3), 4), 3, seed=0)
    assert (chosen // 4).tolist() == [0, 1, 2]
    drawn = {int(one_row_each(np.zeros(4, dtype=np.intp), 1, seed=seed)[0]) for seed in range(50)}
    assert drawn == {0, 1, 2, 3}


@pytest.mark.parametrize("curve", ["line from 0.7 to 0.99", "0.89 everywhere", "not monotone"])
def test_of_all_draws_at_most_the_error_level_grant_falsely(curve: str) -> None:
    found = simulated_guarantee(CURVES[curve], prompts=200, draws=300, seed=1)
    # 5% and three standard errors of 300 draws
    assert found.false / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_for_a_judge_that_reaches_the_target_nowhere_every_grant_is_false_and_rare() -> None:
    found = simulated_guarantee(CURVES["0.89 everywhere"], prompts=200, draws=300, seed=1)
    assert 0 < found.granted == found.false
    assert found.granted / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def test_the_interval_of_the_agreement_covers_whichever_threshold_was_chosen() -> None:
    found = simulated_guarantee(CURVES["line from 0.7 to 0.99"], prompts=400, draws=300, seed=1)
    assert found.granted > 60
    # 95% and three standard errors
    assert found.covered / found.granted >= 0.95 - 3 * (0.05 * 0.95 / found.granted) ** 0.5


def test_a_good_judge_is_trusted_with_most_verdicts() -> None:
    found = simulated_guarantee(
        lambda stated: np.where(stated > 0.2, 0.98, 0.5), prompts=400, draws=50, seed=1
    )
    assert found.granted > 0.95 * 50
    assert found.coverage > 0.7 * 50


def test_a_target_beyond_1_is_an_error() -> None:
    with pytest.raises(InputError, match="min_agreement is 90"):
        guarantee_agreement([0.5], [1], target=90)
    with pytest.raises(InputError, match="error_level is 0"):
        guarantee_agreement([0.5], [1], error_level=0)
    with pytest.raises(InputError, match=r"confidences has 85\.0 in row 0"):
        guarantee_agreement([85], [1])


@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.floats(0, 1)), st.booleans(), st.integers(0, 90)),
        max_size=120,
    ),
    st.sampled_from([0.5, 0.7]),
)
@settings(max_examples=examples(60))
def test_there_is_a_threshold_or_a_reason(
    rows: list[tuple[float | None, bool, int]], target: float
) -> None:
    stated, right, prompts = ([row[place] for row in rows] for place in range(3))
    found = guarantee_agreement(stated, right, prompts=prompts, target=target)
    assert (found.threshold is None) == (found.reason is not None)
    if found.threshold is not None:
        share = found.agreement
        assert share is not None
        assert share.value is not None
        assert share.low is not None
        assert share.high is not None
        assert share.low <= share.value <= share.high
        assert share.value > target
    assert type(found).model_validate_json(found.model_dump_json()) == found
