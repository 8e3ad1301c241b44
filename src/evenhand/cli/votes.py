"""`evenhand votes`: people's votes on a run, summarised, imported and exported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenhand import formats
from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.command_tree import CommandTree
from evenhand.cli.figures import counted, counted_share, number, percent
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.present.terminal import (
    one_line,
    print_table,
    show_facts,
    show_notes,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.stats.agreement.raters import Krippendorff
    from evenhand.trust.vote_files import ImportedVotes
    from evenhand.trust.votes import VotesSummary


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


@votes.command()
def show(
    name: opt.RunArgument,
    level: opt.Level = 0.95,
    seed: Annotated[int, typer.Option("--seed", help="Seed for alpha's interval.")] = 0,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show how many people voted, how much they agree and the majority."""
    from evenhand.cli.session import opened_store
    from evenhand.trust.votes import summarise_votes

    with opened_store(store) as opened:
        report = summarise_votes(opened, name, level=level, seed=seed)
    session.present(report, show_votes, as_json=as_json)


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
    from evenhand.data import open_source
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


# People's votes as a person reads them.

_PEOPLE_AT_MOST = 20


def show_votes(console: Console, report: VotesSummary) -> None:
    from rich.text import Text

    console.print(Text(f"votes on run {one_line(report.run)}", "bold"))
    show_facts(console, _lines(report), width=10)
    if report.people:
        console.print()
        _show_people(console, report)


def _lines(report: VotesSummary) -> Iterator[tuple[str, str]]:
    if not report.people:
        pairs = counted(report.pairs, "pair")
        yield (
            "votes",
            (f"none yet on {pairs}; vote with evenhand label, or use evenhand votes import"),
        )
        return
    people = "1 person" if len(report.people) == 1 else f"{number(len(report.people))} people"
    voted = f"{number(report.voted_pairs)} of {counted(report.pairs, 'pair')}"
    yield (
        "votes",
        f"{number(report.votes)} by {people} on {voted}, skipped {number(report.skipped)}",
    )
    spread = ", ".join(
        f"{number(pairs)} by {people_count}"
        for people_count, pairs in enumerate(report.people_a_pair, 1)
        if pairs
    )
    if len(report.people_a_pair) > 1:
        yield "people", f"people per pair: {spread}"
    counts = report.majority
    yield (
        "majority",
        f"A {number(counts.a)}, B {number(counts.b)}, ties {number(counts.tie)}, split "
        f"{number(counts.none)}",
    )
    if report.with_label.of:
        yield (
            "label",
            f"majority agrees with the data's label: {counted_share(report.with_label)}",
        )
    agreement = report.agreement
    yield "agreement", f"two people agree: {counted_share(agreement.agreement)}"
    if agreement.units:
        yield "", f"all people agree: {counted_share(agreement.unanimous)}"
    yield "alpha", _alpha(agreement.alpha)
    yield "source", _counts(report.by_origin)
    yield "drawn", _counts(report.by_draw)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {number(count)}" for name, count in counts.items())


def _alpha(alpha: Krippendorff) -> str:
    if alpha.alpha is None:
        return alpha.reason or "not enough data"
    shown = f"Krippendorff's alpha {alpha.alpha:.2f}"
    if alpha.low is None or alpha.high is None:
        return f"{shown} ({alpha.reason or 'no interval'})"
    of = counted(alpha.units, "pair")
    return f"{shown} ({alpha.low:.2f} to {alpha.high:.2f}, at {percent(alpha.level)}), on {of}"


def _show_people(console: Console, report: VotesSummary) -> None:
    from rich.text import Text

    same = "agrees with others"
    table = table_of("who", "votes", "skipped", same, left=("who", same))
    for person in report.people[:_PEOPLE_AT_MOST]:
        table.add_row(
            Text(one_line(person.who)),
            number(person.votes),
            number(person.skipped),
            counted_share(person.agreement) if person.agreement.of else "",
        )
    print_table(console, table)
    if len(report.people) > _PEOPLE_AT_MOST:
        left = number(len(report.people) - _PEOPLE_AT_MOST)
        console.print(Text(f"and {left} more in --json", "dim"))


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
