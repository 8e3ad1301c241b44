"""`evenhand votes`: people's votes on a run, summed up, brought in and taken out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.report import RunArgument
from evenhand.cli.terminal import one_line
from evenhand.errors import EvenhandError, InputError


class _ShowByDefault(TyperGroup):
    """`evenhand votes RUN` is `evenhand votes show RUN`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


votes = typer.Typer(cls=_ShowByDefault, invoke_without_command=True, rich_markup_mode=None)


@votes.callback()
def of_people(context: typer.Context) -> None:
    """Sum up people's votes on a run (evenhand votes RUN); import or export them."""
    if context.invoked_subcommand is None:
        missing = InputError("no run is named; give one, as in evenhand votes RUN")
        session.fail(missing, as_json=False, of_pair=False)


@votes.command()
def show(
    name: RunArgument,
    level: Annotated[
        float, typer.Option("--level", help="How sure the intervals are, between 0 and 1.")
    ] = 0.95,
    seed: Annotated[int, typer.Option("--seed", help="Of alpha's interval.")] = 0,
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show how many people voted on how many pairs, how far they agree, what the majority says."""
    from evenhand.cli.stores import opened_store
    from evenhand.trust.vote_summary import summarise_votes

    try:
        with opened_store(store) as opened:
            found = summarise_votes(opened, name, level=level, seed=seed)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        session.write_json(found.model_dump_json(indent=2))
        return
    from evenhand.cli.show_votes import show_votes

    show_votes(session.out(), found)


@votes.command("import")
def import_file(
    name: RunArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="CSV, JSON lines or JSON, also gzipped; - for standard input."
        ),
    ],
    who: Annotated[
        str | None,
        typer.Option(
            "--who",
            help="Whose votes they are, where rows do not say; before the places of a list, the "
            "first word of the people's names.",
        ),
    ] = None,
    columns: ropt.ColumnMap = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="SPELLING=VERDICT",
            help="What a spelling means, e.g. 0=TIE; A, B, TIE or skipped. Repeatable.",
        ),
    ] = None,
    bad_rows: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            "--bad-rows", help="stop: a row that is no vote is an error; skip: it is counted."
        ),
    ] = "stop",
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Bring in votes from a file: pair, who, verdict; or a list of verdicts for each pair."""
    from evenhand.cli.run_inputs import data_path, mapped_columns
    from evenhand.cli.stores import opened_store
    from evenhand.data import open_source
    from evenhand.data.votes import VoteReading
    from evenhand.report.csv_table import unescape
    from evenhand.trust.vote_import import import_votes

    try:
        reading = VoteReading(
            columns=mapped_columns(columns),
            who=_named(who),
            values=dict(_meant(each) for each in values or ()),
            unescape=unescape,
        )
        with open_source(data_path(file)) as source, opened_store(store) as opened:
            found = import_votes(opened, name, source, reading, bad_rows=bad_rows)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        session.write_json(found.model_dump_json(indent=2))
        return
    from evenhand.cli.show_votes import show_imported

    show_imported(session.out(), found)


def _named(who: str | None) -> str | None:
    if who is not None and not who.strip():
        raise InputError("--who is empty; give a name")
    return who.strip() if who else None


def _meant(entry: str) -> tuple[str, str]:
    spelled, equals, verdict = entry.rpartition("=")
    if not equals or not spelled.strip():
        raise InputError(f"--value {entry!r} is not SPELLING=VERDICT; give e.g. --value 0=TIE")
    return spelled.strip(), verdict.strip()


@votes.command()
def export(
    name: RunArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="To end in .csv or .jsonl, or either with .gz; - for JSON lines."
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Write over a file that is there already.")
    ] = False,
    store: ropt.StoreAddress = None,
) -> None:
    """Write the votes on a run to a file, which evenhand votes import takes."""
    from evenhand.cli.amounts import counted
    from evenhand.cli.printing import printed
    from evenhand.cli.stores import opened_store
    from evenhand.trust.vote_export import export_votes, write_votes

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
    except EvenhandError as error:
        session.fail(error, as_json=False, of_pair=False)
    session.write_text(f"{counted(count, 'vote')} in {one_line(file)}")
