"""`evenhand jury`: several judges vote on each pair, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.report import SideOption, TiesOption
from evenhand.cli.terminal import one_line
from evenhand.errors import EvenhandError, InputError


def jury(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="The run, all of whose judges vote; more runs add their judges on the same pairs.",
        ),
    ],
    weights: Annotated[
        Literal["majority", "learned"] | None,
        typer.Option(
            "--weights",
            help="majority: each judge has one vote; learned: votes count by what labels have "
            "taught. Default: majority.",
        ),
    ] = None,
    quorum: Annotated[
        int | None,
        typer.Option(
            "--quorum",
            min=1,
            help="How many votes a verdict takes. Default: half of the judges for a majority, 1 "
            "with learned weights.",
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="NAME", help="Keep the jury, by a name or in a file.json."),
    ] = None,
    use: Annotated[
        str | None,
        typer.Option("--use", metavar="NAME", help="A jury that was kept, by name or file.json."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write every pair's votes and verdict as JSON lines.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Overwrite the files; with --use, let other judges sit than it was made for.",
        ),
    ] = False,
    side: SideOption = "B",
    ties: TiesOption = "half",
    level: Annotated[
        float, typer.Option("--level", help="How sure the intervals are, between 0 and 1.")
    ] = 0.95,
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Let several judges vote: their verdicts together, how right they are, who adds what.

    Exit codes: 0, and 2 for bad input (runs that share no pair, one judge alone, another jury than
    was kept) or where the store failed.
    """
    from evenhand.cli.stores import opened_store
    from evenhand.trust.jury import hold_jury
    from evenhand.trust.jury_rows import write_jury_rows
    from evenhand.trust.saved_juries import open_jury, save_jury

    try:
        if use is not None and weights is not None:
            raise InputError("--use brings its own weights; leave --weights out, or --use")
        saved = None if use is None else open_jury(use)
        with opened_store(store) as opened:
            sitting = hold_jury(
                opened,
                names,
                weights=weights or "majority",
                quorum=quorum,
                use=saved,
                forced=force,
                side=side,
                ties=ties,
                level=level,
            )
        if use is None and len(sitting.report.judges) == 1:
            raise InputError(
                f"run {names[0]!r} has one judge, which is no jury; name another run over the "
                "same pairs too"
            )
        kept = None if save is None else save_jury(sitting.saved, save, overwrite=force)
        rows = None
        if output is not None:
            rows = write_jury_rows(sitting, output, overwrite=force)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        session.write_json(sitting.report.model_dump_json(indent=2))
        return
    from evenhand.cli.show_jury import show_jury

    show_jury(session.out(), sitting.report)
    if kept is not None:
        session.write_text(f"\njury in {one_line(str(kept))}")
    if rows is not None:
        session.write_text(f"\n{rows:,} pairs in {one_line(str(output))}")
