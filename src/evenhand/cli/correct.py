"""`evenhand correct`: the win rate corrected by people's labels, and which pairs to label next."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import SCALE, bar, counted, interval, number, percent, rate
from evenhand.cli.terminal import (
    one_line,
    print_table,
    show_hanging,
    show_notes,
    table_of,
)
from evenhand.errors import InputError
from evenhand.messages import Message

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.stats.correction.corrected_rate import RateEstimate
    from evenhand.trust.correction import Correction, Corrections
    from evenhand.trust.pair_draws import PairDraw


def correct(
    name: opt.RunArgument,
    judge: Annotated[
        str | None,
        typer.Option("--judge", "-j", help="Whose verdicts, where the run has several judges."),
    ] = None,
    jury: Annotated[
        str | None,
        typer.Option(
            "--jury",
            metavar="NAME",
            help="The verdicts of all judges of the run together: plurality, majority, or a jury "
            "that was kept by evenhand jury --save and not learned on this run.",
        ),
    ] = None,
    side: opt.SideOption = "B",
    level: opt.Level = 0.95,
    labels_are: opt.LabelsAre = None,
    draw: Annotated[
        int | None,
        typer.Option(
            "--draw", min=1, metavar="N", help="Say which N pairs people should label next."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the draw.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="With --draw: write the pairs to a file.csv or file.jsonl, to be filled in and "
            "brought back by evenhand votes import.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Correct a win rate for the judge's errors by people's labels.

    --draw says which pairs to label next.

    Exit codes: 0, and 2 for bad input, which labels are that were not drawn by a known chance, or
    where the store failed.
    """
    from evenhand.cli.session import opened_store

    if draw is None and (output is not None or force):
        raise InputError(Message("command.belong_to_draw"))
    with opened_store(store) as opened:
        if draw is not None:
            from evenhand.trust.pair_draws import draw_pairs, write_draw

            drawn = draw_pairs(
                opened,
                name,
                draw,
                judge=judge,
                jury=jury,
                seed=seed,
                labels_are_random=labels_are is not None,
            )
            if output is not None:
                write_draw(opened, drawn, output, overwrite=force)
        else:
            from evenhand.trust.correction import correct_run

            corrected = correct_run(
                opened,
                name,
                judge=judge,
                jury=jury,
                side=side,
                level=level,
                labels_are_random=labels_are is not None,
                seed=seed,
            )
    if draw is None:
        session.present(corrected, show_corrections, as_json=as_json)
    else:
        session.present(drawn, partial(show_draw, output=output), as_json=as_json)


# Corrected win rates as a person reads them, and pairs to label.

_DRAWN = {
    "every pair": "every pair has a label",
    "at random": "drawn evenly from all pairs",
    "with known chances": "drawn with known chances, by which they weigh",
}
_LISTED_AT_MOST = 20


def show_corrections(console: Console, report: Corrections) -> None:
    from rich.text import Text

    console.print(Text(one_line(f"run {report.run}, judged by {report.judge}"), "bold"))
    labelled = f"{number(report.labelled)} of {counted(report.pairs, 'pair')} labelled"
    people = f" by {counted(report.people, 'person', 'people')}" if report.people else ""
    session.print_line(console, Text(f"{labelled}{people}; {_DRAWN[report.drawn]}"))
    for left in report.left_out:
        labels = f"{counted(left.labels, 'label')} on {counted(left.pairs, 'pair')}"
        lead = Text("left out ", "dim")
        show_hanging(console, lead, Text(one_line(f"{labels}: {left.reason}")))
    for each in report.corrections:
        _show_correction(console, report, each)
    show_notes(console, report.notes, apart=True)


def _show_correction(console: Console, report: Corrections, own: Correction) -> None:
    from rich.text import Text

    other = "B" if report.side == "A" else "A"
    title = f"{own.model or report.side} against {own.against or other}"
    names = (one_line(title), "win rate", SCALE)
    table = table_of(*names, "pairs", left=names)
    parts = (
        ("corrected", own.corrected),
        ("uncorrected, the judge alone", own.uncorrected),
        ("people alone", own.people_only),
    )
    for name, part in parts:
        table.add_row(Text(name), *_rate_and_bar(part), number(part.n))
    console.print()
    print_table(console, table)
    if own.judge_weight is not None and own.gain is not None:
        line = (
            f"{percent(own.level)} intervals; weight of the judge (λ) {own.judge_weight:.2f}; the "
            f"labels are worth {own.gain:.1f} times as many of people alone"
        )
        session.print_line(console, Text(line))
    if own.judge_unread:
        unread = counted(own.judge_unread, "pair")
        console.print(Text(f"{unread} without a verdict of the judge: half in the prediction"))


def _rate_and_bar(part: RateEstimate) -> tuple[str, str]:
    if part.rate is None or part.low is None or part.high is None:
        return part.reason or "not enough data", ""
    shown = f"{rate(part.rate)} ({interval(part.low, part.high)})"
    return shown, bar(part.rate, part.low, part.high)


def show_draw(console: Console, drawn: PairDraw, *, output: Path | None) -> None:
    from rich.text import Text

    how = (
        "doubtful ones more often, by the judge's confidence"
        if drawn.by_doubt
        else "all with the same chance"
    )
    pairs = counted(len(drawn.pairs), "pair")
    console.print(Text(f"{pairs} to label next, {how}", "bold"))
    if output is None:
        for own in drawn.pairs[:_LISTED_AT_MOST]:
            console.print(Text(f"  {one_line(own.id)}  chance {own.chance:.4f}"), soft_wrap=True)
        if len(drawn.pairs) > _LISTED_AT_MOST:
            left = number(len(drawn.pairs) - _LISTED_AT_MOST)
            console.print(Text(f"  and {left} more", "dim"))
        session.print_line(console, Text("--output FILE writes them, to be labelled", "dim"))
    else:
        where, run = one_line(str(output)), one_line(drawn.run)
        lines = (
            f"in {where}; evenhand label {run} --drawn {where} asks in the terminal",
            "or fill in who and verdict (A, B, TIE or skipped) from the top, then "
            f"evenhand votes import {run} {where}",
        )
        for line in lines:
            console.print(Text(line), soft_wrap=True)
    show_notes(console, drawn.notes)
