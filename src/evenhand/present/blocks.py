"""Blocks on a terminal. Prose is wrapped there and stays one line in a log; what to do next, and
notes, go to standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from evenhand.blocks import (
    Blocks,
    Cases,
    Facts,
    Grid,
    Next,
    Remarks,
    Ruled,
    Ruling,
    Sentence,
    Title,
    Tone,
    Words,
)
from evenhand.present.terminal import (
    one_line,
    print_line,
    print_where_it_fits,
    show_facts,
    show_hanging,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_STYLE: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "good": "green",
    "bad": "red",
    "open": "yellow",
    "quiet": "dim",
}
_RULED: dict[Ruling, str] = {
    "pass": "bold green",
    "fail": "bold red",
    "undecided": "bold yellow",
}


def show_blocks(out: Console, err: Console, blocks: Blocks) -> None:
    from rich.text import Text

    for block in blocks:
        match block:
            case Sentence(text, tone):
                print_line(out, Text(one_line(text), _STYLE[tone]))
            case Title(text):
                out.print()
                out.print(Text(one_line(text), "bold"))
            case Ruled(ruling, text):
                line = Text.assemble((ruling, _RULED[ruling]), f"  {one_line(text)}")
                print_line(out, line)
            case Facts(rows, width):
                show_facts(out, ((_plain(name), _words(fact)) for name, fact in rows), width=width)
            case Grid():
                out.print()
                _show_table(out, block)
            case Cases(rows):
                for case, quoted in rows:
                    show_hanging(out, Text("  •"), Text(one_line(case)))
                    for place, text in quoted:
                        shown = Text(f"“{one_line(text)}”", "dim")
                        show_hanging(out, Text(f"      {place}"), shown)
            case Remarks(texts):
                for note in texts:
                    print_line(err, Text.assemble(("note  ", "yellow"), one_line(note)))
            case Next(text):
                print_line(err, Text(f"next  {one_line(text)}"))
            case _ as never:
                assert_never(never)


def _words(words: Words) -> Text:
    from rich.text import Text

    if isinstance(words, str):
        return Text(one_line(words))
    return Text.assemble(*((one_line(span.text), _STYLE[span.tone]) for span in words))


def _plain(words: Words) -> str:
    return words if isinstance(words, str) else "".join(span.text for span in words)


def _show_table(out: Console, block: Grid) -> None:
    """Without its least columns where it is too wide with them."""
    for left_out in ((), block.least):
        kept = [place for place, name in enumerate(block.columns) if name not in left_out]
        columns = [block.columns[place] for place in kept]
        table = table_of(*columns, left=block.names)
        for number, row in enumerate(block.rows, start=1):
            last = block.total and number == len(block.rows)
            table.add_row(*(row[place] for place in kept), style="bold" if last else "")
        if print_where_it_fits(out, table):
            return
    out.print(table)
