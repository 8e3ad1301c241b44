"""`evenhand runs`: the runs of a store, listed, shown, renamed, exported and deleted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.stores import named_store, opened_store
from evenhand.cli.terminal import one_line
from evenhand.errors import EvenhandError, InputError, StoreError

if TYPE_CHECKING:
    from evenhand.report import Exported, RunLine

runs = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


class _Given(NamedTuple):
    """What stood before the subcommand."""

    store: str | None
    as_json: bool


RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's name.")]


@runs.callback()
def list_by_default(
    context: typer.Context, store: ropt.StoreAddress = None, as_json: opt.AsJson = False
) -> None:
    """List the runs of a store; show, rename, export or delete one."""
    context.obj = _Given(store, as_json)
    if context.invoked_subcommand is None:
        _list(store, as_json=as_json)


@runs.command("list")
def list_runs(
    context: typer.Context, store: ropt.StoreAddress = None, as_json: opt.AsJson = False
) -> None:
    """List the runs of a store, newest first."""
    given: _Given = context.obj
    _list(store or given.store, as_json=as_json or given.as_json)


def _list(address: str | None, *, as_json: bool) -> None:
    import json

    from evenhand.cli.show_runs import show_lines
    from evenhand.store.address import read_address

    try:
        shown = read_address(named_store(address)).shown
        lines, damaged = _lines(address)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        told = {"store": shown, "runs": [line.model_dump(mode="json") for line in lines]}
        session.write_json(json.dumps(told, ensure_ascii=False, indent=2))
    elif lines or damaged:
        show_lines(session.out(), lines)
    else:
        session.write_text(f"no runs yet in {one_line(shown)}; evenhand run makes one")
    for each in damaged:
        sys.stderr.write(f"note  left out: {one_line(each.message)}\n")


def _lines(address: str | None) -> tuple[list[RunLine], list[StoreError]]:
    """Looking for runs is no reason to make a store."""
    from evenhand.report import look_over
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
    name: RunArgument,
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show one run: what was asked for, each judge's outcomes, what failed, what it took, and its
    batches at a provider."""
    import json

    from evenhand.cli.show_batches import show_batches
    from evenhand.cli.show_runs import show_run
    from evenhand.report import report_run
    from evenhand.report.batches import report_batches

    given: _Given = context.obj
    as_json = as_json or given.as_json
    try:
        with opened_store(store or given.store) as opened:
            report = report_run(opened, name)
            batches = report_batches(opened, name)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        told = json.loads(report.model_dump_json())
        told["batches"] = [batch.model_dump(mode="json") for batch in batches]
        session.write_json(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        show_run(session.out(), report)
        show_batches(session.out(), batches)


@runs.command()
def rename(
    context: typer.Context,
    name: RunArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name it gets.")],
    store: ropt.StoreAddress = None,
) -> None:
    """Give a run another name."""
    from evenhand.report import find_run

    try:
        with opened_store(store or context.obj.store) as opened:
            find_run(opened, name)
            opened.rename_run(name, new)
    except EvenhandError as error:
        session.fail(error, as_json=False)
    session.write_text(f"run {one_line(name)} is now {one_line(new)}")


@runs.command()
def delete(
    context: typer.Context,
    name: RunArgument,
    with_votes: Annotated[
        bool,
        typer.Option(
            "--with-votes", help="Delete people's votes too, where no other run has the pair."
        ),
    ] = False,
    store: ropt.StoreAddress = None,
    yes: ropt.Yes = False,
) -> None:
    """Delete a run with its verdicts, and the passes that no other run uses; votes stay."""
    from evenhand.cli.amounts import counted, number
    from evenhand.report import find_run

    try:
        with opened_store(store or context.obj.store) as opened:
            run = find_run(opened, name)
            tally = opened.tally(run.id)
            pairs, verdicts = counted(tally.pairs, "pair"), counted(tally.judged, "verdict")
            passes = counted(opened.passes_to_go(run.id), "pass", "passes")
            goes = (
                f"run {one_line(name)}: {pairs}, {verdicts} and {passes}; "
                "passes shared with other runs stay"
            )
            votes = opened.votes_to_go(run.id)
            if votes:
                kept = "deleted too" if with_votes else "kept, with the texts of their pairs"
                goes += f"; people's votes on it ({number(votes)}) are {kept}"
            there = sum(batch.requests for batch in opened.batches.unfinished(run.id))
            if there:
                goes += (
                    f"; {counted(there, 'request')} at a provider's batch API will be paid for and "
                    "never collected (run --batch --cancel-batches gives them up)"
                )
            if not yes and not _confirmed(f"deleting {goes}", name):
                session.write_text("nothing was deleted")
                return
            opened.delete_run(name, with_votes=with_votes)
    except EvenhandError as error:
        session.fail(error, as_json=False)
    session.write_text(f"deleted {goes}")


@runs.command()
def forget(
    context: typer.Context,
    name: RunArgument,
    store: ropt.StoreAddress = None,
    yes: ropt.Yes = False,
) -> None:
    """Drop a run's prompts, responses and answers for good; its figures and verdicts stay."""
    from evenhand.cli.amounts import counted
    from evenhand.report import find_run

    try:
        with opened_store(store or context.obj.store) as opened:
            gone = opened.texts_to_go(find_run(opened, name).id)
            goes = (
                f"the texts of {counted(gone.pairs, 'pair')} of run {one_line(name)}, and what "
                "judges wrote on them; report, gate, rank and audit stay as they are, and show, "
                "pages, search, exports, votes and judging again have no texts any more"
            )
            if gone.shared_pairs:
                shared = counted(gone.shared_pairs, "pair")
                goes += f"; {shared} of other runs too keep their texts and passes"
            if not yes and not _confirmed(f"forgetting {goes}", name):
                session.write_text("nothing was forgotten")
                return
            opened.forget_texts(name)
    except EvenhandError as error:
        session.fail(error, as_json=False)
    session.write_text(f"forgot {goes}")


def _confirmed(what: str, name: str) -> bool:
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        doing = what.partition(" ")[0]
        raise InputError(f"{doing} run {name!r} needs a yes, and nobody can be asked; give --yes")
    sys.stderr.write(f"{what}\ngo on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@runs.command()
def export(
    context: typer.Context,
    name: RunArgument,
    form: Annotated[
        Literal["jsonl", "csv", "parquet", "llm-comparator"] | None,
        typer.Option("--format", help="Default: by the file's ending, else jsonl."),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write; - for standard output."
        ),
    ] = "-",
    force: Annotated[
        bool, typer.Option("--force", help="Write over a file that is there already.")
    ] = False,
    store: ropt.StoreAddress = None,
) -> None:
    """Write a run's verdicts with their pairs to a file, a row for each pair and judge."""
    from evenhand.cli.amounts import counted
    from evenhand.cli.printing import printed
    from evenhand.report import export_run

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
    except EvenhandError as error:
        session.fail(error, as_json=False)
    if output != "-":
        session.write_text(f"{counted(exported.rows, 'row')} in {one_line(output)}")
    _say_what_is_missing(exported)


def _say_what_is_missing(exported: Exported) -> None:
    from evenhand.cli.amounts import counted

    if exported.pending:
        verdicts = counted(exported.pending, "verdict is", "verdicts are")
        sys.stderr.write(f"note  {verdicts} pending and left out\n")
    if exported.skipped_rows:
        rows = counted(exported.skipped_rows, "row")
        were = "was no pair and was" if exported.skipped_rows == 1 else "were no pairs and were"
        sys.stderr.write(f"note  {rows} of the data {were} skipped by the run\n")
