"""Runs as a person reads them: a list of them, and one with all its numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from evenhand.cli.amounts import counted, dollars, number, seconds
from evenhand.cli.show import show_hanging
from evenhand.cli.terminal import one_line
from evenhand.report import JudgeReport, RunLine, RunReport, Share
from evenhand.report.run import Spent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_COUNTS = ("pairs", "judged", "A wins", "B wins", "ties", "inconsistent", "invalid", "pending")
_NOT_ENOUGH = "not enough data: no pair was won"


def moment(when: datetime) -> str:
    return when.astimezone().strftime("%Y-%m-%d %H:%M")


def show_lines(console: Console, lines: Sequence[RunLine]) -> None:
    table = _table(lines)
    needed = console.measure(table, options=console.options.update(width=10_000)).maximum
    if not console.is_terminal:
        console.width = max(console.width, needed)  # a pipe has no width, and lines stay whole
    if needed <= console.width:
        console.print(table)
        return
    for line in lines:
        _stack(console, line)


def _table(lines: Sequence[RunLine]) -> Table:
    from rich.table import Table
    from rich.text import Text

    skipped = any(line.skipped_rows for line in lines)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("run", "begun", *_COUNTS, *(["skipped"] if skipped else []), "state"):
        left = column in ("run", "begun", "state")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for line in lines:
        counts = [*_counts(line), *([line.skipped_rows] if skipped else [])]
        table.add_row(
            Text(one_line(line.run)),
            moment(line.created_at),
            *map(number, counts),
            Text(_state(line)),
        )
    return table


def _counts(line: RunLine) -> tuple[int, ...]:
    return (
        *(line.pairs, line.judged, line.wins_a, line.wins_b, line.ties),
        *(line.inconsistent, line.invalid, line.pending),
    )


def _state(line: RunLine | RunReport) -> str:
    if line.state == "stopped" and line.stopped_by:
        return f"stopped ({one_line(line.stopped_by)})"
    return line.state


def _stack(console: Console, line: RunLine) -> None:
    """For a terminal that is too narrow for the table."""
    from rich.padding import Padding
    from rich.text import Text

    head = Text.assemble((one_line(line.run), "bold"), f"  {_state(line)}", no_wrap=False)
    head.append(f"  {moment(line.created_at)}", "dim")
    console.print(head)
    told = zip(_COUNTS, _counts(line), strict=True)
    parts = [f"{name} {number(count)}" for name, count in told]
    if line.skipped_rows:
        parts.append(f"skipped {number(line.skipped_rows)}")
    console.print(Padding(Text(", ".join(parts)), (0, 0, 0, 2)))


def show_run(console: Console, report: RunReport) -> None:
    from rich.text import Text

    console.print(Text.assemble((f"run {one_line(report.run)}", "bold"), f"  {_state(report)}"))
    for name, said in _plan(report):
        show_hanging(console, Text(f"{name:<9}", "dim"), Text(said))
    for judge in report.judges:
        console.print()
        _show_judge(console, judge)
    console.print()
    show_hanging(console, Text(f"{'spent':<9}", "dim"), Text(_spent(report.spent)))
    show_hanging(console, Text(f"{'time':<9}", "dim"), Text(seconds(report.seconds)))
    invalid = sum(judge.invalid for judge in report.judges)
    _show_first(
        console,
        "invalid",
        [f"{each.id} ({each.judge}): {each.message}" for each in report.invalid_pairs],
        of=invalid,
    )
    _show_first(
        console,
        "skipped rows",
        [f"{each.source}, row {each.row}: {each.reason}" for each in report.skipped],
        of=report.skipped_rows,
    )


def _plan(report: RunReport) -> Iterator[tuple[str, str]]:
    yield "begun", f"{moment(report.created_at)}, last changed {moment(report.updated_at)}"
    yield "store", one_line(report.store)
    yield "sources", ", ".join(map(one_line, report.sources)) or "none"
    told = report.plan.get("data")
    data: Mapping[str, Any] = told if isinstance(told, dict) else {}
    criteria = [_criterion(each) for each in data.get("criteria") or () if isinstance(each, dict)]
    yield "criteria", ", ".join(criteria) or "each row's own"
    columns = data.get("columns")
    if isinstance(columns, dict) and columns:
        yield "columns", ", ".join(one_line(f"{to}={of}") for to, of in columns.items())
    if data.get("baseline"):
        yield "baseline", one_line(str(data["baseline"]))
    if report.plan.get("fresh"):
        yield "fresh", "shares no passes with other runs"
    pairs = f"{number(report.pairs)}, skipped rows {number(report.skipped_rows)}"
    if report.repeated_rows:
        pairs += f", repeated rows {number(report.repeated_rows)}"
    yield "pairs", pairs


def _criterion(criterion: Mapping[str, Any]) -> str:
    told = str(criterion.get("name"))
    if criterion.get("description"):
        told += f" ({criterion['description']})"
    if criterion.get("weight") is not None:
        told += f", weight {criterion['weight']:g}"
    return one_line(told)


def _show_judge(console: Console, judge: JudgeReport) -> None:
    from rich.text import Text

    console.print(Text.assemble(("judge ", "dim"), (one_line(judge.judge), "bold")))
    for name, said in (
        ("asked", _asked(judge)),
        ("settings", ", ".join(_settings(judge.settings)) or "none"),
        ("verdicts", _verdicts(judge)),
        ("A won", _share(judge.share_a)),
        ("B won", _share(judge.share_b)),
        ("passes", _passes(judge)),
        ("took", _spent(judge.spent)),
    ):
        show_hanging(console, Text(f"  {name:<9}", "dim"), Text(said))


def _asked(judge: JudgeReport) -> str:
    version = judge.prompt_version
    parts = [version, judge.locale, judge.mode] if version else ["without a prompt"]
    if judge.samples is not None:
        parts.append(f"{counted(judge.samples, 'sample')} an order")
    if judge.reconcile is not None:
        parts.append(f"reconciled by {judge.reconcile}")
    return one_line(", ".join(part for part in parts if part))


def _settings(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if value is not None:
            said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield one_line(f"{name} {said}")


def _verdicts(judge: JudgeReport) -> str:
    return (
        f"A wins {number(judge.wins_a)}, B wins {number(judge.wins_b)}, "
        f"ties {number(judge.ties)}, inconsistent {number(judge.inconsistent)}, "
        f"invalid {number(judge.invalid)}, pending {number(judge.pending)}"
    )


def _share(share: Share | None) -> str:
    if share is None:
        return _NOT_ENOUGH
    pairs = counted(share.of, "decided pair")
    return (
        f"{100 * share.value:.1f} % of {pairs} "
        f"(95 % interval {100 * share.low:.1f} to {100 * share.high:.1f} %)"
    )


def _passes(judge: JudgeReport) -> str:
    return (
        f"{number(judge.spent.passes)}, unread {number(judge.unread_passes)}, "
        f"failed {number(judge.failed_passes)}, reused {number(judge.reused_passes)}"
    )


def _spent(spent: Spent) -> str:
    parts = [counted(spent.requests, "request")]
    if spent.input_tokens is not None and spent.output_tokens is not None:
        parts.append(
            f"{counted(spent.input_tokens, 'token')} in, {number(spent.output_tokens)} out"
        )
    elif spent.requests:
        parts.append("tokens not known")
    if spent.cost_usd is not None:
        parts.append(dollars(spent.cost_usd))
    elif spent.known_cost_usd is not None:
        without = f"{number(spent.unpriced_passes)} of {counted(spent.passes, 'pass', 'passes')}"
        parts.append(f"cost not known: {dollars(spent.known_cost_usd)} without {without}")
    elif spent.passes:
        parts.append("cost not known")
    return ", ".join(parts)


def _show_first(console: Console, what: str, lines: Sequence[str], *, of: int) -> None:
    from rich.text import Text

    if not lines:
        return
    first = f" (the first {len(lines)} of {number(of)})" if of > len(lines) else ""
    console.print()
    console.print(Text(f"{what}{first}", "bold"))
    for line in lines:
        show_hanging(console, Text("  •"), Text(one_line(line)))
