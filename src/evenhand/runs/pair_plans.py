"""How many pairs, at which win rates, and what they cost: what `evenhand plan` answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.runs.call_cost import CallCost
from evenhand.stats.planning import (
    Certainty,
    PairPlan,
    Shape,
    check_plan,
    detectable_difference,
    plan_pairs,
)

# What is told where nobody asks for one: so far above the lowest win rate that can be found.
USUAL_DIFFERENCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)


class PairPlans(Model):
    """`plans` has one for each win rate, or for a number of pairs the least that they show.

    It is empty where they show none. The cost of a plan is at the upper end of a call's.
    """

    pairs: int | None
    min_win_rate: float
    certainty: Certainty
    shape: Shape
    early_stopping: bool
    plans: tuple[PairPlan, ...]
    call_cost: CallCost | None
    reason: str | None = None


def plan_for_win_rates(
    win_rates: Sequence[float] | None,
    *,
    min_win_rate: float = 0.5,
    certainty: Certainty,
    shape: Shape,
    early_stopping: bool,
    call_cost: CallCost | None = None,
) -> PairPlans:
    check_plan(certainty, shape, min_win_rate, early_stopping=early_stopping)
    plans = [
        plan_pairs(
            rate,
            min_win_rate=min_win_rate,
            certainty=certainty,
            shape=shape,
            early_stopping=early_stopping,
        )
        for rate in win_rates or _usual_win_rates(min_win_rate, shape)
    ]
    return PairPlans(
        pairs=None,
        min_win_rate=min_win_rate,
        certainty=certainty,
        shape=shape,
        early_stopping=early_stopping,
        plans=tuple(_priced(plan, call_cost) for plan in plans),
        call_cost=call_cost,
    )


def _usual_win_rates(min_win_rate: float, shape: Shape) -> list[float]:
    """From the first whole percent that can be found; with many ties the highest cannot be."""
    lowest, highest = shape.lowest_win_rate(min_win_rate), shape.highest_win_rate
    start = math.ceil(round(100 * lowest, 6)) / 100
    rates = {round(start + difference, 6) for difference in USUAL_DIFFERENCES}
    if min_win_rate < 0.5:
        rates.add(0.5)  # as good as the other side
    possible = sorted(rate for rate in rates if lowest < rate <= highest)
    return possible or [highest]


def plan_for_pairs(
    pairs: int,
    *,
    min_win_rate: float = 0.5,
    certainty: Certainty,
    shape: Shape,
    early_stopping: bool,
    call_cost: CallCost | None = None,
) -> PairPlans:
    prompts, left = divmod(pairs, shape.rows_per_prompt)
    if left or not prompts:
        raise InputError(
            f"{pairs} pairs are no whole number of prompts with {shape.rows_per_prompt} each; "
            f"give {max(1, prompts) * shape.rows_per_prompt}"
        )
    plan = detectable_difference(
        prompts,
        min_win_rate=min_win_rate,
        certainty=certainty,
        shape=shape,
        early_stopping=early_stopping,
    )
    reason = None
    if plan is None:
        few = "1 pair shows" if pairs == 1 else f"{pairs:,} pairs show"
        what = "difference" if min_win_rate == 0.5 else f"win rate above {min_win_rate:g}"
        sure = f"a power of {100 * certainty.power:g} % at alpha {certainty.alpha:g}"
        reason = f"not enough data: {few} no {what} with {sure}, however large"
    return PairPlans(
        pairs=pairs,
        min_win_rate=min_win_rate,
        certainty=certainty,
        shape=shape,
        early_stopping=early_stopping,
        plans=() if plan is None else (_priced(plan, call_cost),),
        call_cost=call_cost,
        reason=reason,
    )


def _priced(plan: PairPlan, call_cost: CallCost | None) -> PairPlan:
    if call_cost is None or call_cost.usd is None:
        return plan
    return plan.priced(call_cost.usd.high)
