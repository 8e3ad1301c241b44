"""A JSON document as rows: a list of objects, an object that holds such a list, or one object."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from evenhand.data.json_lines import read_object
from evenhand.data.json_scan import Cut, JsonScan, Malformed, TooLong
from evenhand.data.llm_comparator import model_names, plain_example
from evenhand.data.rows import RawRows, Table
from evenhand.data.source import Source, after_row, beginning, opened, reading_faults
from evenhand.errors import DataError

LISTS = ("data", "examples", "pairs", "rows")
_FIRST_LINE_MAX = 1 << 16


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which member holds the rows; None for a document that is a list or a single object."""

    key: str | None = None
    models: tuple[str, str] | None = None


def open_json(source: Source) -> Table | None:
    """None where it is no single document: then it is JSON lines under another name."""
    with _faults(source, [0]), opened(source) as file:
        scan = JsonScan(file, longest=source.limits.row_bytes)
        if scan.peek() == b"[":
            return Table(_of_list(source))
        try:
            layout = _survey(scan)
        except Cut:
            if _looks_like_lines(source):
                return None
            raise
        except Malformed:
            return None
        except TooLong:
            if _looks_like_lines(source):
                return None
            raise
    if layout is None:
        return None
    if layout.key is None:
        return Table(_of_object(source))
    if layout.key == "examples" and layout.models is None:
        layout = _Layout(layout.key, _models_after(source))
    return Table(_of_member(source, layout))


def _survey(scan: JsonScan) -> _Layout | None:
    """Go through the members of the first object up to the list; None where more follows it."""
    models = None
    for key in _members(scan):
        if key == "models":
            models = model_names(scan.value())
        elif key in LISTS and scan.peek() == b"[":
            scan.take(b"[")
            if scan.peek() in (b"{", b"]"):
                return _Layout(key, models)
            _pass_over(scan.elements())
        else:
            scan.value()
    return None if scan.peek() else _Layout()


def _models_after(source: Source) -> tuple[str, str] | None:
    """The models' names where they come after the rows; none where the file is broken."""
    try:
        with opened(source) as file:
            scan = JsonScan(file, longest=source.limits.row_bytes)
            for key in _members(scan):
                if key == "models":
                    return model_names(scan.value())
                if scan.peek() == b"[":
                    scan.take(b"[")
                    _pass_over(scan.elements())
                else:
                    scan.value()
    except (Cut, Malformed, TooLong, EOFError, zlib.error, OSError):
        pass
    return None


def _of_list(source: Source) -> RawRows:
    seen = [0]
    with _faults(source, seen), opened(source) as file:
        scan = JsonScan(file, longest=source.limits.row_bytes)
        scan.take(b"[")
        yield from _elements(source, scan, seen)
        if scan.peek():
            raise Malformed("something follows the end of the list")


def _of_member(source: Source, layout: _Layout) -> RawRows:
    seen = [0]
    with _faults(source, seen), opened(source) as file:
        scan = JsonScan(file, longest=source.limits.row_bytes)
        met = False
        for key in _members(scan):
            opens = scan.peek() == b"["
            if opens:
                scan.take(b"[")
            if key == layout.key and opens and not met and scan.peek() in (b"{", b"]"):
                met = True
                for number, row in _elements(source, scan, seen):
                    yield number, row if isinstance(row, str) else plain_example(row, layout.models)
            elif opens:
                _pass_over(scan.elements())
            else:
                scan.value()


def _of_object(source: Source) -> RawRows:
    with _faults(source, [0]), opened(source) as file:
        limits = source.limits
        text = file.read(limits.row_bytes + 1).removeprefix(b"\xef\xbb\xbf")
        if len(text) > limits.row_bytes:
            raise TooLong
        yield 1, read_object(text, what="document", limits=limits)


def _elements(source: Source, scan: JsonScan, seen: list[int]) -> RawRows:
    for number, text in enumerate(scan.elements(), 1):
        row = read_object(text, what="element", limits=source.limits)
        seen[0] = number
        yield number, row


def _members(scan: JsonScan) -> Iterator[str]:
    """The names of an object's members; the caller takes each value before the next."""
    scan.take(b"{")
    if scan.peek() == b"}":
        scan.take(b"}")
        return
    while True:
        yield _name(scan.key())
        if scan.peek() != b",":
            break
        scan.take(b",")
    scan.take(b"}")


def _name(text: bytes) -> str:
    try:
        name: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    return str(name)


def _pass_over(elements: Iterator[bytes]) -> None:
    for _ in elements:
        pass


def _looks_like_lines(source: Source) -> bool:
    """Whether the first line, whole or broken, could not be the beginning of a longer document."""
    line, end, _ = beginning(source, size=_FIRST_LINE_MAX).partition(b"\n")
    return bool(end) and not line.rstrip().endswith((b"{", b"[", b",", b":"))


@contextmanager
def _faults(source: Source, seen: list[int]) -> Iterator[None]:
    with reading_faults(source, after=seen):
        try:
            yield
        except Cut:
            raise DataError(
                f"{source.name} is cut {after_row(seen[0])}: the JSON ends before it is closed; "
                "write the file anew"
            ) from None
        except TooLong:
            raise DataError(
                f"{source.name}, row {seen[0] + 1}: {source.limits.row_too_long}"
            ) from None
        except Malformed as error:
            raise DataError(
                f"{source.name} is not valid JSON {after_row(seen[0])}: {error}; "
                "write the file anew"
            ) from None
