"""`evenhand correct`: the win rate corrected by people's labels, and which pairs to label next."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as opt
from evenhand.cli import session
from evenhand.cli.figures import SCALE, bar, counted, interval, number, percent
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.messages.numbers import rate
from evenhand.present.terminal import (
    one_line,
    print_table,
    show_hanging,
    show_notes,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.stats.correction.corrected_rate import RateEstimate
    from evenhand.trust.correction import Correction, Corrections
    from evenhand.trust.pair_draws import PairDraw


def correct(
    name: opt.RunArgument,
    judge: Annotated[
        str | None,
        typer.Option("--judge", "-j", help="The judge, if the run has several."),
    ] = None,
    jury: Annotated[
        str | None,
        typer.Option(
            "--jury",
            metavar="NAME",
            help="Combine all judges of the run: plurality, majority, or a jury saved with "
            "evenhand jury --save and not learned on this run.",
        ),
    ] = None,
    side: opt.SideOption = "B",
    level: opt.Level = 0.95,
    labels_are: opt.LabelsAre = None,
    draw: Annotated[
        int | None,
        typer.Option("--draw", min=1, metavar="N", help="Draw N pairs for people to label next."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed for the draw.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="With --draw: write the pairs to a file.csv or file.jsonl to fill in, then "
            "import it with evenhand votes import.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    store: opt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Correct a win rate for judge errors, using human labels.

    --draw says which pairs to label next.

    Exit codes: 0 success, 2 bad input (such as labels with unknown sampling) or a store error.
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
    "with known chances": "drawn and weighted with known probabilities",
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
    title = f"{own.model or report.side} vs {own.against or other}"
    names = (one_line(title), "win rate", SCALE)
    table = table_of(*names, "pairs", left=names)
    parts = (
        ("corrected", own.corrected),
        ("judge alone, uncorrected", own.uncorrected),
        ("people alone", own.people_only),
    )
    for name, part in parts:
        table.add_row(Text(name), *_rate_and_bar(part), number(part.n))
    console.print()
    print_table(console, table)
    if own.judge_weight is not None and own.gain is not None:
        line = (
            f"{percent(own.level)} intervals; weight of the judge (λ) {own.judge_weight:.2f}; "
            f"as precise as {own.gain:.1f} times as many labels alone"
        )
        session.print_line(console, Text(line))
    if own.judge_unread:
        unread = counted(own.judge_unread, "pair")
        console.print(Text(f"{unread} without a verdict from the judge: predicted as half"))


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
        else "all with the same probability"
    )
    pairs = counted(len(drawn.pairs), "pair")
    console.print(Text(f"{pairs} to label next, {how}", "bold"))
    if output is None:
        for own in drawn.pairs[:_LISTED_AT_MOST]:
            console.print(
                Text(f"  {one_line(own.id)}  probability {own.chance:.4f}"), soft_wrap=True
            )
        if len(drawn.pairs) > _LISTED_AT_MOST:
            left = number(len(drawn.pairs) - _LISTED_AT_MOST)
            console.print(Text(f"  and {left} more", "dim"))
        session.print_line(console, Text("write them to a file with --output FILE", "dim"))
    else:
        where, run = one_line(str(output)), one_line(drawn.run)
        lines = (
            f"saved to {where}; label them in the terminal: evenhand label {run} --drawn {where}",
            "or fill in who and verdict (A, B, TIE or skipped) from the top, then "
            f"evenhand votes import {run} {where}",
        )
        for line in lines:
            console.print(Text(line), soft_wrap=True)
    show_notes(console, drawn.notes)
