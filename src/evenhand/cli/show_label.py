"""Pairs as a person who votes on them sees them: nothing says whose they are or who judged what."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from evenhand.cli.amounts import counted, number
from evenhand.cli.show import plain
from evenhand.cli.terminal import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from evenhand.contract import Pair
    from evenhand.trust.labelling import Choice, Labelling

_SAID: dict[Choice, str] = {
    "first": "response 1 is better",
    "second": "response 2 is better",
    "tie": "a tie",
    "skip": "skipped",
}
_CHOSEN = {
    "random": "all pairs",
    "unlabelled": "pairs without a label or a vote of others",
    "inconsistent": "pairs on which a judge was inconsistent",
    "disagreements": "pairs on which judges disagree",
    "abstained": "pairs on which no judge's verdict stands",
    "drawn": "drawn by the file",
}
_LEAST_LINES = 4
# Lines of a screen that are not the texts of responses.
_FRAME_LINES = 16


def show_beginning(
    console: Console, labelling: Labelling, run: str, who: str, *, only: str
) -> None:
    from rich.text import Text

    size, voted = len(labelling.queue), labelling.voted
    console.print(
        Text.assemble(
            (f"labelling run {one_line(run)}", "bold"),
            f" as {one_line(who)}: {counted(size, 'pair')} ({_CHOSEN[only]}), ",
            f"{number(voted)} voted",
        )
    )
    if voted == size:
        console.print("nothing is left to vote on" if size else "there is nothing to vote on")
        return
    order = "the order is the draw's, the sides" if only == "drawn" else "the order and the sides"
    console.print(Text(f"{order} are random; every vote is stored at once", "dim"))


def show_question(console: Console, labelling: Labelling, pair: Pair, *, whole: bool) -> None:
    from rich.text import Text

    place = f"pair {number(labelling.voted + 1)} of {number(len(labelling.queue))}"
    console.print()
    console.rule(Text(place, "bold"), align="left")
    small = max(_LEAST_LINES, (console.height - _FRAME_LINES) // 4)
    large = max(_LEAST_LINES, (console.height - _FRAME_LINES) // 2)
    names = ", ".join(
        criterion.name + (f" ({criterion.description})" if criterion.description else "")
        for criterion in pair.criteria
    )
    for title, text, most in (
        ("judge by", one_line(names) or None, small),
        ("prompt", pair.prompt, small),
        ("context", pair.context, small),
        ("reference", pair.reference, small),
        ("response 1", pair.response_a, large),
        ("response 2", pair.response_b, large),
    ):
        if text is not None:
            console.print(Text(title, "bold cyan"))
            _show_text(console, text, most=None if whole else most)


def _show_text(console: Console, text: str, *, most: int | None) -> None:
    from rich.text import Text

    shown = plain(text)
    if not shown.text.strip():
        console.print(_dim("(empty)"))
        return
    if most is None:
        console.print(shown)
        return
    # No more than could fill the lines is wrapped: a text may have megabytes.
    lines = list(islice(shown.lines(console, console.width), most + 1))
    for line in lines[:most]:
        console.print(Text(line), soft_wrap=True)
    left = len(shown.text) - sum(map(len, lines[:most]))
    if len(lines) > most:
        console.print(_dim(f"… about {number(left)} characters more; w shows them"))


def show_keys(console: Console, *, ties: bool) -> None:
    keys = "1 or 2 is better, " + ("t tie, " if ties else "") + "s skip, u undo, w whole, q quit: "
    console.print(_dim(keys), end="", soft_wrap=True)


def show_chosen(console: Console, choice: Choice) -> None:
    tell(console, _SAID[choice])


def show_last(console: Console) -> None:
    console.print()
    console.print(_dim("that was the last one; u undo, any other key ends: "), end="")


def show_end(console: Console, labelling: Labelling) -> None:
    size, voted = len(labelling.queue), labelling.voted
    left = f"; the same command goes on with the other {number(size - voted)}"
    console.print(
        f"\n{number(voted)} of {counted(size, 'pair')} voted{left if voted < size else ''}"
    )


def tell(console: Console, said: str) -> None:
    console.print(_dim(said))


def _dim(said: str) -> Text:
    from rich.text import Text

    return Text(said, "dim")
