"""What `evenhand plan` answers: how many pairs to judge, which win rates they detect, and what they
cost by a stored run, a price or the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

from evenhand.contract import Pair, Usage
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE
from evenhand.contract.model import Model
from evenhand.data.records import BadRow
from evenhand.errors import DataError, InputError
from evenhand.judges.prices import Price, cost_usd
from evenhand.judges.protocol import Traits
from evenhand.messages import Message, Sentence
from evenhand.report.lookup import find_run
from evenhand.report.run import RunUsage
from evenhand.runs.estimate import NOTHING, ArtefactCounter, Range, estimate
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan, apply_price
from evenhand.runs.sources import Sources
from evenhand.stats.rates.position_bias import UNREAD
from evenhand.stats.stopping.planning import (
    Certainty,
    PairPlan,
    StudyDesign,
    check_plan,
    detectable_difference,
    plan_both_orders,
    plan_pairs,
)
from evenhand.store import RunRecord, Store, Tally
from evenhand.store.answers import AnswerSpending

_ESTIMATED_FROM = 50


class Amount(Model):
    """The same twice where it is known."""

    low: float
    high: float


class CallCost(Model):
    """Of one pass, on average; None where it is not known. `source` says how it is known."""

    source: str
    requests: float = 1.0  # in letter mode a pass is several
    input_tokens: Amount | None
    output_tokens: Amount | None
    usd: Amount | None

    def of(self, calls: float) -> Amount | None:
        if self.usd is None:
            return None
        return Amount(low=self.usd.low * calls, high=self.usd.high * calls)


class LikeRun(Model):
    """What a stored run tells about one that will be like it."""

    run: str
    call_cost: CallCost
    verdicts: int
    tie_share: float
    inconsistent_share: float | None  # None where no pair was judged in both orders
    missing_share: float = 0.0  # invalid or skipped
    orders: int
    both_orders: float | None = None  # the share, where the others had one order at random
    samples: int
    judges: int


def cost_by_price(price: Price, *, input_tokens: int, output_tokens: int) -> CallCost:
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    return CallCost(
        source="the given price and tokens",
        input_tokens=_known(input_tokens),
        output_tokens=_known(output_tokens),
        usd=_known(cost_usd(usage, model=None, traits=Traits(), price=price)),
    )


def like_run(store: Store, name: str, *, price: Price | None = None) -> LikeRun:
    """With a price its tokens are priced anew."""
    run = find_run(store, name)
    judges = store.runs.judges(run.id)
    tally = store.verdicts.tally(run.id)
    valid = tally.judged - tally.invalid
    if not valid:
        raise InputError(Message("report.no_verdicts_to_plan", name=name))
    skipped = len(judges) * tally.skipped_rows
    ties = inconsistent = ties_in_one = 0
    twice = 0  # valid, and in both orders where these are not the same in all pairs
    drawn = run.drawn_orders
    for judge in judges:
        columns = store.columns.outcomes(run.id, judge.id)
        rows = zip(
            *(columns.outcome, columns.first_winner, columns.second_winner, columns.drawn_order),
            strict=True,
        )
        for outcome, first, second, in_one in rows:
            if in_one:
                ties_in_one += outcome == TIE
                continue
            twice += outcome != INVALID
            # Averaged probabilities decide pairs whose orders differ; those are inconsistent too.
            differ = first != second and UNREAD not in (first, second)
            if outcome == INCONSISTENT or (differ and outcome != INVALID):
                inconsistent += 1
            elif outcome == TIE:
                ties += 1
    samples = [run.planned_for(judge, "deciding").get("samples") for judge in judges]
    return LikeRun(
        run=run.name,
        call_cost=_of_tally(run, tally, store.answers.spent(run.id, artefacts=True), price),
        verdicts=tally.judged,
        tie_share=ties / twice if twice else ties_in_one / valid,
        inconsistent_share=inconsistent / twice if twice else None,
        missing_share=(tally.invalid + skipped) / (tally.judged + skipped),
        orders=1 if drawn or _data(run).get("swap_positions") is False else 2,
        both_orders=drawn["both_orders"] if drawn else None,
        samples=max((each for each in samples if isinstance(each, int)), default=1),
        judges=len(judges),
    )


def cost_by_data(sources: Sources, plans: Sequence[JudgePlan], *, price: Price | None) -> CallCost:
    """From the first pairs of the data; how much a judge says is a range."""
    sample = _sample(sources)
    counter = ArtefactCounter()
    for pair in sample:
        counter.add(pair)
    whole = NOTHING
    passes = 0
    for plan in plans:
        whole += estimate(
            len(sample),
            sample,
            plan.judge,
            plan.config,
            prices=apply_price(plan, RunOptions(price=price)),
            artefacts=counter.counts,
        )
        passes += sum(len(pair.orders) for pair in sample) * plan.config.samples_per_order
    pairs = "1 pair" if len(sample) == 1 else f"{len(sample)} pairs"
    return CallCost(
        source=f"an estimate from {pairs} of {sources.title}",
        requests=whole.calls / passes,
        input_tokens=_each(whole.input_tokens, passes),
        output_tokens=_each(whole.output_tokens, passes),
        usd=None if whole.cost_usd is None else _each(whole.cost_usd, passes),
    )


def _sample(sources: Sources) -> list[Pair]:
    bad: list[BadRow] = []
    pairs: list[Pair] = []
    for record in islice(sources.records(), 2 * _ESTIMATED_FROM):
        if isinstance(record, BadRow):
            bad.append(record)
        elif len(pairs) < _ESTIMATED_FROM:
            pairs.append(record.pair)
    if not pairs:
        why = f": {bad[0].message}" if bad else ""
        raise DataError(Message("report.no_pairs_to_estimate", title=sources.title, why=why))
    return pairs


def _of_tally(
    run: RunRecord, tally: Tally, prepared: AnswerSpending, price: Price | None
) -> CallCost:
    """By the pass, with its part of what was prepared."""
    if not tally.used.passes:
        return CallCost(source=f"run {run.name}", input_tokens=None, output_tokens=None, usd=None)
    used = RunUsage.of(tally.used, prepared)
    cost = used.cost_usd
    if price is not None:
        usage = Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens)
        cost = cost_usd(usage, model=None, traits=Traits(), price=price)
    return CallCost(
        source=f"the {used.passes:,} passes of run {run.name}",
        requests=used.requests / used.passes,
        input_tokens=_mean(used.input_tokens, used.passes),
        output_tokens=_mean(used.output_tokens, used.passes),
        usd=_mean(cost, used.passes),
    )


def _data(run: RunRecord) -> dict[str, Any]:
    data = run.plan.get("data")
    return data if isinstance(data, dict) else {}


def _known(amount: float | None) -> Amount | None:
    return None if amount is None else Amount(low=amount, high=amount)


def _mean(amount: float | None, passes: int) -> Amount | None:
    return None if amount is None else _known(amount / passes)


def _each(amount: Range, passes: int) -> Amount:
    return Amount(low=amount.low / passes, high=amount.high / passes)


# How many pairs, at which win rates, and what they cost: what `evenhand plan` answers.

# What is told where nobody asks for one: so far above the lowest win rate that can be found.
USUAL_DIFFERENCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)


class PairPlans(Model):
    """`plans` has one for each win rate, or for a number of pairs the least that they show.

    It is empty where they show none. The cost of a plan is at the upper end of a call's.
    """

    pairs: int | None
    min_win_rate: float
    certainty: Certainty
    shape: StudyDesign
    early_stopping: bool
    plans: tuple[PairPlan, ...]
    call_cost: CallCost | None
    reason: Sentence | None = None
    notes: tuple[Sentence, ...] = ()


def plan_for_win_rates(
    win_rates: Sequence[float] | None,
    *,
    min_win_rate: float = 0.5,
    certainty: Certainty,
    shape: StudyDesign,
    early_stopping: bool,
    call_cost: CallCost | None = None,
    choose_both_orders: bool = False,
) -> PairPlans:
    """`choose_both_orders`: one order at random, and in both the share that takes fewest calls."""
    check_plan(certainty, shape, min_win_rate, early_stopping=early_stopping)

    def planned(rate: float) -> PairPlan:
        if choose_both_orders:
            return plan_both_orders(
                rate, min_win_rate=min_win_rate, certainty=certainty, shape=shape
            )
        return plan_pairs(
            rate,
            min_win_rate=min_win_rate,
            certainty=certainty,
            shape=shape,
            early_stopping=early_stopping,
        )

    plans = [planned(rate) for rate in win_rates or _usual_win_rates(min_win_rate, shape)]
    return PairPlans(
        pairs=None,
        min_win_rate=min_win_rate,
        certainty=certainty,
        shape=shape,
        early_stopping=early_stopping,
        plans=tuple(_priced(plan, call_cost) for plan in plans),
        call_cost=call_cost,
    )


def _usual_win_rates(min_win_rate: float, shape: StudyDesign) -> list[float]:
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
    shape: StudyDesign,
    early_stopping: bool,
    call_cost: CallCost | None = None,
) -> PairPlans:
    prompts, left = divmod(pairs, shape.rows_per_prompt)
    if left or not prompts:
        raise InputError(
            Message(
                "report.pairs_not_divisible",
                pairs=pairs,
                rows_per_prompt=shape.rows_per_prompt,
                rows_per_prompt2=max(1, prompts) * shape.rows_per_prompt,
            )
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
        reason = Message(
            "plan.shows_no_difference" if min_win_rate == 0.5 else "plan.shows_no_win_rate",
            n=pairs,
            min_win_rate=min_win_rate,
            power=100 * certainty.power,
            alpha=certainty.alpha,
        )
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
