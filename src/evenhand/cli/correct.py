"""`evenhand correct` draws pairs to label, too."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.analyses.registry import CORRECT
from evenhand.blocks import Block, Grid, Next, NoteLines, Remark, Sentence
from evenhand.cli import session
from evenhand.cli.analyses import AnalysisChoices, command_of
from evenhand.cli.options import parameter, with_parameters
from evenhand.cli.session import named_or_latest, opened_store
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.quantities import counted

if TYPE_CHECKING:
    from evenhand.trust.pair_draws import PairDraw

_LISTED_AT_MOST = 20
_corrected = command_of(CORRECT)
_DRAW = Annotated[
    int | None,
    typer.Option("--draw", min=1, metavar="N", help="Draw N pairs for people to label next."),
]
_OUTPUT = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="With --draw: write the pairs to a file.csv or file.jsonl to fill in, then import "
        "it with evenhand votes import.",
    ),
]
_FORCE = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]


class _Choices(AnalysisChoices):
    analysis = CORRECT


def _correct(*, draw: int | None, output: Path | None, force: bool, **given: Any) -> None:
    if draw is not None:
        _draw(draw, output, force=force, **given)
    elif output is not None or force:
        raise InputError(Message("command.belong_to_draw"))
    else:
        _corrected(**given)


def _draw(
    number: int,
    output: Path | None,
    *,
    force: bool,
    name: str | None,
    store: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    from evenhand.present.blocks import show_blocks
    from evenhand.trust.pair_draws import draw_pairs, write_draw

    options = _Choices(**given).options
    with opened_store(store) as opened:
        drawn = draw_pairs(opened, named_or_latest(opened, name), number, options)
        if output is not None:
            write_draw(opened, drawn, output, overwrite=force)
    if as_json:
        session.write_json(drawn)
    else:
        show_blocks(session.out(), session.err(), _blocks(drawn, output))


def _blocks(drawn: PairDraw, output: Path | None) -> Iterator[Block]:
    pairs = counted(len(drawn.pairs), "pair")
    code = "doubtful" if drawn.by_doubt else "evenly"
    yield Sentence(Message(f"correction.next_{code}", pairs=pairs), strong=True)
    if output is None:
        shown = drawn.pairs[:_LISTED_AT_MOST]
        columns = (Message("figure.pair"), Message("correction.chance"))
        yield Grid(columns, tuple((each.id, f"{each.chance:.4f}") for each in shown))
        if len(drawn.pairs) > len(shown):
            yield Remark(Message("figure.more", n=len(drawn.pairs) - len(shown)))
        yield Next(Message("correction.draw_to_file"))
    else:
        yield Sentence(Message("correction.saved", path=output))
        yield Next(Message("correction.label_drawn", run=drawn.run, path=output))
        yield Next(Message("correction.fill_in", run=drawn.run, path=output))
    if drawn.notes:
        yield NoteLines(drawn.notes)


correct = with_parameters(
    _correct,
    f"{CORRECT.summary}\n\n--draw says which pairs to label next.\n\n{CORRECT.about}",
    (
        *inspect.signature(_corrected).parameters.values(),
        parameter("draw", _DRAW, None),
        parameter("output", _OUTPUT, None),
        parameter("force", _FORCE, False),
    ),
)
