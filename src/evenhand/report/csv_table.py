"""CSV that a spreadsheet may open: texts in quotes, and none that it would take for a formula.

A text cell that begins with a sign which spreadsheets act upon gets an apostrophe before it; so
does one that begins with apostrophes and then such a sign, so that `unescape` can always tell.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any, BinaryIO

import orjson

from evenhand.report.records import COLUMNS, ONLY_IN_FULL, RunRow

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


def write_csv(stream: BinaryIO, rows: Iterable[RunRow]) -> int:
    stream.write(_line(COLUMNS.values()))
    count = 0
    for row in rows:
        count += 1
        values = row.model_dump(mode="json", by_alias=False, exclude=set(ONLY_IN_FULL))
        stream.write(_line(_cell(values[name]) for name in COLUMNS))
    return count


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
