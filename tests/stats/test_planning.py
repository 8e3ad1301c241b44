"""Plans: the size that a difference needs, the difference that a size shows, the calls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scripts.verify_planning import clustered_power, noisy_power, score_correlation, simulated_power

from evenhand.errors import InputError
from evenhand.stats.stopping.planning import (
    Certainty,
    PairPlan,
    StudyDesign,
    detectable_difference,
    fixed_chances,
    plan_pairs,
)
from evenhand.stats.stopping.sequential import SequentialPlan, follow
from parts import examples


def test_a_textbook_size_is_found() -> None:
    # (1.960·0.5 + 0.842·√(0.55·0.45))² / 0.05² = 783; whole counts cost a little more.
    assert 783 <= plan_pairs(0.55).prompts <= 815
    # (1.960·0.5 + 1.282·√(0.6·0.4))² / 0.1² = 259.
    assert 259 <= plan_pairs(0.6, certainty=Certainty(power=0.9)).prompts <= 275


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("rate", [0.55, 0.62, 0.9, 0.3])
def test_the_power_is_met_and_one_prompt_less_would_miss_it(
    rate: float, early_stopping: bool
) -> None:
    plan = plan_pairs(rate, early_stopping=early_stopping)
    assert plan.power >= 0.8
    assert plan.expected_prompts <= plan.prompts
    if not early_stopping:
        better = StudyDesign().pair(max(rate, 1 - rate))
        assert fixed_chances(plan.prompts - 1, better, alpha=0.05).power < 0.8


def test_either_side_takes_the_same_number() -> None:
    assert plan_pairs(0.58).prompts == plan_pairs(0.42).prompts


def test_ties_leave_less_noise_for_the_same_win_rate() -> None:
    sizes = [
        plan_pairs(0.55, shape=StudyDesign(tie_share=ties)).prompts for ties in (0.0, 0.3, 0.6)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_inconsistent_pairs_make_a_plan_larger() -> None:
    plan = plan_pairs(0.6, shape=StudyDesign(inconsistent_share=0.3))
    # 0.5 + 0.7·0.1 is shown, from 0.7 decided pairs for each: 0.6 of those, which takes 194 by
    # (1.960·0.5 + 0.842·√(0.6·0.4))² / 0.1², so 277, and whole counts cost a little more.
    assert plan.shown_rate == pytest.approx(0.57)
    assert 277 <= plan.prompts <= 300
    early = plan_pairs(0.6, shape=StudyDesign(inconsistent_share=0.3), early_stopping=True)
    assert plan.prompts <= early.prompts <= 310
    # Without half of the pairs, every difference that 800 show is twice as far out.
    whole, half = (
        detectable_difference(800, shape=StudyDesign(inconsistent_share=share, tie_share=ties))
        for share, ties in ((0.0, 0.5), (0.5, 0.0))
    )
    assert whole is not None
    assert half is not None
    assert half.win_rate - 0.5 == pytest.approx(2 * (whole.win_rate - 0.5), rel=0.01)


def test_gate_at_another_threshold_takes_a_textbook_size() -> None:
    # Truth 0.5 at 0.45: (1.960·√(0.45·0.55) + 0.842·0.5)² / 0.05² = 780.
    assert plan_pairs(0.5, min_win_rate=0.45).prompts == pytest.approx(780, abs=3)
    # With a fifth of the pairs as ties the score's variance is 4/5, and 0.8 is left of both terms.
    tied = plan_pairs(0.5, min_win_rate=0.45, shape=StudyDesign(tie_share=0.2)).prompts
    assert tied == pytest.approx(0.8 * 780, rel=0.01)
    # Flips of a share I raise what the half count must exceed to 0.5 - 0.05·(1 - 2I) and leave
    # 1 - I of the variance. The rule takes I at the upper end of its 75% interval, which at 3,600
    # pairs is 0.3 + 0.674·√(0.3·0.7/3600) = 0.3051: 780·0.7/(1 - 0.6103)² = 3,595.
    flipped = plan_pairs(0.5, min_win_rate=0.45, shape=StudyDesign(inconsistent_share=0.3)).prompts
    assert flipped == pytest.approx(3595, rel=0.01)


def test_the_whole_rule_passes_as_often_as_planned() -> None:
    # The gate's rule in full, by a second implementation; 20,000 runs err by 0.3 points.
    for threshold, rate, inconsistent, ties in (
        (0.5, 0.6, 0.3, 0.0),
        (0.5, 0.55, 0.15, 0.2),
        (0.45, 0.5, 0.0, 0.0),
        (0.45, 0.5, 0.15, 0.2),
        (0.45, 0.55, 0.4, 0.1),
        (0.3, 0.5, 0.3, 0.3),  # flips near one half of the pairs that are no ties
        (0.45, 0.47, 0.0, 0.3),
        (0.6, 0.7, 0.3, 0.0),
    ):
        shape = StudyDesign(tie_share=ties, inconsistent_share=inconsistent)
        plan = plan_pairs(rate, min_win_rate=threshold, shape=shape)
        assert simulated_power(plan, runs=20_000, seed=1) == pytest.approx(0.8, abs=0.03)
    # What ties alone would have led to, with 30% of the pairs inconsistent, had half a chance.
    shape = StudyDesign(inconsistent_share=0.3)
    once = plan_pairs(0.6, shape=shape).model_copy(update={"prompts": 144})
    assert simulated_power(once, runs=20_000, seed=1) == pytest.approx(0.5, abs=0.05)


def test_noisy_judge_is_planned_for_by_what_its_orders_agree_on() -> None:
    # Errors of single passes leave (1 - 2e) = √(1 - 2I) of a preference in the half count, where
    # position leaves 1 - I of it.
    agreed = 0.5 + 0.1 * math.sqrt(1 - 2 * 0.3) / (1 - 0.3)
    plan = plan_pairs(agreed, shape=StudyDesign(inconsistent_share=0.3))
    assert noisy_power(0.6, plan, runs=20_000, seed=1) == pytest.approx(0.8, abs=0.03)


@pytest.mark.slow
def test_rows_of_a_prompt_keep_the_power_of_a_gate() -> None:
    rows = StudyDesign(
        inconsistent_share=0.2, rows_per_prompt=4, correlation=score_correlation(0.6, 0.2, 0.3)
    )
    plan = plan_pairs(0.6, min_win_rate=0.45, shape=rows)
    real = clustered_power(plan, correlation=0.3, runs=600, seed=1)
    # Three standard errors are 3·√(0.8·0.2/600) = 0.05.
    assert real == pytest.approx(0.8, abs=0.05)


SHARES = st.floats(0, 0.6)


@settings(max_examples=examples(60))
@given(
    threshold=st.floats(0.2, 0.65).filter(lambda each: each != 0.5),
    place=st.floats(0, 1),
    flips=st.tuples(st.floats(0, 0.48), st.floats(0, 0.48)),
    ties=st.floats(0, 0.4),
    power=st.tuples(st.floats(0.55, 0.99), st.floats(0.55, 0.99)),
)
def test_what_makes_a_gate_harder_never_makes_a_plan_smaller(
    threshold: float,
    place: float,
    flips: tuple[float, float],
    ties: float,
    power: tuple[float, float],
) -> None:
    # More pairs that follow the position leave as many ties among those that do not. `flips` is
    # the inconsistent share I of what is no tie: I / (1 - ties·(1 - I)).
    shares = [each * (1 - ties) / (1 - each * ties) for each in sorted(flips)]
    low, high = (
        StudyDesign(tie_share=ties * (1 - share), inconsistent_share=share) for share in shares
    )
    less, more = (Certainty(power=each) for each in sorted(power))
    least = high.lowest_win_rate(threshold) + 0.01
    rate = least + place * (high.highest_win_rate - 1e-9 - least)

    def prompts(shape: StudyDesign, certainty: Certainty, at: float = threshold) -> int:
        return plan_pairs(rate, min_win_rate=at, certainty=certainty, shape=shape).prompts

    asked = prompts(low, less)
    assert asked <= prompts(high, less)
    assert asked <= prompts(low, more)
    assert asked <= prompts(low, less.model_copy(update={"alpha": 0.01}))
    if threshold < 0.5:
        assert prompts(low, less, at=threshold - 0.1) <= asked


@settings(max_examples=examples(30))
@given(
    rate=st.floats(0.57, 0.95),
    shares=st.tuples(SHARES, SHARES),
    ties=SHARES,
    power=st.tuples(st.floats(0.3, 0.99), st.floats(0.3, 0.99)),
)
def test_at_one_half_more_noise_and_more_power_need_more_pairs_on_either_side(
    rate: float, shares: tuple[float, float], ties: float, power: tuple[float, float]
) -> None:
    low, high = (
        StudyDesign(tie_share=ties * (1 - share), inconsistent_share=share)
        for share in sorted(shares)
    )
    assume(rate <= low.highest_win_rate - 1e-9)
    less, more = (Certainty(power=each) for each in sorted(power))
    asked = plan_pairs(rate, certainty=less, shape=low)
    assert asked.prompts <= plan_pairs(rate, certainty=more, shape=low).prompts
    assert asked.prompts == plan_pairs(1 - rate, certainty=less, shape=low).prompts
    # The exact test moves in saw-teeth of whole counts, each 2·2·√n/1.96 wide.
    tooth = 4 * math.sqrt(asked.prompts) / 1.96
    assert asked.prompts - tooth <= plan_pairs(rate, certainty=less, shape=high).prompts


def test_rows_of_one_prompt_are_worth_less_than_prompts_of_their_own() -> None:
    alone = plan_pairs(0.55)
    alike = plan_pairs(0.55, shape=StudyDesign(rows_per_prompt=4, correlation=0.5))
    # The design effect is 1 + 3·0.5 = 2.5, so about 2.5 times the pairs.
    assert alike.design_effect == 2.5
    assert alike.pairs == 4 * alike.prompts
    assert alike.pairs / alone.pairs == pytest.approx(2.5, rel=0.05)
    # Rows that say all the same are worth one.
    same = plan_pairs(0.55, shape=StudyDesign(rows_per_prompt=4, correlation=1.0))
    assert same.prompts == alone.prompts


def test_calls_and_costs_are_counted() -> None:
    plan = plan_pairs(0.6, shape=StudyDesign(rows_per_prompt=2, samples=3, judges=2))
    assert plan.calls == plan.prompts * 2 * 2 * 3 * 2  # rows, orders, samples, judges
    assert plan.cost is None
    priced = plan.priced(0.001)
    assert priced.cost == pytest.approx(plan.calls / 1000)
    assert priced.expected_cost == pytest.approx(plan.expected_calls / 1000)
    assert PairPlan.model_validate_json(priced.model_dump_json()) == priced


@pytest.mark.parametrize("early_stopping", [False, True])
def test_the_difference_of_a_size_needs_about_that_size(early_stopping: bool) -> None:
    shown = detectable_difference(400, early_stopping=early_stopping)
    assert shown is not None
    assert shown.power == pytest.approx(0.8, abs=0.001)
    assert shown.win_rate > 0.5
    needed = plan_pairs(shown.win_rate, early_stopping=early_stopping)
    assert needed.prompts == pytest.approx(400, abs=45)  # a saw-tooth is 2·2·√400/1.96 wide


def test_the_least_win_rate_that_passes_a_gate_needs_that_size() -> None:
    for threshold, share in ((0.45, 0.0), (0.45, 0.2), (0.3, 0.1), (0.6, 0.2)):
        shape = StudyDesign(inconsistent_share=share, tie_share=0.1)
        shown = detectable_difference(400, min_win_rate=threshold, shape=shape)
        assert shown is not None
        assert shown.win_rate > threshold
        needed = plan_pairs(shown.win_rate, min_win_rate=threshold, shape=shape)
        assert needed.prompts == pytest.approx(400, abs=1)


def test_too_few_prompts_show_nothing() -> None:
    # Wilson's lower bound of 3 wins of 3 is 3/(3 + 1.96²) = 0.44, and of 4 it is 0.51.
    assert detectable_difference(3, min_win_rate=0.45) is None
    assert detectable_difference(4, min_win_rate=0.45) is not None
    # Five coins that all agree have p = 2/32 > 0.05.
    assert detectable_difference(5) is None
    assert detectable_difference(6) is not None


def test_a_plan_with_rows_keeps_its_power_in_simulated_runs() -> None:
    shape = StudyDesign(rows_per_prompt=4, correlation=0.25, tie_share=0.0)
    plan = plan_pairs(0.62, shape=shape, early_stopping=True)
    rng = np.random.default_rng(1)
    runs, named, prompts = 500, 0, 0
    size = 1 / 0.25 - 1  # a beta of this size has an intra-prompt correlation of 0.25
    for _ in range(runs):
        own = rng.beta(0.62 * size, 0.38 * size, plan.prompts)
        scores = rng.binomial(4, own) / 4
        said = follow(SequentialPlan(planned=plan.prompts), scores.tolist()).final()
        named += said.decided == "A"
        prompts += said.prompts
    # Four standard errors are 4·√(0.8·0.2/500) = 0.07.
    assert named / runs == pytest.approx(plan.power, abs=0.07)
    assert prompts / runs == pytest.approx(plan.expected_prompts, rel=0.1)


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        (lambda: plan_pairs(0.5), "win rate of 0.5"),
        (lambda: plan_pairs(0.9, shape=StudyDesign(tie_share=0.4)), "from 0.2 to 0.8"),
        (lambda: plan_pairs(float("nan")), "win rate of nan"),
        (lambda: plan_pairs(0.6, certainty=Certainty(alpha=0)), "alpha is 0"),
        (lambda: plan_pairs(0.6, certainty=Certainty(power=1)), "power is 1"),
        (lambda: plan_pairs(0.6, shape=StudyDesign(tie_share=1)), "tie_share is 1"),
        (lambda: plan_pairs(0.6, shape=StudyDesign(correlation=-0.1)), "correlation is -0.1"),
        (lambda: plan_pairs(0.6, shape=StudyDesign(judges=0)), "judges is 0"),
        (lambda: plan_pairs(0.50001), "larger difference"),
        (
            lambda: plan_pairs(0.6, shape=StudyDesign(inconsistent_share=1)),
            "inconsistent_share is 1",
        ),
        (
            lambda: plan_pairs(0.6, shape=StudyDesign(inconsistent_share=0.5, tie_share=0.5)),
            "leave no pair with a winner",
        ),
        # Of the agreeing 0.5, 0.4 are ties and 0.1 are won: (0.1 + 0.2)/0.5 = 0.6 at most.
        (
            lambda: plan_pairs(0.61, shape=StudyDesign(inconsistent_share=0.5, tie_share=0.4)),
            "40% ties and 50% inconsistent; .* from 0.4 to 0.6",
        ),
        (lambda: plan_pairs(0.6, min_win_rate=1), "min_win_rate is 1; give a share between"),
        (lambda: plan_pairs(0.45, min_win_rate=0.45), "never passes a gate at 0.45; .* above 0.45"),
        # 0.5 + 0.7·(0.63 - 0.5) = 0.591 is shown; 0.1/0.7 above 0.5 would do.
        (
            lambda: plan_pairs(0.63, min_win_rate=0.6, shape=StudyDesign(inconsistent_share=0.3)),
            r"30% inconsistent never passes a gate at 0.6; give one above 0.6429, up to 1",
        ),
        (
            lambda: plan_pairs(0.9, min_win_rate=0.45, shape=StudyDesign(inconsistent_share=0.5)),
            "a gate at 0.45 is always undecided; plan for 0.5",
        ),
        # 0.4 of the 0.8 that are no ties.
        (
            lambda: detectable_difference(
                500, min_win_rate=0.45, shape=StudyDesign(inconsistent_share=0.4, tie_share=0.2)
            ),
            "a gate at 0.45 is always undecided",
        ),
        (
            lambda: plan_pairs(0.95, min_win_rate=0.9, shape=StudyDesign(inconsistent_share=0.2)),
            "no win rate passes a gate at 0.9",
        ),
        (
            lambda: plan_pairs(0.5, min_win_rate=0.45, early_stopping=True),
            "tests against 0.5",
        ),
        (
            lambda: plan_pairs(0.6, shape=StudyDesign(inconsistent_share=0.2, orders=1)),
            "one order cannot be inconsistent",
        ),
        (lambda: detectable_difference(0), "prompts is 0"),
    ],
)
def test_a_mistake_is_named(call: object, fact: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=fact):
        call()
