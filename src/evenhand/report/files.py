"""Files that appear only when they are complete, CSV that is safe to open in a spreadsheet (text
cells are quoted and never taken for formulas), and texts that XML can hold.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.report.records import COLUMNS, ONLY_IN_FULL, RunRow


@contextlib.contextmanager
def atomic_file(path: Path, *, overwrite: bool, make_folder: bool = False) -> Iterator[BinaryIO]:
    """A stream into a file of another name, which takes the right one once all is written."""
    with _said_plainly(path):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        if is_stream(path):
            with path.open("wb") as stream:
                yield stream
            return
        path = Path(os.path.realpath(path))  # a link stays a link, to the new file
        _refuse(path, overwrite=overwrite)
        part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
        try:
            with os.fdopen(os.open(part, _NEW, _mode_of(path)), "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            _refuse(path, overwrite=overwrite)
            part.replace(path)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()


# Texts and verdicts are their owner's, as they are in the store; whoever has opened a file to
# others keeps it so.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def _mode_of(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode) & 0o666
    except OSError:
        return 0o600


@contextlib.contextmanager
def _said_plainly(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            Message(
                "report.write_failed_nothing_left",
                path=path,
                lower=(error.strerror or str(error)).lower(),
            )
        ) from None


def is_stream(path: Path) -> bool:
    """A pipe or a device is written as it is; a file in its place would be no pipe any more."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _refuse(path: Path, *, overwrite: bool) -> None:
    if path.is_dir():
        raise InputError(Message("report.is_directory", path=path))
    if path.exists() and not overwrite:
        raise InputError(Message("report.file_there", path=path))


# CSV that a spreadsheet may open: texts in quotes, and none that it would take for a formula.
#
# A text cell that begins with a sign which spreadsheets act upon gets an apostrophe before it; so
# does one that begins with apostrophes and then such a sign, so that `unescape` can always tell.

# OWASP's list; full-width, small and raised forms are folded into these before they are compared.
_SIGNS = frozenset("=+-@")
_LINE_SIGNS = frozenset("\t\r\n")
# Spaces, and control, invisible and unknown characters: a program may drop them before it looks.
_DROPPED = frozenset("ZC")


def escape(text: str) -> str:
    return f"'{text}" if _is_acted_upon(text) else text


def unescape(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _is_acted_upon(cell) else cell


def _is_acted_upon(text: str) -> bool:
    for char in text.lstrip("'"):
        if char in _LINE_SIGNS:
            return True
        if unicodedata.category(char)[0] not in _DROPPED:
            return unicodedata.normalize("NFKC", char)[0] in _SIGNS
    return False


def csv_lines(rows: Iterable[RunRow]) -> Iterator[bytes]:
    yield _line(COLUMNS.values())
    for row in rows:
        values = row.model_dump(mode="json", by_alias=False, exclude=set(ONLY_IN_FULL))
        yield _line(_cell(values[name]) for name in COLUMNS)


# Excel takes a file without this for one in the machine's old code page.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What is longer than a cell of Excel holds would flow into the next row.
_EXCEL_CELL = 32_767
_CUT = " … (cut: {} characters in all)"


def excel_lines(rows: Iterable[RunRow]) -> Iterator[bytes]:
    """The same as Excel opens it by a double click, its letters right and its rows whole."""
    yield _BYTE_ORDER_MARK + _line(COLUMNS.values())
    for row in rows:
        values = row.model_dump(mode="json", by_alias=False, exclude=set(ONLY_IN_FULL))
        yield _line(_cell(_fitting(values[name])) for name in COLUMNS)


def _fitting(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    # Excel counts UTF-16 units; `escape` may add one.
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 < _EXCEL_CELL:
        return text
    cut = _CUT.format(f"{len(text):,}")
    kept = text.encode("utf-16-le", "surrogatepass")[: 2 * (_EXCEL_CELL - 1 - len(cut))]
    return kept.decode("utf-16-le", "ignore") + cut


def csv_line(values: Iterable[Any]) -> bytes:
    return _line(map(_cell, values))


def _line(cells: Iterable[str]) -> bytes:
    return ",".join(cells).encode() + b"\n"


def _cell(value: Any) -> str:
    """Only texts are quoted, so that an empty text and nothing at all are not the same."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return '"' + escape(text).replace('"', '""') + '"'


# A name or a sentence as one line of XML: a test report's, a chart's.

# Joiners build letters and emoji; every other invisible format character only misleads.
JOINERS = frozenset("\u200c\u200d")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
MARKS = frozenset({"Mn", "Me"})
# Letters of living languages carry two or three marks; a tower of them hides the rows above.
_MOST_MARKS = 3
NAMELESS = "(no name)"


def plain(text: str) -> str:
    """The text on one line, without what a reader cannot see and XML cannot hold."""
    kept: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in MARKS else 0
        if category in _UNSEEN and char not in JOINERS:
            kept.append(" " if char.isspace() else "")
        elif marks <= _MOST_MARKS and not _is_noncharacter(char):
            kept.append(char)
    return " ".join("".join(kept).split()) or NAMELESS


def _is_noncharacter(char: str) -> bool:
    code = ord(char)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
