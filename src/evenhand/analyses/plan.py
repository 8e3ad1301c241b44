"""How many pairs to judge, which win rates they detect, and what they cost by a stored run, a price
or the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from evenhand.analyses.registry import AnalysisSubject
from evenhand.analysis_options import PlanOptions
from evenhand.blocks import Block, Facts, Grid, NoteLines, Title
from evenhand.blocks import Sentence as Line
from evenhand.contract import Pair, Usage
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE
from evenhand.contract.model import Model
from evenhand.data.orders import BOTH_ORDERS_SHARE
from evenhand.data.records import BadRow
from evenhand.errors import DataError, InputError
from evenhand.judges.prices import Price, cost_usd, read_price
from evenhand.judges.protocol import Traits
from evenhand.messages import Message, Sentence
from evenhand.messages.numbers import number
from evenhand.quantities import counted, dollars, listed
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

    source: Sentence
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
        source=Message("plan.source_price"),
        input_tokens=_known(input_tokens),
        output_tokens=_known(output_tokens),
        usd=_known(cost_usd(usage, model=None, traits=Traits(), price=price)),
    )


def like_run(store: Store, run: RunRecord, *, price: Price | None = None) -> LikeRun:
    """With a price its tokens are priced anew."""
    judges = store.runs.judges(run.id)
    tally = store.verdicts.tally(run.id)
    valid = tally.judged - tally.invalid
    if not valid:
        raise InputError(Message("report.no_verdicts_to_plan", name=run.name))
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
    return CallCost(
        source=Message("plan.source_data", pairs=counted(len(sample), "pair"), title=sources.title),
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
        source = Message("plan.source_run", run=run.name)
        return CallCost(source=source, input_tokens=None, output_tokens=None, usd=None)
    used = RunUsage.of(tally.used, prepared)
    cost = used.cost_usd
    if price is not None:
        usage = Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens)
        cost = cost_usd(usage, model=None, traits=Traits(), price=price)
    return CallCost(
        source=Message("plan.source_passes", n=used.passes, run=run.name),
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


# How many pairs, at which win rates, and what they cost.

# So far above the lowest win rate that can be detected, where no win rate is given.
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


Result = PairPlans
T = TypeVar("T")


def check(options: PlanOptions) -> None:
    """Refuse what does not go together."""
    if options.win_rate and options.pairs is not None:
        raise InputError(Message("command.win_rate_or_pairs"))
    _check_ways(_ways(options))
    if options.tokens is not None and options.price is None:
        raise InputError(Message("command.tokens_need_price"))


def _ways(options: PlanOptions) -> list[str]:
    """By what the cost is known, apart from data."""
    return [_flag(name) for name in ("like", "tokens") if getattr(options, name) is not None]


def _flag(name: str) -> str:
    return PlanOptions.row(name).flag


def _check_ways(ways: list[str]) -> None:
    if len(ways) > 1:
        raise InputError(Message("command.cost_known_twice", ways=ways))


def _check_data(subject: AnalysisSubject, options: PlanOptions) -> None:
    ways = [*(["PAIRS"] if subject.data is not None else []), *_ways(options)]
    _check_ways(ways)
    if options.price is not None and not ways:
        raise InputError(Message("command.price_needs_tokens"))
    named = len(subject.judges)
    if named and options.judges is not None and options.judges != named:
        raise InputError(Message("command.judges_differ", judges=options.judges, named=named))


def compute(subject: AnalysisSubject, options: PlanOptions) -> PairPlans:
    _check_data(subject, options)
    price = None if options.price is None else read_price(options.price, where=_flag("price"))
    known = None if options.like is None else like_run(subject.store, subject.run, price=price)
    cost = _call_cost(subject, options, known, price)
    shape = _design(subject, options, known)
    certainty = Certainty(alpha=options.alpha, power=options.power)
    reason = None
    if options.pairs is None:
        plans = _for_win_rates(options, certainty, shape)
    else:
        plan = _for_pairs(options.pairs, options, certainty, shape)
        plans = () if plan is None else (plan,)
        if plan is None:
            reason = Message(
                f"plan.shows_no_{'difference' if options.min_win_rate == 0.5 else 'win_rate'}",
                n=options.pairs,
                min_win_rate=options.min_win_rate,
                power=100 * certainty.power,
                alpha=certainty.alpha,
            )
    if cost is not None and cost.usd is not None:
        per_call = cost.usd.high
        plans = tuple(plan.priced(per_call) for plan in plans)
    notes: tuple[Message, ...] = ()
    if known is not None and known.missing_share:
        notes = (Message("plan.like_missing", run=known.run, share=known.missing_share),)
    return PairPlans(
        pairs=options.pairs,
        min_win_rate=options.min_win_rate,
        certainty=certainty,
        shape=shape,
        early_stopping=options.until_decided,
        plans=plans,
        call_cost=cost,
        reason=reason,
        notes=notes,
    )


def _call_cost(
    subject: AnalysisSubject, options: PlanOptions, known: LikeRun | None, price: Price | None
) -> CallCost | None:
    if subject.data is not None:
        return cost_by_data(subject.data, subject.judges, price=price)
    if options.tokens is None or price is None:
        return known.call_cost if known else None
    first, _, second = options.tokens.partition("/")
    if not (first.strip().isdecimal() and second.strip().isdecimal()):
        raise InputError(Message("command.tokens_malformed", tokens=options.tokens))
    return cost_by_price(price, input_tokens=int(first), output_tokens=int(second))


def _design(subject: AnalysisSubject, options: PlanOptions, known: LikeRun | None) -> StudyDesign:
    """As the options say it, else as in the run that it is like."""
    if known is not None and (known.inconsistent_share, options.inconsistent_share) == (None, None):
        raise InputError(Message("plan.like_without_both_orders", run=known.run))
    both_orders = _both_orders(options, known)
    orders = 2 if known is None or options.orders == "both" else known.orders
    samples = options.samples or subject.settings.samples
    shape = StudyDesign(
        tie_share=_first(options.tie_share, known and known.tie_share, 0.0),
        inconsistent_share=_first(
            options.inconsistent_share, known and known.inconsistent_share, 0.0
        ),
        rows_per_prompt=options.rows_per_prompt,
        correlation=options.correlation,
        orders=1 if both_orders is not None or options.no_swap else orders,
        both_orders=both_orders,
        samples=_first(samples, known and known.samples, 1),
        judges=_first(options.judges or len(subject.judges) or None, known and known.judges, 1),
    )
    if known is not None and None in (options.tie_share, options.inconsistent_share):
        _check_winners(known, shape)
    return shape


def _first(given: T | None, known: T | None, default: T) -> T:
    if given is not None:
        return given
    return default if known is None else known


def _both_orders(options: PlanOptions, known: LikeRun | None) -> float | None:
    """The share of pairs in both orders; None where the others are not in one at random."""
    in_known = None
    if known is not None and options.orders is None and not options.no_swap:
        in_known = known.both_orders
    if options.orders != "random" and in_known is None:
        if options.both_orders is not None:
            needed = {"option": _flag("both_orders"), "other": f"{_flag('orders')} random"}
            raise InputError(Message("command.belongs_to", **needed))
        return None
    if options.no_swap:
        raise InputError(Message("command.random_or_fixed_order"))
    return _first(options.both_orders, in_known, BOTH_ORDERS_SHARE)


def _check_winners(known: LikeRun, shape: StudyDesign) -> None:
    """Names the run, and not an option that was not given, where its shares leave no winner."""
    ties, inconsistent = known.tie_share, known.inconsistent_share or 0.0
    least = 1 - 1e-9  # shares are rounded
    if min(ties + inconsistent, shape.tie_share + shape.inconsistent_share) >= least:
        shares = {"ties": ties, "inconsistent": inconsistent}
        raise InputError(Message("plan.like_without_winners", run=known.run, **shares))


def _for_win_rates(
    options: PlanOptions, certainty: Certainty, shape: StudyDesign
) -> tuple[PairPlan, ...]:
    least, early_stopping = options.min_win_rate, options.until_decided
    check_plan(certainty, shape, least, early_stopping=early_stopping)
    # One order at random, and in both the share that takes the fewest calls.
    choose = shape.both_orders is not None and options.both_orders is None and least < 0.5

    def planned(rate: float) -> PairPlan:
        if choose:
            return plan_both_orders(rate, min_win_rate=least, certainty=certainty, shape=shape)
        return plan_pairs(
            rate,
            min_win_rate=least,
            certainty=certainty,
            shape=shape,
            early_stopping=early_stopping,
        )

    return tuple(map(planned, options.win_rate or _usual_win_rates(least, shape)))


def _usual_win_rates(min_win_rate: float, shape: StudyDesign) -> list[float]:
    """From the first whole percent that can be found; with many ties the highest cannot be."""
    lowest, highest = shape.lowest_win_rate(min_win_rate), shape.highest_win_rate
    start = math.ceil(round(100 * lowest, 6)) / 100
    rates = {round(start + difference, 6) for difference in USUAL_DIFFERENCES}
    if min_win_rate < 0.5:
        rates.add(0.5)  # as good as the other side
    possible = sorted(rate for rate in rates if lowest < rate <= highest)
    return possible or [highest]


def _for_pairs(
    pairs: int, options: PlanOptions, certainty: Certainty, shape: StudyDesign
) -> PairPlan | None:
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
    return detectable_difference(
        prompts,
        min_win_rate=options.min_win_rate,
        certainty=certainty,
        shape=shape,
        early_stopping=options.until_decided,
    )


# A plan as a person reads it: a few lines for one win rate, a table for several.


def blocks(result: PairPlans) -> Iterator[Block]:
    if result.reason is not None:
        yield Line(result.reason)
    else:
        yield Title(_title(result))
        one = len(result.plans) == 1
        yield Facts((*(_one(result.plans[0], result) if one else ()), *_settings(result)))
        if not one:
            yield _table(result)
    if result.notes:
        yield NoteLines(result.notes)


def _title(result: PairPlans) -> Message:
    values: dict[str, Any] = result.certainty.model_dump()
    gate = result.min_win_rate != 0.5
    if gate:
        values["gate"] = result.min_win_rate
    if len(result.plans) != 1:
        return Message("plan.rates_to_pass" if gate else "plan.rates_to_detect", **values)
    rate = result.plans[0].win_rate
    if result.pairs is None:
        return Message("plan.to_pass" if gate else "plan.to_detect", rate=rate, **values)
    pairs = counted(result.pairs, "pair")
    if gate:
        return Message("plan.pairs_pass", pairs=pairs, rate=rate, **values)
    return Message("plan.pairs_show", pairs=pairs, high=rate, low=1 - rate, **values)


def _one(plan: PairPlan, result: PairPlans) -> Iterator[tuple[str, str]]:
    def most(amount: str) -> str:
        return Message("plan.at_most", amount=amount) if plan.early_stopping else amount

    pairs = number(plan.pairs)
    if plan.shape.rows_per_prompt > 1:
        prompts, rows = counted(plan.prompts, "prompt"), plan.shape.rows_per_prompt
        pairs = Message("plan.in_prompts", pairs=pairs, prompts=prompts, rows=rows)
    yield Message("plan.pairs"), most(pairs)
    if (twice := plan.pairs_in_both_orders) is not None:
        drawn = Message("plan.in_both", n=twice, share=plan.shape.both_orders or 0.0)
        yield Message("plan.orders"), most(drawn)
    yield Message("plan.calls"), most(_calls(plan.calls, result.call_cost))
    cost = result.call_cost.of(plan.calls) if result.call_cost else None
    yield Message("plan.cost"), _unknown(result.call_cost) if cost is None else most(_amount(cost))
    if plan.early_stopping:
        expected: list[str] = [
            counted(round(plan.expected_pairs), "pair"),
            counted(round(plan.expected_calls), "call"),
        ]
        if result.call_cost and (usd := result.call_cost.of(plan.expected_calls)):
            expected.append(_amount(usd))
        yield Message("plan.expected"), Message("plan.on_average", amounts=listed(expected))
    if plan.shape.inconsistent_share:
        yield Message("plan.shown"), Message("plan.shown_rate", rate=plan.shown_rate)


def _calls(calls: int, cost: CallCost | None) -> str:
    """Where a pass is about one request, these are not counted too."""
    requests = calls * cost.requests if cost is not None else calls
    few = requests < 0.5 or round(requests) == calls
    if cost is None or few or abs(cost.requests - 1) < 0.05:
        return number(calls)
    return Message("plan.in_requests", n=calls, requests=counted(round(requests), "request"))


def _settings(result: PairPlans) -> Iterator[tuple[str, str]]:
    shape = result.shape
    orders = counted(shape.orders, "order")
    if shape.both_orders is not None:
        orders = Message("plan.at_random", orders=orders)
    yield (
        Message("plan.pair"),
        Message(
            "plan.each_pair",
            orders=orders,
            samples=counted(shape.samples, "sample"),
            judges=counted(shape.judges, "judge"),
            ties=shape.tie_share,
            inconsistent=shape.inconsistent_share,
        ),
    )
    if (rows := shape.rows_per_prompt) > 1:
        values = {"correlation": shape.correlation, "effect": shape.design_effect}
        yield Message("plan.prompts"), Message("plan.each_prompt", n=rows, **values)
    several = len(result.plans) > 1
    if result.early_stopping and several:
        yield Message("plan.average"), Message("plan.if_exact")
    cost = result.call_cost
    if cost is not None:
        yield (
            Message("plan.call"),
            Message("plan.each_call", known=_known_of(cost), source=cost.source),
        )
    if several and (cost is None or cost.usd is None):
        yield Message("plan.cost"), _unknown(cost)


def _known_of(cost: CallCost) -> str:
    parts: list[str] = []
    if cost.input_tokens is not None and cost.output_tokens is not None:
        tokens = {"input": _range(cost.input_tokens), "output": _range(cost.output_tokens)}
        parts.append(Message("plan.tokens", **tokens))
    if cost.usd is not None:
        parts.append(_amount(cost.usd))
    return listed(parts) if parts else Message("plan.nothing_known")


def _range(amount: Amount) -> str:
    low, high = number(amount.low), number(amount.high)
    return low if low == high else Message("plan.range", low=low, high=high)


def _amount(amount: Amount) -> str:
    low, high = dollars(amount.low), dollars(amount.high)
    if amount.high == 0:
        return Message("plan.free")
    return low if low == high else Message("plan.range", low=low, high=high)


def _unknown(cost: CallCost | None) -> Message:
    if cost is None:
        return Message("plan.cost_unknown")
    return Message("plan.cost_unknown_from", source=cost.source)


def _table(result: PairPlans) -> Grid:
    cost = result.call_cost if result.call_cost and result.call_cost.usd else None
    shape, early = result.shape, result.early_stopping

    def cells(plan: PairPlan) -> Iterator[tuple[str, str]]:
        yield "rate", f"{plan.win_rate:.4g}"
        if shape.inconsistent_share:
            yield "shown", f"{plan.shown_rate:.4g}"
        yield "most" if early else "pairs", number(plan.pairs)
        if (twice := plan.pairs_in_both_orders) is not None:
            yield "twice", number(twice)
        yield "calls", number(plan.calls)
        if cost and (usd := cost.of(plan.calls)):
            yield "cost", _amount(usd)
        if early:
            yield "mean", number(plan.expected_pairs)
            yield "calls", number(plan.expected_calls)
            if cost and (usd := cost.of(plan.expected_calls)):
                yield "cost", _amount(usd)

    rows = [tuple(cells(plan)) for plan in result.plans]
    return Grid(
        tuple(Message(f"plan.column_{name}") for name, _ in rows[0]),
        tuple(tuple(text for _, text in row) for row in rows),
        left=frozenset(),
    )
