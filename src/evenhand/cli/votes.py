"""`evenhand votes`: people's votes on a run, summarised, imported and exported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenhand import formats
from evenhand.analyses.registry import VOTES
from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.analyses import command_of
from evenhand.cli.command_tree import CommandTree
from evenhand.cli.figures import counted, number
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.present.terminal import (
    one_line,
    show_notes,
)

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.trust.vote_files import ImportedVotes


class _ShowByDefault(CommandTree):
    """`evenhand votes RUN` is `evenhand votes show RUN`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


votes = typer.Typer(cls=_ShowByDefault, invoke_without_command=True, rich_markup_mode=None)


@votes.callback()
def of_people(context: typer.Context) -> None:
    """Summarise, import or export human votes on a run.

    evenhand votes RUN is short for evenhand votes show RUN.
    """
    if context.invoked_subcommand is None:
        raise InputError(Message("command.no_run_for_votes"))


votes.command("show")(command_of(VOTES))


@votes.command("import")
def import_file(
    name: opt.RunArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help=f"{formats.listed()}, optionally gzipped; - for standard input.",
        ),
    ],
    who: Annotated[
        str | None,
        typer.Option(
            "--who",
            help="Who voted, if rows do not say; for lists, the prefix of the voters' names.",
        ),
    ] = None,
    columns: opt.ColumnMap = None,
    values: opt.Values = None,
    bad_rows: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            "--bad-rows",
            help=("stop: an invalid row is an error; skip: it is skipped and counted."),
        ),
    ] = "stop",
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Import votes from a file: pair, who, verdict; or a list of verdicts per pair."""
    from evenhand.cli.inputs import data_path, mapped_columns, meant_values
    from evenhand.cli.session import opened_store
    from evenhand.data.source import open_source
    from evenhand.data.votes import VoteReading
    from evenhand.report.files import unescape
    from evenhand.trust.vote_files import import_votes

    reading = VoteReading(
        columns=mapped_columns(columns),
        who=_named(who),
        values=meant_values(values),
        unescape=unescape,
    )
    with open_source(data_path(file)) as source, opened_store(store) as opened:
        report = import_votes(opened, name, source, reading, bad_rows=bad_rows)
    session.present(report, show_imported, as_json=as_json)


def _named(who: str | None) -> str | None:
    if who is not None and not who.strip():
        raise InputError(Message("command.who_empty"))
    return who.strip() if who else None


@votes.command()
def export(
    name: opt.RunArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A .csv or .jsonl file, optionally .gz; - for JSON Lines."
        ),
    ],
    force: opt.Overwrite = False,
    store: opt.StoreAddress = None,
) -> None:
    """Write a run's votes to a file that evenhand votes import can read."""
    from evenhand.cli.figures import counted
    from evenhand.cli.session import opened_store
    from evenhand.present.terminal import printed
    from evenhand.trust.vote_files import export_votes, write_votes

    try:
        with opened_store(store) as opened:
            if file == "-":
                with printed("jsonl") as stream:
                    write_votes(opened, name, stream)
                return
            count = export_votes(opened, name, Path(file), overwrite=force)
    except BrokenPipeError:
        session.silence_output()
        return
    session.write_text(f"{counted(count, 'vote')} saved to {one_line(file)}")


def show_imported(console: Console, votes: ImportedVotes) -> None:
    from rich.text import Text

    people = "1 person" if votes.people == 1 else f"{number(votes.people)} people"
    session.print_line(
        console,
        Text(
            f"{counted(votes.votes, 'vote')} by {people} on {counted(votes.pairs, 'pair')} of run "
            f"{one_line(votes.run)}: {number(votes.new)} new, {number(votes.replaced)} replaced, "
            f"{number(votes.unchanged)} unchanged"
        ),
    )
    show_notes(console, _notes(votes))


def _notes(votes: ImportedVotes) -> Iterator[str]:
    if votes.unknown_votes:
        shown = ", ".join(repr(pair) for pair in votes.unknown_pairs[:3])
        more = ", …" if len(votes.unknown_pairs) > 3 else ""
        yield (
            f"{counted(votes.unknown_votes, 'vote')} on pairs not in the run "
            f"{_were(votes.unknown_votes)} skipped: {shown}{more}"
        )
    if votes.bad_rows:
        yield f"{counted(votes.bad_rows, 'row')} skipped as invalid"
    for row in votes.first_bad_rows:
        yield f"row {row.row}: {row.reason}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
