"""Plans: the size that a difference needs, the difference that a size shows, the calls."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.stats.planning import Certainty, PairPlan, Shape, detectable_difference, plan_pairs
from evenhand.stats.power import fixed_chances
from evenhand.stats.sequential import SequentialPlan, follow


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
        better = Shape().pair(max(rate, 1 - rate))
        assert fixed_chances(plan.prompts - 1, better, alpha=0.05).power < 0.8


def test_either_side_takes_the_same_number() -> None:
    assert plan_pairs(0.58).prompts == plan_pairs(0.42).prompts


def test_ties_leave_less_noise_for_the_same_win_rate() -> None:
    sizes = [plan_pairs(0.55, shape=Shape(tie_share=ties)).prompts for ties in (0.0, 0.3, 0.6)]
    assert sizes == sorted(sizes, reverse=True)


def test_rows_of_one_prompt_are_worth_less_than_prompts_of_their_own() -> None:
    alone = plan_pairs(0.55)
    alike = plan_pairs(0.55, shape=Shape(rows_per_prompt=4, correlation=0.5))
    # The design effect is 1 + 3·0.5 = 2.5, so about 2.5 times the pairs.
    assert alike.design_effect == 2.5
    assert alike.pairs == 4 * alike.prompts
    assert alike.pairs / alone.pairs == pytest.approx(2.5, rel=0.05)
    # Rows that say all the same are worth one.
    same = plan_pairs(0.55, shape=Shape(rows_per_prompt=4, correlation=1.0))
    assert same.prompts == alone.prompts


def test_calls_and_costs_are_counted() -> None:
    plan = plan_pairs(0.6, shape=Shape(rows_per_prompt=2, samples=3, judges=2))
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
    assert shown.difference == shown.win_rate - 0.5
    needed = plan_pairs(shown.win_rate, early_stopping=early_stopping)
    assert needed.prompts == pytest.approx(400, abs=45)  # a saw-tooth is 2·2·√400/1.96 wide


def test_too_few_prompts_show_nothing() -> None:
    # Five coins that all agree have p = 2/32 > 0.05.
    assert detectable_difference(5) is None
    assert detectable_difference(6) is not None


def test_a_plan_with_rows_keeps_its_power_in_simulated_runs() -> None:
    shape = Shape(rows_per_prompt=4, correlation=0.25, tie_share=0.0)
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
        (lambda: plan_pairs(0.9, shape=Shape(tie_share=0.4)), "from 0.2 to 0.8"),
        (lambda: plan_pairs(float("nan")), "win rate of nan"),
        (lambda: plan_pairs(0.6, certainty=Certainty(alpha=0)), "alpha is 0"),
        (lambda: plan_pairs(0.6, certainty=Certainty(power=1)), "power is 1"),
        (lambda: plan_pairs(0.6, shape=Shape(tie_share=1)), "tie share is 1"),
        (lambda: plan_pairs(0.6, shape=Shape(correlation=-0.1)), "correlation is -0.1"),
        (lambda: plan_pairs(0.6, shape=Shape(judges=0)), "judges is 0"),
        (lambda: plan_pairs(0.50001), "larger difference"),
        (lambda: detectable_difference(0), "0 prompts"),
    ],
)
def test_a_mistake_is_named(call: object, fact: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=fact):
        call()
