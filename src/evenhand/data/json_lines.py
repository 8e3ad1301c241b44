"""JSON lines: one object a line; any other line is a bad row."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, BinaryIO

import orjson

from evenhand.contract.json_text import (
    RepeatedKey,
    TooManyValues,
    refuse_many_values,
    refuse_repeated_key,
)
from evenhand.data.options import ReadLimits
from evenhand.data.records import RawRows, Table, Wanted, kind_of
from evenhand.data.source import Source, count_empty, first_byte, opened, reading_faults
from evenhand.messages import Message

_BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 18
_LOOKED_THROUGH = 1000  # rows at the beginning, of which each is searched for a key twice


def fits(start: bytes, *, named: bool | None) -> bool:
    return named is True or first_byte(start) in (b"", b"{")


def open_table(source: Source, *, wanted: Wanted, after: int = 0) -> Table:
    return Table(_rows(source))


def _rows(source: Source) -> RawRows:
    seen = [0]
    blank = bad = 0
    limits = source.limits
    longest, every, loads = limits.row_bytes, limits.keys_every, orjson.loads
    plain = limits.values  # a line of this length cannot hold too many
    with opened(source) as file, reading_faults(source, after=seen):
        for number, line in enumerate(iter(partial(file.readline, longest + 1), b""), 1):
            if len(line) > plain or number <= _LOOKED_THROUGH or not number % every:
                if number == 1 and line.startswith(_BOM):
                    line = line[3:]
                if not line.strip():
                    blank = count_empty(blank, number, source)
                    continue
                row = _read_line(line, file, limits)
            else:
                # The fast path, which most lines take.
                try:
                    row = loads(line)
                except orjson.JSONDecodeError as error:
                    if not line.strip():
                        blank = count_empty(blank, number, source)
                        continue
                    row = _second_reading(line, error, what="line")
                else:
                    if type(row) is not dict:
                        row = _no_object(row)
            if type(row) is not dict:
                bad = count_empty(bad, number, source, "data.rows_no_objects")
            seen[0] = number
            yield number, row


def _read_line(line: bytes, file: BinaryIO, limits: ReadLimits) -> dict[str, Any] | str:
    if len(line) > limits.row_bytes and not line.endswith(b"\n"):
        _pass_over_line(file)
        return limits.row_too_long
    return read_object(line, what="line", limits=limits)


def _pass_over_line(file: BinaryIO) -> None:
    while (block := file.readline(_BLOCK)) and not block.endswith(b"\n"):
        pass


def read_object(text: bytes, *, what: str, limits: ReadLimits) -> dict[str, Any] | str:
    """The object's members, or the reason why the text is not an object."""
    try:
        refuse_many_values(text, limits.values)
        row = orjson.loads(text)
        if type(row) is not dict:
            return _no_object(row)
        refuse_repeated_key(text, row)
    except orjson.JSONDecodeError as error:
        return _second_reading(text, error, what=what)
    except (RepeatedKey, TooManyValues) as error:
        return _message(error)
    return row


_NOT_UTF8 = {"line": "data.line_not_utf8", "element": "data.element_not_utf8"}
_NOT_JSON = {"line": "data.line_not_json", "element": "data.element_not_json"}


def _second_reading(text: bytes, refused: ValueError, *, what: str) -> dict[str, Any] | str:
    """Python's parser also accepts NaN, which Python's writer leaves in files."""
    try:
        row = json.loads(text.decode())
    except UnicodeDecodeError as error:
        return Message(_NOT_UTF8[what], byte=error.start + 1)
    except (ValueError, RecursionError):
        if what == "line" and not text.endswith(b"\n"):
            return Message("data.line_cut")
        return Message(_NOT_JSON[what], fact=_fact(refused))
    if not isinstance(row, dict):
        return _no_object(row)
    try:
        refuse_repeated_key(text, row)
    except RepeatedKey as error:
        return _message(error)
    return row


def _message(error: RepeatedKey | TooManyValues) -> Message:
    message: Message = error.args[0]
    return message


def _fact(error: ValueError) -> str:
    message = str(error).split(": line ")[0]
    return f"{message}, character {error.pos + 1}" if hasattr(error, "pos") else message


def _no_object(row: object) -> str:
    return Message("data.row_no_object", kind=kind_of(row))
