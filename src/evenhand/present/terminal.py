"""Text on a terminal: what it says without what it would do, wrapped in linear time; tables whose
lines stay whole in a pipe; exports on standard output.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, cast

from evenhand.errors import InputError
from evenhand.messages import Message

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.measure import Measurement
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

    from evenhand.judges.redaction import Redactor
    from evenhand.report.export import Format


# CSI, whole OSC and other string sequences, two-character escapes; 7-bit and 8-bit forms. A string
# sequence without its end loses only its beginning: it must not hide the text that follows.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])"
    "[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]?"
)
_KEPT = frozenset("\n\t")
# Joiners build letters and emoji; every other invisible format character only misleads.
_JOINERS = frozenset("\u200c\u200d")

# Our own signs, for a terminal or a pipe that takes ASCII only.
_IN_ASCII = {
    "…": "...",
    "•": "*",
    "·": "-",
    "–": "-",
    "─": "-",
    "━": "-",
    "✓": "+",
    "✗": "x",
}
PLAIN_SIGNS = "evenhand-plain-signs"
_LINES_AT_ONCE = 1000
_LONGEST_IN_A_GRID = 100_000
_PIECE = 4_000  # characters that are wrapped at once


def without_keys(text: str) -> str:
    """A server may say our own key back to us; what was stored before that was seen to may too."""
    from evenhand.judges.redaction import secrets_in

    return _redactor(tuple(secrets_in(os.environ))).cut(text)


@lru_cache(maxsize=1)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    from evenhand.judges.redaction import Redactor

    # Whole and as they are: a part of one may be a part of the user's own texts and paths.
    return Redactor(others=secrets)


def clean(text: str) -> str:
    """Without escape sequences, control characters, invisible formatting, and keys."""
    text = without_keys(text).replace("\r\n", "\n").replace("\r", "\n")
    text = _SEQUENCE.sub("", text)
    return "".join(c for c in text if _shows(c))


# What build servers take for a command: GitHub a line that begins with two colons, and anywhere in
# a line, as Azure does, two signs with a bracket. (GitLab's need an escape sequence.)
_COMMAND = re.compile(r"^[^\S\n]*+:(?=:)|#(?=#(?:vso)?\[)", re.MULTILINE | re.IGNORECASE)


def without_commands(text: str) -> str:
    """Of whole lines as they are written; wrapping may have put anything at their beginning."""
    return _COMMAND.sub(r"\g<0> ", text)


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _shows(char: str) -> bool:
    if char in _KEPT or char in _JOINERS:
        return True
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def escape(json_text: str) -> str:
    """The same JSON, with every character that a terminal might act upon written as \\uXXXX."""
    json_text = _COMMAND.sub(lambda found: found[0][:-1] + _escaped(found[0][-1]), json_text)
    if json_text.isascii() and "\x7f" not in json_text:
        return json_text
    return "".join(c if _harmless(c) else _escaped(c) for c in json_text)


def _harmless(char: str) -> bool:
    return char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def register_plain_signs() -> str:
    """An error handler for encoders: our signs in ASCII, anything else as its escape."""
    codecs.register_error(PLAIN_SIGNS, _plain_signs)
    return PLAIN_SIGNS


def _plain_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    shown = (
        _IN_ASCII.get(char) or char.encode("ascii", "backslashreplace").decode() for char in missing
    )
    return "".join(shown), error.end


def plain(text: str, *, indent: int = 0) -> Prose:
    """Judged or judge-written text: shown as it reads, never as markup or control sequence."""
    return Prose(clean(text).strip("\n"), indent)


class Prose:
    """A text that wraps in time linear in its length: Rich wraps a whole one at once, which takes
    it 16 s for 2 MB. Pieces are wrapped, and a piece's last line goes on in the next."""

    def __init__(self, text: str, indent: int = 0) -> None:
        self.text = text
        self.indent = indent

    def lines(self, console: Console, width: int) -> Iterator[str]:
        from rich.cells import cell_len
        from rich.text import Text

        for line in self.text.expandtabs(8).split("\n"):
            if len(line) <= width and cell_len(line) <= width:
                yield line
                continue
            piece = max(_PIECE, 2 * width)
            begun, left = 0, ""
            while begun < len(line):
                taken = left + line[begun : begun + piece]
                begun += piece
                *whole, left = (
                    each.plain
                    for each in Text(taken).wrap(console, width, overflow="fold", no_wrap=False)
                )
                # What is cut off at a line's end is space, and the next piece may go on with it.
                if begun < len(line) and taken.endswith(" ") and not left.endswith(" "):
                    left += " "
                yield from whole
            yield left

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        from rich.segment import Segment

        # Many lines in one segment: Rich takes 10 s for a million segments in its own padding.
        lead = " " * self.indent
        lines = self.lines(console, max(1, options.max_width - self.indent))
        while some := list(islice(lines, _LINES_AT_ONCE)):
            yield Segment("\n".join([lead + line for line in some]))
            yield Segment.line()

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.cells import cell_len
        from rich.measure import Measurement

        longest = max(map(cell_len, self.text.expandtabs(8).split("\n")), default=0) + self.indent
        return Measurement(min(longest, 1), min(longest, options.max_width))


def print_line(console: Console, text: Text) -> None:
    """Prose of one line: wrapped between words on a terminal, and in a log or a pipe still a line.

    What is there to be pasted is printed with `soft_wrap` instead, which breaks nothing."""
    console.print(text, soft_wrap=not console.file.isatty())


def show_hanging(console: Console, lead: Text, text: Text | Prose) -> None:
    """A text whose further lines begin under its first word; one of many pages begins below."""
    from rich.table import Table

    if isinstance(text, Prose) and len(text.text) > _LONGEST_IN_A_GRID:
        console.print(lead)
        console.print(Prose(text.text, 2))
        return
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(lead, text)
    console.print(grid)


def show_facts(
    console: Console,
    facts: Iterable[tuple[str, str | Text | Prose]],
    *,
    width: int = 9,
    indent: str = "",
) -> None:
    """A line each: what it is about, then what is known of it."""
    from rich.text import Text

    for name, fact in facts:
        shown = Text(fact) if isinstance(fact, str) else fact
        show_hanging(console, Text(f"{indent}{name:<{width}}", "dim"), shown)


def show_notes(console: Console, notes: Iterable[str], *, apart: bool = False) -> None:
    from rich.text import Text

    for place, note in enumerate(notes):
        if apart and place == 0:
            console.print()
        show_hanging(console, Text("note ", "yellow"), Text(one_line(note)))


def table_of(*columns: str, left: Collection[str] = (), header: bool = True) -> Table:
    """Numbers stay on a line; names, which stand to the left, go on in the next."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=header)
    for column in columns:
        text = column in left
        table.add_column(
            column, justify="left" if text else "right", no_wrap=not text, overflow="fold"
        )
    return table


# A table whose lines stay whole where nothing bounds their width.


def print_table(console: Console, table: Table) -> None:
    """Lines stay whole in a pipe, which has no width; a terminal breaks them in their cells."""
    if not print_where_it_fits(console, table):
        # Rich takes the width from columns that may wrap, to the last character of a name.
        for column in table.columns:
            column.no_wrap = False
        console.print(table)


def print_where_it_fits(console: Console, table: Table) -> bool:
    """Whether it was printed: a terminal may be too narrow for its lines, a pipe never is."""
    needed = console.measure(table, options=console.options.update(width=10_000)).maximum
    if not console.is_terminal:
        console.width = max(console.width, needed)
    if needed > console.width:
        return False
    console.print(table)
    return True


# Exports on standard output: as they are into a pipe, harmless on a terminal, without keys.


@contextmanager
def printed(form: Format) -> Iterator[BinaryIO]:
    terminal = sys.stdout.isatty()
    sys.stdout.flush()
    if form == "parquet":
        if terminal:
            raise InputError(Message("command.parquet_on_terminal"))
        yield sys.stdout.buffer
    else:
        shown = (clean if form in ("csv", "excel-csv") else escape) if terminal else str
        yield cast("BinaryIO", _Printed(sys.stdout.buffer, shown))
    sys.stdout.flush()


class _Printed:
    """Each write is whole text, so that a key or a control sequence is never cut in two."""

    def __init__(self, stream: BinaryIO, shown: Callable[[str], str]) -> None:
        self._stream = stream
        self._shown = shown

    def write(self, data: bytes) -> int:
        self._stream.write(self._shown(without_keys(data.decode())).encode())
        return len(data)

    def writelines(self, blocks: Iterable[bytes]) -> None:
        for block in blocks:
            self.write(block)
