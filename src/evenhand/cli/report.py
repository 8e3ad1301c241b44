"""`evenhand report`: what a run says about its two sides, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.stores import opened_store
from evenhand.cli.terminal import one_line
from evenhand.errors import EvenhandError, InputError

if TYPE_CHECKING:
    from evenhand.pages.one_file import OneFile
    from evenhand.store import Store

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's name.")]
LatestOrNamed = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="The run's name. Default: the latest run."),
]
MaxInvalid = Annotated[
    float,
    typer.Option(
        "--max-invalid",
        help="Up to this share of pairs, those without a valid verdict count as half; beyond it "
        "they count against any claim.",
    ),
]
MaxSkipped = Annotated[
    float,
    typer.Option("--max-skipped", help="The same for rows that were skipped or have no partner."),
]
AllowOneOrder = Annotated[
    bool,
    typer.Option(
        "--allow-one-order",
        help="Conclude from pairs judged in one fixed order too, though position may decide them.",
    ),
]
SmallestEffect = Annotated[
    float | None,
    typer.Option(
        "--smallest-effect",
        help="The difference from 0.5 that matters, e.g. 0.02: says whether it is shown, ruled "
        "out or open.",
    ),
]
SideOption = Annotated[
    Literal["A", "B"],
    typer.Option("--side", help="Whose win rate it is: B, the new one, unless told otherwise."),
]
TiesOption = Annotated[
    Literal["half", "excluded", "wins"],
    typer.Option(
        "--ties",
        help="Ties count as half, are excluded, or only outright wins count.",
    ),
]


def report(
    name: LatestOrNamed = None,
    side: SideOption = "B",
    ties: TiesOption = "half",
    max_invalid: MaxInvalid = 0.01,
    max_skipped: MaxSkipped = 0.01,
    allow_one_order: AllowOneOrder = False,
    smallest_effect: SmallestEffect = None,
    level: Annotated[
        float, typer.Option("--level", help="How sure the intervals are, between 0 and 1.")
    ] = 0.95,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw it too, to a file.svg, file.png or file.csv."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write it too as one HTML file, with charts and pairs to look through.",
        ),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs",
            min=0,
            max=20_000,
            help="How many pairs the HTML file holds at most. Default: 20,000.",
        ),
    ] = None,
    locale: Annotated[
        Literal["en", "zh"] | None,
        typer.Option("--locale", help="The language of the HTML file. Default: en."),
    ] = None,
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Report what a run says: win rate with its interval, by criterion and tag, length, place."""
    from evenhand.report.conclusions import Limits, conclude

    written: OneFile | None = None
    try:
        for option, value in (("--pairs", pairs), ("--locale", locale)):
            if value is not None and html is None:
                raise InputError(f"{option} belongs to --html; leave it out")
        with opened_store(store) as opened:
            limits = Limits(
                max_invalid=max_invalid,
                max_skipped=max_skipped,
                allow_one_order=allow_one_order,
                smallest_effect=smallest_effect,
            )
            run = named_or_latest(opened, name)
            found = conclude(opened, run, side=side, ties=ties, level=level, limits=limits)
            if html is not None:
                from evenhand.pages.one_file import write_one_file
                from evenhand.pages.one_file_parts import usable_processes

                written = write_one_file(
                    opened,
                    found,
                    html,
                    pairs=20_000 if pairs is None else pairs,
                    language=locale or "en",
                    processes=usable_processes(),
                )
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
    if written is not None:
        session.write_text(f"\n{_told(written)}")


def named_or_latest(store: Store, name: str | None) -> str:
    """Which run it is, is said where it was not named, so that nobody takes it for another."""
    if name is not None:
        return name
    from evenhand.report.lookup import latest_run

    run = latest_run(store)
    session.err().print(f"latest run: {one_line(run.name)}", markup=False, highlight=False)
    return run.name


def _told(written: OneFile) -> str:
    held = f"{written.pairs:,} of {written.judged:,} judged pairs"
    if written.pairs == written.judged:
        held = "1 pair" if written.pairs == 1 else f"all {written.pairs:,} judged pairs"
    lines = [f"report in {one_line(str(written.path))}, with {held}"]
    if written.cut:
        pairs = "1 pair has" if written.cut == 1 else f"{written.cut:,} pairs have"
        lines.append(f"note  {pairs} texts too long for it, which are cut there")
    if written.undrawn:
        lines.append(f"note  without charts: {written.undrawn}")
    return "\n".join(lines)
