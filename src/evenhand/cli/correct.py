"""`evenhand correct`: the win rate in people's eyes, and which pairs people should label next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from evenhand.cli import options as opt
from evenhand.cli import run_options as ropt
from evenhand.cli import session
from evenhand.cli.report import RunArgument, SideOption
from evenhand.errors import EvenhandError, InputError


def correct(
    name: RunArgument,
    judge: Annotated[
        str | None,
        typer.Option("--judge", "-j", help="Whose verdicts, where the run has several judges."),
    ] = None,
    jury: Annotated[
        str | None,
        typer.Option(
            "--jury",
            metavar="NAME",
            help="The verdicts of all judges of the run together: majority, or a jury that was "
            "kept by evenhand jury --save and not learned on this run.",
        ),
    ] = None,
    side: SideOption = "B",
    level: Annotated[
        float, typer.Option("--level", help="How sure the intervals are, between 0 and 1.")
    ] = 0.95,
    labels_are: Annotated[
        Literal["random"] | None,
        typer.Option(
            "--labels-are",
            help="random: your word that the data's labels, and votes that do not say, are of "
            "pairs drawn at random.",
        ),
    ] = None,
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
    store: ropt.StoreAddress = None,
    as_json: opt.AsJson = False,
) -> None:
    """Correct a win rate for the judge's errors by people's labels; --draw says what to label.

    Exit codes: 0, and 2 for bad input, which labels are that were not drawn by a known chance, or
    where the store failed.
    """
    from evenhand.cli.stores import opened_store

    try:
        if draw is None and (output is not None or force):
            raise InputError("--output and --force go with --draw; give it too, or leave them out")
        with opened_store(store) as opened:
            if draw is not None:
                from evenhand.trust.label_draw import draw_pairs, write_draw

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

                found = correct_run(
                    opened,
                    name,
                    judge=judge,
                    jury=jury,
                    side=side,
                    level=level,
                    labels_are_random=labels_are is not None,
                    seed=seed,
                )
    except EvenhandError as error:
        session.fail(error, as_json=as_json, of_pair=False)
    if as_json:
        told = found if draw is None else drawn
        session.write_json(told.model_dump_json(indent=2))
        return
    from evenhand.cli.show_correction import show_corrections, show_draw

    if draw is None:
        show_corrections(session.out(), found)
    else:
        show_draw(session.out(), drawn, output)
