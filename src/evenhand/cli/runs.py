"""`evenhand runs`: the runs of a store and their batches, listed, shown, renamed, exported and
deleted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.command_tree import CommandTree
from evenhand.cli.figures import counted
from evenhand.cli.manifest import show_manifest
from evenhand.cli.session import named_store, opened_store
from evenhand.errors import InputError, StoreError
from evenhand.messages import Message
from evenhand.messages.numbers import dollars, duration, number
from evenhand.present.terminal import (
    one_line,
    print_table,
    print_where_it_fits,
    show_facts,
    show_hanging,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evenhand.report.export import Exported
    from evenhand.report.run import (
        BatchReport,
        BatchStage,
        JudgeReport,
        RunLine,
        RunReport,
        RunUsage,
    )


runs = typer.Typer(cls=CommandTree, invoke_without_command=True, rich_markup_mode=None)


class _Given(NamedTuple):
    """What stood before the subcommand."""

    store: str | None
    as_json: bool


@runs.callback()
def list_by_default(
    context: typer.Context, store: opt.StoreAddress = None, as_json: opt.AsJson = False
) -> None:
    """List, show, rename, export or delete runs."""
    context.obj = _Given(store, as_json)
    if context.invoked_subcommand is None:
        _list(store, as_json=as_json)


@runs.command("list")
def list_runs(
    context: typer.Context, store: opt.StoreAddress = None, as_json: opt.AsJson = False
) -> None:
    """List runs, newest first."""
    given: _Given = context.obj
    _list(store or given.store, as_json=as_json or given.as_json)


def _list(address: str | None, *, as_json: bool) -> None:

    from evenhand.store.address import read_address

    shown = read_address(named_store(address)).shown
    lines, damaged = _lines(address)
    if as_json:
        listed = [line.model_dump(mode="json") for line in lines]
        session.write_json({"store": shown, "runs": listed})
    elif lines or damaged:
        show_lines(session.out(), lines)
    else:
        session.write_text(f"no runs yet in {one_line(shown)}; create one with evenhand run")
    for each in damaged:
        sys.stderr.write(f"note  skipped: {one_line(each.message)}\n")


def _lines(address: str | None) -> tuple[list[RunLine], list[StoreError]]:
    """Listing runs must not create a store."""
    from evenhand.report.run import look_over
    from evenhand.store.address import FileAddress, read_address

    where = read_address(named_store(address))
    if isinstance(where, FileAddress) and not _holds_anything(where.path):
        return [], []
    try:
        with opened_store(address) as store:
            return look_over(store)
    except StoreError:
        from evenhand.store.postgres import is_without_store

        if isinstance(where, FileAddress) or not is_without_store(where.url):
            raise
        return [], []


def _holds_anything(path: Path) -> bool:
    return path.exists() and (not path.is_file() or path.stat().st_size > 0)


@runs.command()
def show(
    context: typer.Context,
    name: opt.RunArgument,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show one run: its settings, outcomes and cost.

    Also its failures, and its batches at a provider.
    """
    import json

    from evenhand.report.manifest import manifest_of
    from evenhand.report.run import report_batches, report_run

    given: _Given = context.obj
    as_json = as_json or given.as_json
    with opened_store(store or given.store) as opened:
        report = report_run(opened, name)
        batches = report_batches(opened, name)
        manifest = manifest_of(opened, name)
    if as_json:
        whole = json.loads(report.model_dump_json())
        whole["batches"] = [each.model_dump(mode="json") for each in batches]
        session.write_json(whole | {"manifest": json.loads(manifest.model_dump_json())})
    else:
        show_run(session.out(), report)
        show_batches(session.out(), batches)
        show_manifest(session.out(), manifest)


@runs.command()
def rename(
    context: typer.Context,
    name: opt.RunArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    store: opt.StoreAddress = None,
) -> None:
    """Rename a run."""
    from evenhand.report.lookup import find_run

    with opened_store(store or context.obj.store) as opened:
        find_run(opened, name)
        opened.runs.rename(name, new)
    session.write_text(f"run {one_line(name)} is now {one_line(new)}")


@runs.command()
def delete(
    context: typer.Context,
    name: opt.RunArgument,
    with_votes: Annotated[
        bool,
        typer.Option("--with-votes", help="Also delete votes on pairs that no other run has."),
    ] = False,
    store: opt.StoreAddress = None,
    yes: opt.Yes = False,
) -> None:
    """Delete a run with its verdicts.

    Passes that no other run uses are deleted too; votes are kept.
    """
    from evenhand.cli.figures import counted
    from evenhand.messages.numbers import number
    from evenhand.report.lookup import find_run

    with opened_store(store or context.obj.store) as opened:
        run = find_run(opened, name)
        tally = opened.verdicts.tally(run.id)
        pairs, verdicts = counted(tally.pairs, "pair"), counted(tally.judged, "verdict")
        passes = counted(opened.deletion.passes_to_go(run.id), "pass", "passes")
        goes = (
            f"run {one_line(name)}: {pairs}, {verdicts} and {passes}; passes shared with "
            "other runs are kept"
        )
        votes = opened.deletion.votes_to_go(run.id)
        if votes:
            fate = "deleted too" if with_votes else "kept, with the texts of their pairs"
            goes += f"; its votes ({number(votes)}) are {fate}"
        there = sum(batch.requests for batch in opened.batches.unfinished(run.id))
        if there:
            goes += (
                f"; {counted(there, 'request')} in a provider's batch API will be billed but "
                "never collected (cancel them with run --batch --cancel-batches)"
            )
        if not yes and not _confirmed(f"deleting {goes}", "command.delete_unasked", name):
            session.write_text("nothing was deleted")
            return
        opened.deletion.delete(name, with_votes=with_votes)
    session.write_text(f"deleted {goes}")


@runs.command()
def forget(
    context: typer.Context,
    name: opt.RunArgument,
    store: opt.StoreAddress = None,
    yes: opt.Yes = False,
) -> None:
    """Delete a run's texts for good; figures and verdicts are kept.

    This removes its prompts, its responses and the judges' answers.
    """
    from evenhand.cli.figures import counted
    from evenhand.report.lookup import find_run

    with opened_store(store or context.obj.store) as opened:
        gone = opened.deletion.texts_to_go(find_run(opened, name).id)
        goes = (
            f"the texts of {counted(gone.pairs, 'pair')} of run {one_line(name)} and the "
            "judges' answers; report, gate, rank and audit keep working, but show, pages, "
            "search, exports, votes and judging again lose the texts"
        )
        if gone.shared_pairs:
            shared = counted(gone.shared_pairs, "pair")
            goes += f"; {shared} shared with other runs keep their texts and passes"
        if not yes and not _confirmed(f"deleting {goes}", "command.forget_unasked", name):
            session.write_text("nothing was deleted")
            return
        opened.deletion.forget_texts(name)
    session.write_text(f"deleted {goes}")


def _confirmed(what: str, unasked: str, name: str) -> bool:
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(Message(unasked, name=name))
    sys.stderr.write(f"{what}\ncontinue? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@runs.command()
def export(
    context: typer.Context,
    name: opt.RunArgument,
    form: Annotated[
        Literal["jsonl", "json", "csv", "excel-csv", "parquet", "llm-comparator"] | None,
        typer.Option(
            "--format",
            help=(
                "Default: from the file's extension, otherwise jsonl; excel-csv is CSV for Excel."
            ),
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write; - for standard output."
        ),
    ] = "-",
    force: opt.Overwrite = False,
    store: opt.StoreAddress = None,
) -> None:
    """Write a run's verdicts and pairs to a file, one row per pair and judge."""
    from evenhand.cli.figures import counted
    from evenhand.present.terminal import printed
    from evenhand.report.export import export_run

    try:
        with opened_store(store or context.obj.store) as opened:
            if output == "-":
                with printed(form or "jsonl") as stream:
                    exported = export_run(opened, name, stream, format=form)
            else:
                exported = export_run(opened, name, Path(output), format=form, overwrite=force)
    except BrokenPipeError:
        session.silence_output()
        return
    if output != "-":
        beside = f"; manifest in {one_line(exported.manifest.name)}" if exported.manifest else ""
        session.write_text(f"{counted(exported.rows, 'row')} in {one_line(output)}{beside}")
    _say_what_is_missing(exported)


def _say_what_is_missing(exported: Exported) -> None:
    from evenhand.cli.figures import counted

    if exported.pending:
        verdicts = counted(exported.pending, "verdict is", "verdicts are")
        sys.stderr.write(f"note  {verdicts} pending and left out\n")
    if exported.skipped_rows:
        rows = counted(exported.skipped_rows, "row")
        were = "was invalid and" if exported.skipped_rows == 1 else "were invalid and"
        sys.stderr.write(f"note  {rows} {were} skipped by the run\n")


# Runs as a person reads them: a list of them, and one with all its numbers.

_COUNTS = ("pairs", "judged", "A wins", "B wins", "ties", "inconsistent", "invalid", "pending")


def moment(when: datetime) -> str:
    return when.astimezone().strftime("%Y-%m-%d %H:%M")


def show_lines(console: Console, lines: Sequence[RunLine]) -> None:
    if print_where_it_fits(console, _table(lines)):
        return
    for line in lines:
        _stack(console, line)


def _table(lines: Sequence[RunLine]) -> Table:
    from rich.text import Text

    skipped = any(line.skipped_rows for line in lines)
    columns = ("run", "started", *_COUNTS, *(["skipped"] if skipped else []), "state")
    table = table_of(*columns, left=("run", "started", "state"))
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
    counts = zip(_COUNTS, _counts(line), strict=True)
    parts = [f"{name} {number(count)}" for name, count in counts]
    if line.skipped_rows:
        parts.append(f"skipped {number(line.skipped_rows)}")
    console.print(Padding(Text(", ".join(parts)), (0, 0, 0, 2)))


def show_run(console: Console, report: RunReport) -> None:
    from rich.text import Text

    console.print(Text.assemble((f"run {one_line(report.run)}", "bold"), f"  {_state(report)}"))
    show_facts(console, _plan(report))
    for judge in report.judges:
        console.print()
        _show_judge(console, judge)
    console.print()
    show_facts(console, [("spent", _spent(report.spent)), ("time", duration(report.seconds))])
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
    yield "started", f"{moment(report.created_at)}, last updated {moment(report.updated_at)}"
    yield "store", one_line(report.store)
    yield "sources", ", ".join(map(one_line, report.sources)) or "none"
    planned = report.plan.get("data")
    data: Mapping[str, Any] = planned if isinstance(planned, dict) else {}
    criteria = [_criterion(each) for each in data.get("criteria") or () if isinstance(each, dict)]
    yield "criteria", ", ".join(criteria) or "from each row"
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
    shown = str(criterion.get("name"))
    if criterion.get("description"):
        shown += f" ({criterion['description']})"
    if criterion.get("weight") is not None:
        shown += f", weight {criterion['weight']:g}"
    return one_line(shown)


def _show_judge(console: Console, judge: JudgeReport) -> None:
    from rich.text import Text

    console.print(Text.assemble(("judge ", "dim"), (one_line(judge.judge), "bold")))
    facts = (
        ("asked", _asked(judge)),
        ("settings", ", ".join(_settings(judge.settings)) or "none"),
        ("verdicts", _verdicts(judge)),
        ("passes", _passes(judge)),
        ("took", _spent(judge.spent)),
    )
    show_facts(console, facts, indent="  ")


def _asked(judge: JudgeReport) -> str:
    version = judge.prompt_version
    parts = [version, judge.locale, judge.mode] if version else ["without a prompt"]
    if judge.samples is not None:
        parts.append(f"{counted(judge.samples, 'sample')} per order")
    if judge.reconcile is not None:
        parts.append(f"reconciled by {judge.reconcile}")
    return one_line(", ".join(part for part in parts if part))


def _settings(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if value is not None:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield one_line(f"{name} {shown}")


def _verdicts(judge: JudgeReport) -> str:
    return (
        f"A wins {number(judge.wins_a)}, B wins {number(judge.wins_b)}, "
        f"ties {number(judge.ties)}, inconsistent {number(judge.inconsistent)}, "
        f"invalid {number(judge.invalid)}, pending {number(judge.pending)}"
    )


def _passes(judge: JudgeReport) -> str:
    return (
        f"{number(judge.spent.passes)}, unread {number(judge.unread_passes)}, "
        f"failed {number(judge.failed_passes)}, reused {number(judge.reused_passes)}"
    )


def _spent(spent: RunUsage) -> str:
    parts = [counted(spent.requests, "request")]
    if spent.input_tokens is not None and spent.output_tokens is not None:
        parts.append(
            f"{counted(spent.input_tokens, 'token')} in, {number(spent.output_tokens)} out"
        )
    elif spent.requests:
        parts.append("tokens unknown")
    if spent.cost_usd is not None:
        parts.append(dollars(spent.cost_usd))
    elif spent.known_cost_usd is not None:
        without = f"{number(spent.unpriced_passes)} of {counted(spent.passes, 'pass', 'passes')}"
        parts.append(f"cost unknown: {dollars(spent.known_cost_usd)} without {without}")
    elif spent.passes:
        parts.append("cost unknown")
    return ", ".join(parts)


def _show_first(console: Console, what: str, lines: Sequence[str], *, of: int) -> None:
    from rich.text import Text

    if not lines:
        return
    first = f" (first {len(lines)} of {number(of)})" if of > len(lines) else ""
    console.print()
    console.print(Text(f"{what}{first}", "bold"))
    for line in lines:
        show_hanging(console, Text("  •"), Text(one_line(line)))


# A run's batches as a person reads them.

_SHOWN_AT_MOST = 20
_STATES: dict[BatchStage, str] = {
    "intended": "not sent yet",
    "sent": "sent, not yet confirmed",
    "open": "at the provider",
    "done": "collected",
}


def show_batches(console: Console, batches: Sequence[BatchReport]) -> None:
    """The newest of them, after a line that counts all."""
    from rich.text import Text

    if not batches:
        return
    there = [batch for batch in batches if batch.state != "done"]
    waiting = sum(batch.requests for batch in there)
    line = f"{counted(len(batches), 'batch', 'batches')}, "
    line += f"{counted(waiting, 'request')} not collected" if there else "all collected"
    if len(batches) > _SHOWN_AT_MOST:
        line += f" (last {_SHOWN_AT_MOST})"
    columns = ("batch", "judge", "state", "requests", "sent", "reserved")
    table = table_of(*columns, left=("batch", "judge", "state", "sent"))
    for batch in batches[-_SHOWN_AT_MOST:]:
        table.add_row(
            Text(one_line(batch.id or "unknown")),
            Text(one_line(batch.judge)),
            _STATES[batch.state],
            number(batch.requests),
            "no" if batch.sent_at is None else moment(batch.sent_at),
            "unknown" if batch.reserved_usd is None else dollars(batch.reserved_usd),
        )
    console.print()
    console.print(Text(line, "bold"))
    print_table(console, table)
