"""A plan as a person reads it: a few lines for one win rate, a table for several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.cli.amounts import counted, dollars, number
from evenhand.cli.show import show_hanging
from evenhand.cli.terminal import one_line
from evenhand.runs.call_cost import Amount, CallCost
from evenhand.runs.pair_plans import PairPlans
from evenhand.stats.planning import PairPlan

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NOT_KNOWN = "not known; give --like RUN, --price with --tokens, or a file of pairs with --judge"

_JUST_THAT = "just that; fewer where it is further from 0.5"


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
    for name, said in lines:
        show_hanging(console, Text(f"{name:<9}", "dim"), Text(said))
    if len(planned.plans) > 1:
        console.print()
        console.print(_table(planned))


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
        return f"to {gate or 'find a true win rate'} of {planned.plans[0].win_rate:g} ({sure})"
    return f"pairs needed to {gate or 'find a true win rate'} ({sure})"


def _one(plan: PairPlan, planned: PairPlans) -> Iterator[tuple[str, str]]:
    most = "at most " if plan.early_stopping else ""
    prompts = ""
    if plan.shape.rows_per_prompt > 1:
        prompts = f" ({counted(plan.prompts, 'prompt')} of {plan.shape.rows_per_prompt})"
    yield "pairs", f"{most}{number(plan.pairs)}{prompts}"
    yield "calls", f"{most}{number(plan.calls)}{_requests(plan.calls, planned.call_cost)}"
    cost = _cost_of(planned.call_cost, plan.calls)
    yield "cost", _unknown(planned.call_cost) if cost is None else f"{most}{_amount(cost)}"
    if plan.early_stopping:
        expected = _cost_of(planned.call_cost, plan.expected_calls)
        yield (
            "expected",
            f"{number(plan.expected_pairs)} pairs, {number(plan.expected_calls)} calls"
            + (f", {_amount(expected)}" if expected else "")
            + f" on average, where the win rate is {_JUST_THAT}",
        )
    if plan.shape.inconsistent_share:
        yield "shown as", f"{plan.shown_rate:.4g} on average: inconsistent pairs count as half"


def _cost_of(cost: CallCost | None, calls: float) -> Amount | None:
    return None if cost is None else cost.of(calls)


def _requests(calls: int, cost: CallCost | None) -> str:
    """Where a pass is about one request there is nothing to tell."""
    if cost is None or abs(cost.requests - 1) < 0.05:
        return ""
    return f" (about {number(calls * cost.requests)} requests)"


def _settings(planned: PairPlans) -> Iterator[tuple[str, str]]:
    shape = planned.shape
    each = [
        counted(shape.orders, "order"),
        counted(shape.samples, "sample"),
        counted(shape.judges, "judge"),
    ]
    halves = f"ties {_percent(shape.tie_share)}, inconsistent {_percent(shape.inconsistent_share)}"
    yield "each pair", f"{' × '.join(each)}; {halves}"
    if shape.rows_per_prompt > 1:
        yield (
            "prompts",
            f"{shape.rows_per_prompt} pairs each with a correlation of {shape.correlation:g}: "
            f"{shape.design_effect:.3g} pairs are worth one on its own",
        )
    if planned.early_stopping and len(planned.plans) > 1:
        yield "average", f"where the win rate is {_JUST_THAT}"
    if planned.call_cost is not None:
        yield "each call", _call(planned.call_cost)


def _call(cost: CallCost) -> str:
    told = []
    if cost.input_tokens is not None and cost.output_tokens is not None:
        told.append(f"{_range(cost.input_tokens)} tokens in, {_range(cost.output_tokens)} out")
    if cost.usd is not None:
        told.append(_amount(cost.usd))
    return f"{', '.join(told) or 'nothing is known'}, by {one_line(cost.source)}"


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
    return f"not known by {one_line(cost.source)}; --price sets it"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _table(planned: PairPlans) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    cost = planned.call_cost if planned.call_cost and planned.call_cost.usd else None
    early = planned.early_stopping
    most = "at most " if early else ""
    shown = planned.shape.inconsistent_share > 0
    headings = ["win rate", *(["shown as"] if shown else [])]
    headings += [f"{most}pairs", "calls", *(["cost"] if cost else [])]
    if early:
        headings += ["on average pairs", "calls", *(["cost"] if cost else [])]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for plan in planned.plans:
        cells = [f"{plan.win_rate:.4g}", *([f"{plan.shown_rate:.4g}"] if shown else [])]
        cells += [number(plan.pairs), number(plan.calls)]
        cells += _cost_cell(cost, plan.calls)
        if early:
            cells += [number(plan.expected_pairs), number(plan.expected_calls)]
            cells += _cost_cell(cost, plan.expected_calls)
        table.add_row(*cells)
    return table


def _cost_cell(cost: CallCost | None, calls: float) -> list[str]:
    told = _cost_of(cost, calls)
    return [_amount(told)] if told else []
