"""CSV that a spreadsheet may open: texts in quotes, and none that it would take for a formula.

A text cell that begins with a sign which spreadsheets act upon gets an apostrophe before it; so
does one that begins with apostrophes and then such a sign, so that `unescape` can always tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, BinaryIO

import orjson

from evenhand.report.records import COLUMNS, ONLY_IN_FULL, RunRow

# The signs of OWASP's list, and their full-width and small forms, which some programs fold.
_SIGNS = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"
# What a program may drop before it looks at a cell: spaces, control and invisible characters.
_DROPPED = "\\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_ACTED_UPON = re.compile(f"'*[{_DROPPED}]*[{_SIGNS}]")


def escape(text: str) -> str:
    return f"'{text}" if _ACTED_UPON.match(text) else text


def unescape(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _ACTED_UPON.match(cell) else cell


def write_csv(stream: BinaryIO, rows: Iterable[RunRow]) -> int:
    stream.write(_line(COLUMNS.values()))
    count = 0
    for row in rows:
        count += 1
        values = row.model_dump(mode="json", by_alias=False, exclude=set(ONLY_IN_FULL))
        stream.write(_line(_cell(values[name]) for name in COLUMNS))
    return count


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
