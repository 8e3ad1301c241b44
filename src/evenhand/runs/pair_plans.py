"""How many pairs, at which win rates, and what they cost: what `evenhand plan` answers."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.runs.call_cost import CallCost
from evenhand.stats.planning import (
    Certainty,
    PairPlan,
    Shape,
    detectable_difference,
    plan_pairs,
)

# What is told where nobody asks for one.
USUAL_WIN_RATES = (0.51, 0.52, 0.55, 0.6, 0.7, 0.8)


class PairPlans(Model):
    """`plans` has one for each win rate, or for a number of pairs the least that they show.

    It is empty where they show none. The cost of a plan is at the upper end of a call's.
    """

    pairs: int | None
    certainty: Certainty
    shape: Shape
    early_stopping: bool
    plans: tuple[PairPlan, ...]
    call_cost: CallCost | None
    reason: str | None = None


def plan_for_win_rates(
    win_rates: Sequence[float] | None,
    *,
    certainty: Certainty,
    shape: Shape,
    early_stopping: bool,
    call_cost: CallCost | None = None,
) -> PairPlans:
    rates = win_rates
    if not rates:  # with many ties the highest of the usual ones cannot be
        most = 1 - shape.tie_share / 2
        rates = [rate for rate in USUAL_WIN_RATES if rate <= most] or USUAL_WIN_RATES[:1]
    plans = [
        plan_pairs(rate, certainty=certainty, shape=shape, early_stopping=early_stopping)
        for rate in rates
    ]
    return PairPlans(
        pairs=None,
        certainty=certainty,
        shape=shape,
        early_stopping=early_stopping,
        plans=tuple(_priced(plan, call_cost) for plan in plans),
        call_cost=call_cost,
    )


def plan_for_pairs(
    pairs: int,
    *,
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
        prompts, certainty=certainty, shape=shape, early_stopping=early_stopping
    )
    reason = None
    if plan is None:
        few = "1 pair shows" if pairs == 1 else f"{pairs:,} pairs show"
        sure = f"a power of {100 * certainty.power:g} % at alpha {certainty.alpha:g}"
        reason = f"not enough data: {few} no difference with {sure}, however large"
    return PairPlans(
        pairs=pairs,
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
