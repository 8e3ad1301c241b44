"""`evenhand gate`: pass or fail a build by a run's win rate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.report import RunArgument, SideOption, TiesOption
from evenhand.cli.stores import opened_store
from evenhand.cli.terminal import one_line
from evenhand.errors import EvenhandError, Status

if TYPE_CHECKING:
    from evenhand.report.gate import Gate, Ruling

_STATUS: dict[Ruling, int] = {
    "pass": Status.OK,
    "fail": Status.GATE_FAILED,
    "undecided": Status.UNDECIDED,
}
_STYLE: dict[Ruling, str] = {"pass": "bold green", "fail": "bold red", "undecided": "bold yellow"}


def gate(
    name: RunArgument,
    min_win_rate: Annotated[
        float,
        typer.Option("--min-win-rate", help="What the win rate has to be above, from 0 to 1."),
    ] = 0.5,
    alpha: Annotated[
        float, typer.Option("--alpha", help="The interval is at the level 1 - alpha.")
    ] = 0.05,
    side: SideOption = "B",
    ties: TiesOption = "half",
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write it as JUnit XML too.")
    ] = None,
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Pass (exit code 0) if a run's interval lies above a threshold, fail (1) if below, else
    undecided (6)."""
    from evenhand.report.gate import gate_run

    try:
        with opened_store(store) as opened:
            ruled = gate_run(
                opened, name, min_win_rate=min_win_rate, alpha=alpha, side=side, ties=ties
            )
        if junit is not None:
            from evenhand.report.junit import write_junit

            write_junit(ruled, junit)
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        session.write_json(ruled.model_dump_json(indent=2))
    else:
        _show(ruled)
    raise typer.Exit(_STATUS[ruled.ruling])


def _show(ruled: Gate) -> None:
    from rich.text import Text

    console = session.out()
    lines = [(check.ruling, check.line) for check in ruled.checks]
    for ruling, line in lines or [(ruled.ruling, ruled.reason or "")]:
        # A line of a log stays a line.
        told = Text.assemble((ruling, _STYLE[ruling]), f"  {one_line(line)}")
        console.print(told, soft_wrap=True)
    if len(lines) > 1:
        passed = sum(ruling == "pass" for ruling, _ in lines)
        whole = f"  all in all: {passed} of {len(lines)} pass"
        console.print(Text.assemble((ruled.ruling, _STYLE[ruled.ruling]), whole))
