"""Blocks on a terminal. Prose is wrapped there and stays one line in a log; what to do next goes to
standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from evenhand.blocks import Blocks, Facts, Next, Ruled, Ruling, Sentence
from evenhand.present.terminal import one_line, print_line, show_facts

if TYPE_CHECKING:
    from rich.console import Console

_RULED: dict[Ruling, str] = {
    "pass": "bold green",
    "fail": "bold red",
    "undecided": "bold yellow",
}


def show_blocks(out: Console, err: Console, blocks: Blocks) -> None:
    from rich.text import Text

    for block in blocks:
        match block:
            case Sentence(text):
                print_line(out, Text(one_line(text)))
            case Ruled(ruling, text):
                line = Text.assemble((ruling, _RULED[ruling]), f"  {one_line(text)}")
                print_line(out, line)
            case Facts(rows):
                show_facts(out, ((name, one_line(fact)) for name, fact in rows), width=10)
            case Next(text):
                print_line(err, Text(f"next  {one_line(text)}"))
            case _ as never:
                assert_never(never)
