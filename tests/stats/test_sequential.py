"""The test that may stop at any look: what it decides, and that a resumed run decides the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evenhand.errors import InputError
from evenhand.stats.stopping.sequential import (
    SequentialDecision,
    SequentialPlan,
    SequentialTest,
    follow,
)

SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=30, max_size=60)
MEANS = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=30, max_size=60)


def end(scores: Sequence[float | None], **settings: Any) -> SequentialDecision:
    return follow(SequentialPlan(planned=len(scores), **settings), scores).final()


def naive_stop(plan: SequentialPlan, scores: list[float]) -> int | None:
    for length in range(1, len(scores) + 1):
        total = 0.0
        for stake in plan.bets.stakes:
            for side in (1, -1):
                total += math.prod(1 + side * stake * (2 * x - 1) for x in scores[:length])
        if total / (2 * len(plan.bets.stakes)) >= 1 / plan.betting_alpha:
            return length
    return None


def test_thirty_wins_stop_early_for_a_and_thirty_losses_for_b() -> None:
    plan = SequentialPlan(planned=805)
    won, lost = follow(plan, [1.0] * 30).decision, follow(plan, [0.0] * 30).decision
    assert won is not None
    assert lost is not None
    assert (won.decided, lost.decided) == ("A", "B")
    assert won.prompts == lost.prompts == naive_stop(plan, [1.0] * 30)
    assert won.stopped_early
    assert not won.final
    assert won.low is not None
    assert won.low > 0.5
    assert won.high is not None
    assert (lost.low, lost.high) == (1 - won.high, 1 - won.low)
    assert won.p_value is not None
    assert won.p_value <= plan.betting_alpha == 0.0125
    assert won.log10_e_value >= math.log10(80)


def test_alternating_scores_never_decide_and_the_end_says_so() -> None:
    said = end([1.0, 0.0] * 100)
    assert said.decided is None
    assert said.final
    assert said.method == "score"
    assert said.p_value == pytest.approx(1.0)
    assert said.low is not None
    assert said.high is not None
    assert said.low < 0.5 < said.high
    assert "no significant difference" in said.account()


def test_a_lead_too_small_for_the_looks_is_decided_at_the_end() -> None:
    # 64 wins and 36 losses: 28/√100 = 2.8 deviations, where p = 0.005; no capital of 80.
    said = end([1.0, 0.0] * 36 + [1.0] * 28)
    assert (said.decided, said.final, said.method) == ("A", True, "score")
    assert not said.stopped_early
    assert said.low is not None
    assert said.low > 0.5
    assert "All 100 planned prompts were needed: A is better." in said.account()


def test_means_of_prompts_end_with_students_t() -> None:
    said = end([0.75, 0.25, 0.6, 0.55, 0.5] * 20)
    assert said.method == "t"
    assert said.mean is not None
    assert said.mean == pytest.approx((0.75 + 0.25 + 0.6 + 0.55 + 0.5) / 5)
    assert said.low is not None
    assert said.high is not None
    assert said.low < said.mean < said.high


def test_one_score_everywhere_is_not_certainty() -> None:
    said = end([0.55] * 20)
    assert said.decided is None
    assert said.method == "betting"
    assert said.low is not None
    assert said.low < 0.5


@given(scores=SCORES)
def test_a_resumed_run_says_what_an_unbroken_one_says(scores: list[float | None]) -> None:
    plan = SequentialPlan(planned=len(scores))
    unbroken = SequentialTest(plan)
    for place, score in enumerate(scores):
        unbroken.add(score)
        if place % 7 == 0:
            assert follow(plan, scores[: place + 1]).look() == unbroken.look()
    assert follow(plan, scores).final() == unbroken.final()


@given(scores=SCORES | MEANS)
def test_swapping_the_sides_swaps_the_decision(scores: list[float | None]) -> None:
    said = end(scores)
    swapped = end([None if score is None else 1 - score for score in scores])
    names = {"A": "B", "B": "A", None: None}
    assert swapped.decided == names[said.decided]
    assert swapped.prompts == said.prompts
    if said.low is not None and said.high is not None:
        assert (swapped.low, swapped.high) == pytest.approx((1 - said.high, 1 - said.low))
        assert swapped.p_value == pytest.approx(said.p_value)


@given(scores=SCORES | MEANS)
def test_the_interval_excludes_one_half_exactly_where_a_side_is_named(
    scores: list[float | None],
) -> None:
    said = end(scores)
    if said.low is None or said.high is None:
        return
    outside = said.low > 0.5 or said.high < 0.5
    assert outside == (said.decided is not None)
    if said.decided is not None:
        assert said.decided == ("A" if said.low > 0.5 else "B")


@given(rate=st.floats(0.6, 1.0), seed=st.integers(0, 1000))
@settings(max_examples=25)
def test_it_stops_where_the_naive_product_does(rate: float, seed: int) -> None:
    draws = np.random.default_rng(seed).random((120, 2)) < rate
    scores = draws.mean(axis=1).tolist()
    plan = SequentialPlan(planned=120)
    decision = follow(plan, scores).decision
    assert (decision.prompts if decision else None) == naive_stop(plan, scores)


def test_a_prompt_without_a_verdict_keeps_its_place_and_moves_nothing() -> None:
    plan = SequentialPlan(planned=805)
    plain = follow(plan, [1.0] * 30).decision
    gaps = follow(plan, [None, 1.0] * 30).decision
    assert plain is not None
    assert gaps is not None
    assert gaps.prompts == 2 * plain.prompts
    assert gaps.scored == plain.scored
    assert gaps.low == plain.low


def test_too_little_data_is_said() -> None:
    nothing = end([None, None, None])
    assert (nothing.decided, nothing.low, nothing.p_value) == (None, None, None)
    assert nothing.reason == "not enough data: 0 prompts with a score; at least 2 are needed"
    assert follow(SequentialPlan(planned=9), []).look().reason is not None


def test_the_end_may_not_come_early_nor_late() -> None:
    test = follow(SequentialPlan(planned=4), [1.0, 0.0])
    with pytest.raises(InputError, match="after 2 of 4 planned"):
        test.final()
    test.extend([1.0, 0.0])
    with pytest.raises(InputError, match="got more scores than the 4"):
        test.add(1.0)
    with pytest.raises(InputError, match=r"score 1\.2 is outside"):
        follow(SequentialPlan(planned=4), [1.2])


def test_a_plan_that_makes_no_sense_is_refused() -> None:
    for wrong in ({"planned": 0}, {"alpha": 0}, {"betting_share": 1}):
        with pytest.raises(ValidationError):
            SequentialPlan.model_validate({"planned": 10} | wrong)


def test_it_says_before_and_after_what_it_does() -> None:
    plan = SequentialPlan(planned=1000, seed=5)
    said = plan.announcement()
    for fact in ("1,000 prompts", "seed 5", "after every prompt", "below 5%"):
        assert fact in said
    decision = follow(plan, [1.0] * 40).decision
    assert decision is not None
    at = decision.prompts
    assert decision.account() == (
        f"Stopped after {at} of 1,000 prompts: A is better. "
        f"That saved {1000 - at} prompts, {(1000 - at) / 10:.3g}%."
    )
    assert "(100 more were in progress)" in decision.account(asked=at + 100)
    assert f"saved {900 - at} prompts" in decision.account(asked=at + 100)
    assert follow(plan, [1.0]).look().account() == "Undecided after 1 of 1,000 prompts."


def test_a_decision_survives_json() -> None:
    said = end([1.0, 0.0] * 20)
    assert SequentialDecision.model_validate_json(said.model_dump_json()) == said
    assert '"log10EValue"' in said.model_dump_json()
