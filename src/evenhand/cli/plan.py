"""`evenhand plan`: how many pairs a difference needs, and what they will cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted, dollars, number
from evenhand.cli.options import (
    EstimateChoices,
    OrderChoices,
    PairRules,
    first_given,
    grouped,
    open_judge,
)
from evenhand.cli.run import DataFiles, FileA, FileB
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.present.terminal import (
    one_line,
    show_facts,
    show_notes,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evenhand.data.options import ReadOptions
    from evenhand.data.orders import OrderDraw
    from evenhand.judges.prices import Price
    from evenhand.report.planning import Amount, CallCost, LikeRun, PairPlans
    from evenhand.runs import JudgePlan
    from evenhand.stats.stopping.planning import PairPlan, StudyDesign


PlannedFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAIRS]...",
        help="Files of pairs to estimate the cost from, with --judge and -c as in evenhand run.",
        show_default=False,
    ),
]
WinRates = Annotated[
    list[float] | None,
    typer.Option(
        "--win-rate",
        help="The true win rate to detect, where the judge's two orders agree, e.g. 0.55. "
        "Repeatable. Default: a table of several.",
    ),
]
MinWinRate = Annotated[
    float,
    typer.Option(
        "--min-win-rate",
        help=("Plan for a gate at this win rate, e.g. 0.45 to show that a side is not much worse."),
    ),
]
PairCount = Annotated[
    int | None,
    typer.Option("--pairs", min=1, help="The reverse: what difference this many pairs can show."),
]
Power = Annotated[
    float,
    typer.Option("--power", help="The chance of detecting a real difference."),
]
Alpha = Annotated[
    float, typer.Option("--alpha", help="The chance of naming a winner when there is none.")
]
TieShare = Annotated[
    float | None,
    typer.Option(
        "--tie-share",
        help="The share of pairs that are ties. Default: 0, or as in --like.",
    ),
]
InconsistentShare = Annotated[
    float | None,
    typer.Option(
        "--inconsistent-share",
        help="The share of pairs that flip. Default: 0, or as in --like.",
    ),
]
RowsPerPrompt = Annotated[int, typer.Option("--rows-per-prompt", min=1, help="Pairs per prompt.")]
Correlation = Annotated[
    float,
    typer.Option(
        "--correlation",
        help=("The correlation between two pairs of a prompt: 0 for none, 1 for identical."),
    ),
]
Judges = Annotated[
    int | None,
    typer.Option("--judges", min=1, help="Judges per pair. Default: those named, or 1."),
]
Orders = Annotated[
    Literal["both", "random"] | None,
    typer.Option(
        "--orders",
        help="random: pairs in one random order, as in evenhand run. Default: both, or as in "
        "--like.",
    ),
]
BothOrders = Annotated[
    float | None,
    typer.Option(
        "--both-orders",
        min=0,
        max=1,
        metavar="SHARE",
        help="With --orders random: the share of pairs judged in both orders. Default: 0.1, "
        "or for a gate below 0.5 the share that needs the fewest calls.",
    ),
]
UntilDecided = Annotated[
    bool, typer.Option("--until-decided", help="Plan for a run that stops once it is decided.")
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="RUN",
        help="Take cost, tokens, tie and flip rates, orders, samples and judges from a stored run.",
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        metavar="INPUT/OUTPUT",
        help="Tokens per call in/out, for --price: e.g. 900/400.",
    ),
]


@grouped
def plan(
    *,
    data: PlannedFiles = None,
    a: FileA = None,
    b: FileB = None,
    win_rate: WinRates = None,
    min_win_rate: MinWinRate = 0.5,
    pairs: PairCount = None,
    power: Power = 0.8,
    alpha: Alpha = 0.05,
    tie_share: TieShare = None,
    inconsistent_share: InconsistentShare = None,
    rows_per_prompt: RowsPerPrompt = 1,
    correlation: Correlation = 0.0,
    judges: Judges = None,
    no_swap: opt.NoSwap = False,
    orders: Orders = None,
    both_orders: BothOrders = None,
    until_decided: UntilDecided = False,
    like: Like = None,
    store: opt.StoreAddress = None,
    price: opt.PriceOption = None,
    tokens: Tokens = None,
    judge: opt.JudgeNames = None,
    criteria: opt.Criteria = None,
    columns: opt.ColumnMap = None,
    judging: EstimateChoices,
    as_json: opt.AsJson = False,
) -> None:
    """Work out how many pairs you need and what they cost.

    The cost comes from a similar run (--like), from --price with --tokens, or from the data
    itself (PAIRS with --judge and -c). No judge is asked.
    """
    from evenhand.cli.inputs import read_options, read_price
    from evenhand.cli.session import named_store
    from evenhand.settings import load_settings
    from evenhand.stats.stopping.planning import Certainty, StudyDesign

    files = DataFiles(pairs=data, a=a, b=b)
    named_data = data or a or b
    _check(named_data, win_rate, pairs, like=like, store=store, tokens=tokens, price=price)
    _check_estimated(
        named_data,
        judge=judge,
        criteria=criteria,
        columns=columns,
        **{name: value for name, value in judging.values.items() if name != "samples"},
    )
    samples = judging.values.get("samples") or load_settings().samples
    priced = read_price(price)
    known = _like(like, named_store(store), priced) if like else None
    cost = known.call_cost if known else None
    named = len(judge or ()) or (1 if named_data else None)
    if judges is not None and named is not None and judges != named:
        raise InputError(Message("command.judges_differ", judges=judges, named=named))
    if tokens is not None and priced is not None:
        cost = _by_price(tokens, priced)
    if named_data:
        rules = PairRules(criteria=criteria, no_swap=no_swap)
        reading = read_options(columns, rules, criteria_needed=True)
        plans = _judge_plans(judging, judge)
        cost = _by_data(files, reading, plans, priced)
    if known is not None and known.inconsistent_share is None and inconsistent_share is None:
        raise InputError(Message("plan.like_without_both_orders", run=known.run))
    like_random = known is not None and known.both_orders is not None and orders is None
    if known is not None and like_random and not no_swap:
        drawn = OrderChoices("random", first_given(both_orders, known.both_orders, None)).draw()
    else:
        drawn = OrderChoices(orders or "both", both_orders).draw(no_swap=no_swap)
    choose = drawn is not None and both_orders is None and min_win_rate < 0.5 and pairs is None
    shape = StudyDesign(
        tie_share=first_given(tie_share, known and known.tie_share, 0.0),
        inconsistent_share=first_given(inconsistent_share, known and known.inconsistent_share, 0.0),
        rows_per_prompt=rows_per_prompt,
        correlation=correlation,
        orders=_orders(known, drawn, no_swap=no_swap, chosen=orders),
        both_orders=None if drawn is None else drawn.both_orders,
        samples=first_given(samples, known and known.samples, 1),
        judges=first_given(judges or named, known and known.judges, 1),
    )
    if known is not None and None in (tie_share, inconsistent_share):
        _check_winners(known, shape)
    certainty = Certainty(alpha=alpha, power=power)
    from evenhand.report.planning import plan_for_pairs, plan_for_win_rates

    if pairs is not None:
        planned = plan_for_pairs(
            pairs,
            min_win_rate=min_win_rate,
            certainty=certainty,
            shape=shape,
            early_stopping=until_decided,
            call_cost=cost,
        )
    else:
        planned = plan_for_win_rates(
            win_rate,
            min_win_rate=min_win_rate,
            certainty=certainty,
            shape=shape,
            early_stopping=until_decided,
            call_cost=cost,
            choose_both_orders=choose,
        )
    if known is not None and known.missing_share:
        note = Message("plan.like_missing", run=known.run, share=known.missing_share)
        planned = planned.model_copy(update={"notes": (note,)})
    session.present(planned, show_plans, as_json=as_json)


def _check(
    data: list[str] | str | None,
    win_rates: list[float] | None,
    pairs: int | None,
    *,
    like: str | None,
    store: str | None,
    tokens: str | None,
    price: str | None,
) -> None:
    if win_rates and pairs is not None:
        raise InputError(Message("command.win_rate_or_pairs"))
    ways = [
        name for name, given in (("PAIRS", data), ("--like", like), ("--tokens", tokens)) if given
    ]
    if len(ways) > 1:
        raise InputError(Message("command.cost_known_twice", ways=ways))
    if store is not None and like is None:
        raise InputError(Message("command.belongs_to", option="--store", other="--like"))
    if tokens is not None and price is None:
        raise InputError(Message("command.tokens_need_price"))
    if price is not None and not ways:
        raise InputError(Message("command.price_needs_tokens"))


def _check_estimated(data: list[str] | str | None, **given: object) -> None:
    for name, value in given.items():
        if value and not data:
            option = {"columns": "map", "criteria": "criterion"}.get(name, name.replace("_", "-"))
            raise InputError(Message("command.belongs_to_pairs", option=option))


def _orders(
    known: LikeRun | None, drawn: OrderDraw | None, *, no_swap: bool, chosen: str | None
) -> int:
    if drawn is not None or no_swap:
        return 1
    return 2 if known is None or chosen == "both" else known.orders


def _check_winners(known: LikeRun, shape: StudyDesign) -> None:
    """Names the run, and not an option that was not given, where its shares leave no winner."""
    ties, inconsistent = known.tie_share, known.inconsistent_share or 0.0
    least = 1 - 1e-9  # shares are rounded
    if min(ties + inconsistent, shape.tie_share + shape.inconsistent_share) >= least:
        raise InputError(
            Message(
                "plan.like_without_winners", run=known.run, ties=ties, inconsistent=inconsistent
            )
        )


def _like(name: str, address: str | None, price: Price | None) -> LikeRun:
    from evenhand.cli.session import opened_store
    from evenhand.report.planning import like_run

    with opened_store(address) as store:
        return like_run(store, name, price=price)


def _by_price(tokens: str, price: Price) -> CallCost:
    from evenhand.report.planning import cost_by_price

    first, _, second = tokens.partition("/")
    if not (first.strip().isdecimal() and second.strip().isdecimal()):
        raise InputError(Message("command.tokens_malformed", tokens=tokens))
    return cost_by_price(price, input_tokens=int(first), output_tokens=int(second))


def _judge_plans(judging: EstimateChoices, named: list[str] | None) -> list[JudgePlan]:
    from evenhand.runs import JudgePlan

    specs: list[str | None] = [*named] if named else [None]
    configs = [judging.config(each) for each in specs]
    return [JudgePlan(open_judge(config), config) for config in configs]


def _by_data(
    files: DataFiles, reading: ReadOptions, plans: list[JudgePlan], price: Price | None
) -> CallCost:
    from evenhand.cli.inputs import read_sources
    from evenhand.report.planning import cost_by_data

    sources = read_sources(files, reading)

    async def estimated() -> CallCost:
        try:
            return cost_by_data(sources, plans, price=price)
        finally:
            sources.close()
            for each in plans:
                await each.judge.close()

    return session.run_async(estimated())


# A plan as a person reads it: a few lines for one win rate, a table for several.

_NOT_KNOWN = "unknown; give --like RUN, --price with --tokens, or a file of pairs with --judge"

_JUST_THAT = "exactly that; fewer if it is further from 0.5"


def show_plans(console: Console, planned: PairPlans) -> None:
    from rich.text import Text

    if planned.reason is not None:
        console.print(Text(planned.reason))
        return
    console.print(Text(_title(planned), "bold"))
    if len(planned.plans) == 1:
        lines = [*_one(planned.plans[0], planned), *_settings(planned)]
    else:
        lines = list(_settings(planned))
        if planned.call_cost is None or planned.call_cost.usd is None:
            lines.append(("cost", _unknown(planned.call_cost)))
    show_facts(console, lines)
    if len(planned.plans) > 1:
        console.print()
        console.print(_table(planned))
    show_notes(console, planned.notes)


def _title(planned: PairPlans) -> str:
    sure = f"power {_percent(planned.certainty.power)}, alpha {planned.certainty.alpha:g}"
    gate = None
    if planned.min_win_rate != 0.5:
        gate = f"pass a gate at {planned.min_win_rate:g} with a true win rate"
    if planned.pairs is not None:
        (plan,) = planned.plans
        least = plan.win_rate
        if gate:
            return f"{counted(planned.pairs, 'pair')} {gate} of {least:.4f} or more ({sure})"
        return (
            f"{counted(planned.pairs, 'pair')} show a win rate of {least:.4f} or more, or of "
            f"{1 - least:.4f} or less ({sure})"
        )
    if len(planned.plans) == 1:
        return f"to {gate or 'detect a true win rate'} of {planned.plans[0].win_rate:g} ({sure})"
    return f"pairs needed to {gate or 'detect a true win rate'} ({sure})"


def _one(plan: PairPlan, planned: PairPlans) -> Iterator[tuple[str, str]]:
    most = "at most " if plan.early_stopping else ""
    prompts = ""
    if plan.shape.rows_per_prompt > 1:
        prompts = f" ({counted(plan.prompts, 'prompt')} of {plan.shape.rows_per_prompt})"
    yield "pairs", f"{most}{number(plan.pairs)}{prompts}"
    if plan.pairs_in_both_orders is not None:
        share = plan.shape.both_orders or 0.0
        twice = f"{number(plan.pairs_in_both_orders)} in both (--both-orders {share:g})"
        yield "orders", f"{most}{twice}, the others in one random order"
    yield "calls", f"{most}{number(plan.calls)}{_requests(plan.calls, planned.call_cost)}"
    cost = _cost_of(planned.call_cost, plan.calls)
    yield "cost", _unknown(planned.call_cost) if cost is None else f"{most}{_amount(cost)}"
    if plan.early_stopping:
        expected = _cost_of(planned.call_cost, plan.expected_calls)
        yield (
            "expected",
            f"{number(plan.expected_pairs)} pairs, {number(plan.expected_calls)} calls"
            + (f", {_amount(expected)}" if expected else "")
            + f" on average, if the win rate is {_JUST_THAT}",
        )
    if plan.shape.inconsistent_share:
        yield "shown as", f"{plan.shown_rate:.4g} on average: inconsistent pairs count as half"


def _cost_of(cost: CallCost | None, calls: float) -> Amount | None:
    return None if cost is None else cost.of(calls)


def _requests(calls: int, cost: CallCost | None) -> str:
    """Where a pass is about one request there is nothing to tell."""
    if cost is None or abs(cost.requests - 1) < 0.05:
        return ""
    requests = calls * cost.requests
    if round(requests) == calls or requests < 0.5:
        return ""
    return f" (about {number(round(requests))} requests)"


def _settings(planned: PairPlans) -> Iterator[tuple[str, str]]:
    shape = planned.shape
    each = [
        counted(shape.orders, "order") + (" at random" if shape.both_orders is not None else ""),
        counted(shape.samples, "sample"),
        counted(shape.judges, "judge"),
    ]
    halves = f"ties {_percent(shape.tie_share)}, inconsistent {_percent(shape.inconsistent_share)}"
    yield "each pair", f"{' × '.join(each)}; {halves}"
    if shape.rows_per_prompt > 1:
        yield (
            "prompts",
            f"{shape.rows_per_prompt} pairs each, correlation {shape.correlation:g}: "
            f"{shape.design_effect:.3g} pairs count as one independent pair",
        )
    if planned.early_stopping and len(planned.plans) > 1:
        yield "average", f"if the win rate is {_JUST_THAT}"
    if planned.call_cost is not None:
        yield "each call", _call(planned.call_cost)


def _call(cost: CallCost) -> str:
    parts = []
    if cost.input_tokens is not None and cost.output_tokens is not None:
        parts.append(f"{_range(cost.input_tokens)} tokens in, {_range(cost.output_tokens)} out")
    if cost.usd is not None:
        parts.append(_amount(cost.usd))
    return f"{', '.join(parts) or 'nothing known'}, from {one_line(cost.source)}"


def _range(amount: Amount) -> str:
    low, high = number(amount.low), number(amount.high)
    return low if low == high else f"{low} to {high}"


def _amount(amount: Amount) -> str:
    low, high = dollars(amount.low), dollars(amount.high)
    if amount.high == 0:
        return "no cost"
    return low if low == high else f"{low} to {high}"


def _unknown(cost: CallCost | None) -> str:
    if cost is None:
        return _NOT_KNOWN
    return f"unknown from {one_line(cost.source)}; set --price"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _table(planned: PairPlans) -> Table:
    cost = planned.call_cost if planned.call_cost and planned.call_cost.usd else None
    early = planned.early_stopping
    most = "at most " if early else ""
    shown = planned.shape.inconsistent_share > 0
    headings = ["win rate", *(["shown as"] if shown else [])]
    drawn = planned.shape.both_orders is not None
    headings += [f"{most}pairs", *(["in both orders"] if drawn else []), "calls"]
    headings += ["cost"] if cost else []
    if early:
        headings += ["on average pairs", "calls", *(["cost"] if cost else [])]
    table = table_of(*headings)
    for plan in planned.plans:
        cells = [f"{plan.win_rate:.4g}", *([f"{plan.shown_rate:.4g}"] if shown else [])]
        twice = plan.pairs_in_both_orders
        cells += [number(plan.pairs), *([] if twice is None else [number(twice)])]
        cells.append(number(plan.calls))
        cells += _cost_cell(cost, plan.calls)
        if early:
            cells += [number(plan.expected_pairs), number(plan.expected_calls)]
            cells += _cost_cell(cost, plan.expected_calls)
        table.add_row(*cells)
    return table


def _cost_cell(cost: CallCost | None, calls: float) -> list[str]:
    amount = _cost_of(cost, calls)
    return [_amount(amount)] if amount else []
