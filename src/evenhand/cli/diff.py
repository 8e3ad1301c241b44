"""`evenhand diff`: what changed between two runs over the same pairs, or two judges of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import counted, counted_share, number, value
from evenhand.cli.session import opened_store
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.messages.numbers import p_value
from evenhand.present.terminal import (
    one_line,
    print_table,
    show_facts,
    show_hanging,
    show_notes,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.report.diff import FlippedPair, PairOutcome, RunDiff

_Outcome = Literal["A", "tie", "inconsistent", "B", "invalid"]


def diff(
    first: Annotated[str, typer.Argument(metavar="RUN", help="The earlier run.")],
    second: Annotated[
        str, typer.Argument(metavar="RUN", help="The run to compare it with; may be the same one.")
    ],
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            help="The judge, if a run has several; give a second one for the second run.",
        ),
    ] = None,
    from_outcome: Annotated[
        _Outcome | None,
        typer.Option("--from-outcome", help="Show pairs with this outcome in the first run."),
    ] = None,
    to_outcome: Annotated[
        _Outcome | None,
        typer.Option("--to-outcome", help="Show pairs with this outcome in the second run."),
    ] = None,
    towards: Annotated[
        Literal["A", "B"] | None,
        typer.Option("--towards", help="Show pairs that moved towards this response."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, max=100, help="Show at most this many pairs.")
    ] = 10,
    after: Annotated[int, typer.Option("--after", min=0, help="Start after this pair number.")] = 0,
    allow_one_order: opt.AllowOneOrder = False,
    level: opt.Level = 0.95,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare two runs over the same pairs.

    Pairs are matched by their texts, otherwise by id and prompt.
    """
    from evenhand.report.conclusions import ConclusionLimits
    from evenhand.report.diff import DiffOptions, diff_runs

    names = judge or []
    if len(names) > 2:
        raise InputError(Message("command.judges_for_two_runs", n=len(names)))
    with opened_store(store) as opened:
        found = diff_runs(
            opened,
            first,
            second,
            DiffOptions(
                level=level,
                from_outcome=from_outcome,
                to_outcome=to_outcome,
                towards=towards,
                limit=limit,
                after=after,
            ),
            judges=(names[0], names[-1]) if names else (None, None),
            limits=ConclusionLimits(allow_one_order=allow_one_order),
        )
    session.present(found, show_diff, as_json=as_json)


def show_diff(console: Console, found: RunDiff) -> None:
    from rich.text import Text

    console.print(Text(one_line(found.sentence), "bold"))
    change, test = found.change, found.change.sign_test
    lines = [
        (place, _side(each.run, each.judge))
        for place, each in (("first", found.first), ("second", found.second))
    ]
    matched = found.matched
    pairs = matched.content + matched.texts + matched.id + matched.prompt
    lines.append(("pairs", f"{counted(pairs, 'pair')} in both, {number(change.pairs)} judged"))
    if test is not None and all(each.code != "diff.several_models" for each in found.messages):
        to = f"{number(test.wins_b)} towards B, {number(test.wins_a)} towards A"
        by = "" if test.by == "pair" else ", counted by prompt"
        lines.append(("flips", f"{to}, {p_value(test.p_value)} (exact sign test{by})"))
    if found.agreement is not None:
        own = found.agreement
        lines.append(("labels", f"first {counted_share(own.first)}"))
        lines.append(("", f"second {counted_share(own.second)}"))
        lines.append(("", f"change {value(own.change)}"))
    console.print()
    show_facts(console, lines, width=8)
    console.print()
    _show_flow(console, found)
    show_notes(console, found.notes)
    for each in found.flipped:
        _show_pair(console, each)
    left = found.flipped_in_all - len(found.flipped)
    if left > 0:
        more = "" if found.next is None else f"; continue with --after {found.next}"
        console.print(Text(f"\n{counted(left, 'pair')} not shown here{more}", "dim"))


def _side(run: str, judge: str) -> str:
    return f"run {one_line(run)}, judge {one_line(judge)}"


def _show_flow(console: Console, found: RunDiff) -> None:
    names = [row.outcome for row in found.change.flow]
    table = table_of("first → second", *names, left=("first → second",))
    for row in found.change.flow:
        counts = (row.a, row.tie, row.inconsistent, row.b, row.invalid)
        table.add_row(row.outcome, *(number(each) if each else "·" for each in counts))
    print_table(console, table)


def _show_pair(console: Console, pair: FlippedPair) -> None:
    from rich.text import Text

    from evenhand.present.terminal import plain

    where = f"pair {pair.first.number}"
    if pair.second.number != pair.first.number:
        where += f", {pair.second.number} in the second run"
    console.print(
        Text.assemble("\n", (one_line(pair.first.id), "bold"), (f"  {one_line(where)}", "dim"))
    )
    show_hanging(console, Text(f"{'prompt':>9} ", "dim"), plain(one_line(pair.prompt)))
    for name, judged in (("first", pair.first), ("second", pair.second)):
        show_hanging(console, Text(f"{name:>9} ", "dim"), plain(_describe(judged)))


def _describe(judged: PairOutcome) -> str:
    outcome = judged.winner if judged.outcome == "win" else str(judged.outcome)
    sure = "" if judged.confidence is None else f", {judged.confidence:.2f}"
    return f"{outcome}{sure}{': ' if judged.reasoning else ''}{one_line(judged.reasoning)}"
