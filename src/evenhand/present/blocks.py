"""Blocks on a terminal and as Markdown. Prose wraps on a terminal and stays one line in a log;
what to do next goes to standard error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

from evenhand.blocks import (
    Block,
    Blocks,
    Facts,
    Finding,
    Grid,
    Next,
    NoteLines,
    Rate,
    Rates,
    Remark,
    Ruled,
    Ruling,
    Sentence,
    Title,
    Tone,
)
from evenhand.errors import visible
from evenhand.messages import Language, Message, render
from evenhand.messages.numbers import number
from evenhand.present.terminal import (
    Prose,
    one_line,
    plain,
    print_line,
    print_table,
    print_where_it_fits,
    show_facts,
    show_hanging,
    show_notes,
    table_of,
)
from evenhand.quantities import rate_with_interval

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

_RULED: dict[Ruling, str] = {
    "pass": "bold green",
    "fail": "bold red",
    "undecided": "bold yellow",
}
_TONES: dict[Tone, str] = {"good": "green", "bad": "red", "unclear": "yellow", "plain": "dim"}
_LEAST_NAME = 10
_WRAPPED_AT_ONCE = 4_000  # Rich takes seconds for a reasoning of a megabyte


def show_blocks(out: Console, err: Console, blocks: Blocks) -> None:
    before: Block | None = None
    for block in blocks:
        if before is not None and _apart(before, block):
            out.print()
        _show(out, err, block)
        before = block


def _apart(before: Block, block: Block) -> bool:
    """Tables and headings have air around them."""
    if isinstance(before, Title):
        return False
    if isinstance(before, Facts):
        return isinstance(block, Title | Grid | Rates | Facts | NoteLines)
    return isinstance(block, Title | Grid | Rates) or (
        isinstance(before, Grid | Rates) and not isinstance(block, Next)
    )


def _show(out: Console, err: Console, block: Block) -> None:
    from rich.text import Text

    match block:
        case Sentence(text, strong):
            print_line(out, Text(one_line(text), "bold" if strong else ""))
        case Title(text):
            out.print(Text(one_line(text), "bold"))
        case Ruled(ruling, text):
            line = Text.assemble((ruling, _RULED[ruling]), f"  {one_line(text)}")
            print_line(out, line)
        case Facts(rows):
            width = max(_LEAST_NAME, *(len(name) for name, _ in rows)) if rows else 0
            show_facts(out, ((one_line(name), _fact(fact)) for name, fact in rows), width=width)
        case Finding(label, text, tone):
            lead = Text(f"{one_line(label):<{_LEAST_NAME}}", _TONES[tone])
            show_hanging(out, lead, Text(one_line(text)))
        case Grid():
            print_table(out, _table(block))
        case Rates():
            show_rates(out, block)
        case NoteLines(texts):
            show_notes(out, texts)
        case Remark(text):
            print_line(out, Text(one_line(text), "dim"))
        case Next(text):
            print_line(err, Text(f"next  {one_line(text)}"))
        case _ as never:
            assert_never(never)


def _fact(fact: str | Rate) -> str | Text | Prose:
    from rich.text import Text

    if isinstance(fact, Rate):
        return Text.assemble("0 ", (_drawn(fact), _TONES[fact.tone]), " 1")
    text = one_line(fact)
    return text if len(text) <= _WRAPPED_AT_ONCE else plain(text)


def _table(block: Grid) -> RichTable:
    from rich.text import Text

    heads = [_on_two_lines(each) for each in block.columns]
    table = table_of(*heads, left=[heads[place] for place in block.left])
    for place, row in enumerate(block.rows):
        heading = len(row) < len(block.columns)
        style = "bold" if heading or place in block.strong else ""
        table.add_row(*(Text(one_line(cell)) for cell in row), style=style)
    return table


_LONGEST_HEADING = 14


def _on_two_lines(heading: str) -> str:
    """A long heading is broken near its middle: columns of numbers are narrow."""
    spaces = [place for place, char in enumerate(heading) if char == " "]
    if len(heading) <= _LONGEST_HEADING or not spaces:
        return heading
    middle = min(spaces, key=lambda place: abs(place - len(heading) / 2))
    return f"{heading[:middle]}\n{heading[middle + 1 :]}"


# Rates, drawn where there is room.

_BAR_WIDTH = 25  # odd, so that one half has a place of its own
_HALF = _BAR_WIDTH // 2
# Above a column of bars.
SCALE = f"0{'0.5':^{_BAR_WIDTH - 2}}1"


def bar(value: float, low: float, high: float) -> str:
    """The interval on a line from 0 to 1. It covers the mark at one half if it includes that."""
    cells = [" "] * _BAR_WIDTH
    cells[_HALF] = "|"
    for cell in range(_cell(low), _cell(high) + 1):
        cells[cell] = "━"
    cells[_cell(value)] = "•"
    return "".join(cells)


def _cell(value: float) -> int:
    cell = round(value * (_BAR_WIDTH - 1))
    if cell == _HALF and value != 0.5:
        return cell + (1 if value > 0.5 else -1)
    return cell


def show_rates(console: Console, block: Rates) -> None:
    """With bars, without them, or a line for each, as wide as there is room for."""
    for bars in (True, False):
        if print_where_it_fits(console, _rates(block, bars=bars)):
            return
    for row in (Rate(block.titles), *block.rows):
        _stack(console, block, row)


def _rates(block: Rates, *, bars: bool) -> RichTable:
    from rich.text import Text

    left = (*map(one_line, (*block.titles, block.value)), *([SCALE] if bars else []))
    table = table_of(*left, *block.counted, left=left)
    for row in block.rows:
        if row.is_heading:
            table.add_row(*(Text(one_line(name), "bold") for name in row.names))
            continue
        cells = [Text(one_line(name)) for name in row.names]
        cells.append(Text(numbers_of(row), "" if _known(row) else "dim"))
        if bars:
            cells.append(Text(_drawn(row), _TONES[row.tone]))
        table.add_row(*cells, *map(number, row.counts))
    return table


def _known(row: Rate) -> bool:
    return row.rate is not None and row.low is not None and row.high is not None


def numbers_of(row: Rate, language: Language = "en") -> str:
    text = one_line(render(row.text, language))
    if row.rate is None or row.low is None or row.high is None:
        return text
    known = render(rate_with_interval(row.rate, row.low, row.high), language)
    return f"{known}, {text}" if text else known


def _drawn(row: Rate) -> str:
    if row.rate is None or row.low is None or row.high is None:
        return ""
    return bar(row.rate, row.low, row.high)


def _stack(console: Console, block: Rates, row: Rate) -> None:
    from rich.padding import Padding
    from rich.text import Text

    named = one_line(", ".join(row.names))
    if row.is_heading:
        console.print(Text(named, "bold"))
        return
    console.print(Text(f"{named}  {numbers_of(row)}"))
    counts = zip(block.counted, row.counts, strict=False)
    if counted := ", ".join(f"{name} {number(count)}" for name, count in counts):
        console.print(Padding(Text(counted), (0, 0, 0, 2)))


# Markdown, for agents.


def markdown(blocks: Blocks, language: Language = "en") -> str:
    """Paragraphs, lists and tables, with every text on one line."""
    return "\n\n".join("\n".join(_lines(block, language)) for block in blocks)


_ACTIVE = re.compile(r"[\\`*_\[\]<>|#~]")
_LONGEST_TEXT = 400


def _inert(text: str) -> str:
    """Names and answers come from data and may be hostile: no sign in them is Markdown, and none
    of them fills a page. Our own sentences stay as they are."""
    if isinstance(text, Message):
        return text.with_texts(_inert)
    short = text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
    return _ACTIVE.sub(r"\\\g<0>", visible(short))


def _lines(block: Block, language: Language) -> Iterator[str]:
    def say(text: str) -> str:
        return one_line(render(_inert(text), language))

    match block:
        case Sentence(text, strong):
            yield f"**{say(text)}**" if strong else say(text)
        case Title(text):
            yield f"## {say(text)}"
        case Ruled(ruling, text):
            yield f"**{ruling}** {say(text)}"
        case Facts(rows):
            yield from (
                f"- {say(name)}: {say(fact)}" if name else f"  {say(fact)}"
                for name, fact in rows
                if not isinstance(fact, Rate)
            )
        case Finding(label, text, _):
            yield f"- {say(label)}: {say(text)}"
        case Grid(columns, rows, left, _):
            yield from _grid(
                [say(each) for each in columns],
                [[say(cell) for cell in row] for row in rows],
                [place in left for place in range(len(columns))],
            )
        case Rates(titles, value, counted, rates):
            heads = [say(each) for each in (*titles, value, *counted)]
            cells = [
                [
                    *map(say, each.names),
                    *([] if each.is_heading else [_inert(numbers_of(each, language))]),
                    *map(number, each.counts),
                ]
                for each in rates
            ]
            yield from _grid(heads, cells, [place <= len(titles) for place in range(len(heads))])
        case NoteLines(texts):
            yield from (f"> {say(text)}" for text in texts)
        case Remark(text) | Next(text):
            yield say(text)
        case _ as never:
            assert_never(never)


def _grid(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[bool]
) -> Iterator[str]:
    def line(cells: Sequence[str]) -> str:
        whole = [*cells, *[""] * (len(heads) - len(cells))]
        return f"| {' | '.join(whole)} |"

    yield line(heads)
    yield f"|{'|'.join('---' if text else '---:' for text in left)}|"
    yield from map(line, rows)
