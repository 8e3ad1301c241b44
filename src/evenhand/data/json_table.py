"""A JSON document as rows: a list of objects, an object that holds such a list, or one object;
streamed, so that a broken row is one bad row.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

from evenhand.data import json_lines
from evenhand.data.json_lines import read_object
from evenhand.data.llm_comparator import model_names, plain_example
from evenhand.data.records import RawRows, Table, Wanted
from evenhand.data.source import (
    Source,
    after_row,
    beginning,
    count_empty,
    first_byte,
    opened,
    reading_faults,
)
from evenhand.errors import DataError
from evenhand.messages import Message

_BLOCK = 1 << 18

# A parser stops at the first invalid value, and streaming ones rescan a long string with each
# block. Values are delimited by their brackets and quotes alone, in linear time, so that an invalid
# one is a bad row and reading goes on.

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_TO_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+", re.DOTALL)
_TO_COMMA = re.compile(rb'(?:[^"{}\[\],]++|' + _STRING + rb")*+", re.DOTALL)
_WHOLE_STRING = re.compile(_STRING, re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*+")


class Cut(Exception):
    """The stream ended inside a value."""


class Malformed(Exception):
    """An unexpected character; the message says which."""


class ValueTooLong(Exception):
    """A value exceeds the limit, for instance because a quote is never closed."""


class JsonScan:
    def __init__(self, stream: BinaryIO, *, longest: int) -> None:
        self._stream = stream
        self._longest = longest
        self._text = stream.read(_BLOCK)
        self._at = 3 if self._text.startswith(b"\xef\xbb\xbf") else 0

    def peek(self) -> bytes:
        """The next byte that is not white space; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at : self._at + 1]
            if not self._more():
                return b""

    def take(self, expected: bytes) -> None:
        byte = self.peek()
        if byte != expected:
            raise _unexpected(byte, expected)
        self._at += 1

    def key(self) -> bytes:
        """A member's name; the colon after it is consumed."""
        if self.peek() != b'"':
            raise _unexpected(self.peek(), b'"')
        while True:
            match = _WHOLE_STRING.match(self._text, self._at)
            if match:
                break
            if not self._more():
                raise Cut
        self._at = match.end()
        self.take(b":")
        return match[0]

    def value(self) -> bytes:
        """The next value, up to the comma or bracket that ends it."""
        depth, at = 0, self._at
        while True:
            match = (_TO_BRACKET if depth else _TO_COMMA).match(self._text, at)
            at = match.end() if match else at
            if at >= len(self._text) or self._text[at] == 0x22:  # inside a string, or at the end
                at -= self._at
                if not self._more():
                    raise Cut
                at += self._at
                continue
            byte = self._text[at]
            if byte in b"{[":
                depth += 1
            elif depth == 0:
                if at - self._at > self._longest:
                    raise ValueTooLong
                text = self._text[self._at : at]
                self._at = at
                return text
            else:
                depth -= 1
            at += 1

    def elements(self) -> Iterator[bytes]:
        """A list's elements; its opening bracket has been consumed."""
        if self.peek() == b"]":
            self.take(b"]")
            return
        while True:
            yield self.value()
            end = self.peek()
            if end not in (b",", b"]"):
                raise _unexpected(end, b"]")
            self.take(end)
            if end == b"]":
                return

    def _more(self) -> bool:
        """Read more, twice as much each time within one value, so that the work stays linear."""
        left = self._text[self._at :]
        room = self._longest - len(left)
        if room < 0:
            raise ValueTooLong
        block = self._stream.read(min(max(_BLOCK, len(left)), room + _BLOCK))
        self._text = left + block
        self._at = 0
        return bool(block)


def _unexpected(byte: bytes, expected: bytes) -> Exception:
    if not byte:
        return Cut()
    found = byte.decode(errors="replace")
    return Malformed(Message("data.json_unexpected", found=found, expected=expected.decode()))


_MOST_PASSED_OVER = 1_000_000  # elements of lists that hold no rows
LISTS = ("data", "examples", "pairs", "rows")
_FIRST_LINE_MAX = 1 << 16


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which member holds the rows; None for a list or a single object."""

    key: str | None = None
    models: tuple[str, str] | None = None


def fits(start: bytes, *, named: bool | None) -> bool:
    first = first_byte(start)
    return first == b"[" or (first == b"{" and named is not False)


def open_table(source: Source, *, wanted: Wanted, after: int = 0) -> Table:
    return _document(source) or json_lines.open_table(source, wanted=wanted, after=after)


def _document(source: Source) -> Table | None:
    """None if the file is JSON lines under another name."""
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
        except ValueTooLong:
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
    """Walk the first object's members up to the list; None if more follows the object."""
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
    """The models' names if they come after the rows; None if the file is broken."""
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
    except (Cut, Malformed, ValueTooLong, EOFError, zlib.error, OSError):
        pass
    return None


def _of_list(source: Source) -> RawRows:
    seen = [0]
    with _faults(source, seen), opened(source) as file:
        scan = JsonScan(file, longest=source.limits.row_bytes)
        scan.take(b"[")
        yield from _elements(source, scan, seen)
        if scan.peek():
            raise Malformed(Message("data.json_goes_on"))


def _of_member(source: Source, layout: _Layout) -> RawRows:
    seen = [0]
    with _faults(source, seen), opened(source) as file:
        scan = JsonScan(file, longest=source.limits.row_bytes)
        located = False
        for key in _members(scan):
            opens = scan.peek() == b"["
            if opens:
                scan.take(b"[")
            if key == layout.key and opens and not located and scan.peek() in (b"{", b"]"):
                located = True
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
            raise ValueTooLong
        yield 1, read_object(text, what="document", limits=limits)


def _elements(source: Source, scan: JsonScan, seen: list[int]) -> RawRows:
    bad = 0
    for number, text in enumerate(scan.elements(), 1):
        row = read_object(text, what="element", limits=source.limits)
        if isinstance(row, str):
            bad = count_empty(bad, number, source, "data.rows_no_objects")
        seen[0] = number
        yield number, row


def _members(scan: JsonScan) -> Iterator[str]:
    """The names of an object's members; the caller consumes each value."""
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
    for count, _ in enumerate(elements, 1):
        if count > _MOST_PASSED_OVER:
            raise Malformed(Message("data.too_many_values", most=_MOST_PASSED_OVER))


def _looks_like_lines(source: Source) -> bool:
    """Whether the first line cannot be the start of a longer document."""
    line, end, _ = beginning(source, size=_FIRST_LINE_MAX).partition(b"\n")
    return bool(end) and not line.rstrip().endswith((b"{", b"[", b",", b":"))


@contextmanager
def _faults(source: Source, seen: list[int]) -> Iterator[None]:
    with reading_faults(source, after=seen):
        try:
            yield
        except Cut:
            raise DataError.of("data.json_cut", name=source.name, seen=after_row(seen[0])) from None
        except ValueTooLong:
            raise DataError.of(
                "data.row_too_long",
                name=source.name,
                seen=seen[0] + 1,
                row_too_long=source.limits.row_too_long,
            ) from None
        except Malformed as error:
            raise DataError.of(
                "data.json_invalid", name=source.name, seen=after_row(seen[0]), error=error
            ) from None
