"""`evenhand report`: what a run says about its two sides, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.stores import opened_store
from evenhand.cli.terminal import one_line
from evenhand.errors import EvenhandError

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's name.")]
SideOption = Annotated[
    Literal["A", "B"],
    typer.Option("--side", help="Whose win rate it is: B, the new one, unless told otherwise."),
]
TiesOption = Annotated[
    Literal["half", "excluded", "wins"],
    typer.Option(
        "--ties",
        help="Ties and inconsistent pairs count as half, are excluded, or wins alone count.",
    ),
]


def report(
    name: RunArgument,
    side: SideOption = "B",
    ties: TiesOption = "half",
    level: Annotated[
        float, typer.Option("--level", help="How sure the intervals are, between 0 and 1.")
    ] = 0.95,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw it too, to a file.svg or file.png."),
    ] = None,
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Report what a run says: win rate with its interval, by criterion and tag, length, place."""
    from evenhand.report.conclusions import conclude

    try:
        with opened_store(store) as opened:
            found = conclude(opened, name, side=side, ties=ties, level=level)
        if plot is not None:
            from evenhand.report.charts import write_report_chart

            write_report_chart(found, plot)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        session.write_json(found.model_dump_json(indent=2))
        return
    from evenhand.cli.show_report import show_report

    show_report(session.out(), found)
    if plot is not None:
        session.write_text(f"\nchart in {one_line(str(plot))}")
