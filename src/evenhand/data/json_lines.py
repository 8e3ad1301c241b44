"""JSON lines: one object a line; a line that is none is a bad row, and reading goes on."""

from __future__ import annotations

import json
from typing import Any

import orjson

from evenhand.data.rows import RawRows, Table, kind_of
from evenhand.data.source import Source, opened, reading_faults

_BOM = b"\xef\xbb\xbf"


def open_json_lines(source: Source) -> Table:
    return Table(_rows(source))


def _rows(source: Source) -> RawRows:
    seen = [0]
    loads = orjson.loads
    with opened(source) as file, reading_faults(source, after=seen):
        for number, line in enumerate(file, 1):
            if number == 1 and line.startswith(_BOM):
                line = line[3:]
            try:
                row = loads(line)
            except orjson.JSONDecodeError as error:
                if not line.strip():
                    continue
                row = _second_reading(line, error, what="line")
            else:
                if type(row) is not dict:
                    row = _no_object(row)
            seen[0] = number
            yield number, row


def read_object(text: bytes, *, what: str) -> dict[str, Any] | str:
    """An object's members, or the reason why the text is no object."""
    try:
        row = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _second_reading(text, error, what=what)
    return row if type(row) is dict else _no_object(row)


def _second_reading(text: bytes, refused: ValueError, *, what: str) -> dict[str, Any] | str:
    """Python's own parser also takes the NaN that Python's own writer leaves in files."""
    try:
        row = json.loads(text.decode())
    except UnicodeDecodeError as error:
        return f"the {what} is not valid UTF-8 (byte {error.start + 1}); save the file as UTF-8"
    except (ValueError, RecursionError):
        if what == "line" and not text.endswith(b"\n"):
            return "the line is cut: the file ends in the middle of it; write the file anew"
        return f"the {what} is not JSON ({_fact(refused)}); it takes one JSON object"
    return row if isinstance(row, dict) else _no_object(row)


def _fact(error: ValueError) -> str:
    message = str(error).split(": line ")[0]
    return f"{message}, character {error.pos + 1}" if hasattr(error, "pos") else message


def _no_object(row: object) -> str:
    return f"the row is {kind_of(row)}, not an object with columns"
