"""What a Parquet file makes its reader allocate, read from its own headers before it is opened.

The reader trusts the headers: a page of a kilobyte may say that it unpacks to two gigabytes, and a
schema may be nested until the stack ends. So the footer's schema and the headers of the pages are
gone through first (Thrift's compact protocol, parquet-format's parquet.thrift).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from evenhand.data.options import Limits

MAGIC = b"PAR1"
_DEEPEST = 32  # levels of a schema; a list of structs has four
_HEADER_SIZES = (1 << 14, 1 << 18, 1 << 22)  # tried one after the other: most are small
_DELTA = frozenset({5, 6, 7})
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class Excess(ValueError):
    """The file keeps to its format and not to the limits; what, and what to do."""


class Broken(ValueError):
    """The headers are none."""


@dataclass(slots=True)
class ColumnPages:
    """The pages of one column in one row group."""

    largest: int = 0
    total: int = 0
    values: int = 0


def refuse_footer(file: BinaryIO, limits: Limits) -> None:
    """A footer that is too large, or whose schema has too many or too deep columns."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    if len(end) < 8 or end[4:] != MAGIC:
        return  # no Parquet: the reader says so
    length = struct.unpack("<I", end[:4])[0]
    if length > size:
        return
    if length > limits.footer_bytes:
        raise Excess(f"its footer has {length:,} bytes, of {limits.footer_bytes:,} at most")
    file.seek(size - 8 - length)
    thrift = _Thrift(file.read(length))
    for field, kind in thrift.fields():
        if (field, kind) == (2, _LIST):
            _refuse_schema(thrift, limits)
            return
        thrift.skip(kind)


def _refuse_schema(thrift: _Thrift, limits: Limits) -> None:
    count, _ = thrift.list_head()
    if count > limits.columns:
        raise Excess(f"its schema has {count:,} columns, of {limits.columns:,} at most")
    open_groups: list[int] = []  # how many children each group around the next element still has
    for _ in range(count):
        while open_groups and not open_groups[-1]:
            open_groups.pop()
        if open_groups:
            open_groups[-1] -= 1
        children = 0
        for field, kind in thrift.fields():
            if (field, kind) == (5, _I32):
                children = thrift.number()
            else:
                thrift.skip(kind)
        if children > 0:
            open_groups.append(children)
        if len(open_groups) > _DEEPEST:
            raise Excess(f"its schema is nested deeper than {_DEEPEST} levels")


def measure_pages(file: BinaryIO, chunk: Any, limits: Limits) -> ColumnPages:
    """Go from page to page as the reader will, by what the headers say."""
    at = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < at:
        at = dictionary
    end = at + chunk.total_compressed_size
    pages = ColumnPages()
    while at < end and pages.values < chunk.num_values:
        unpacked, packed, values, encoding, length = _page_header(file, at)
        if encoding in _DELTA and not limits.delta_encoded:
            raise Excess("a column is delta-encoded, whose size cannot be known; write it plain")
        pages.largest = max(pages.largest, unpacked, packed)
        pages.total += max(unpacked, packed)
        pages.values += values
        if pages.largest > limits.page_bytes:
            raise Excess(
                f"a page has {pages.largest:,} bytes, of {limits.page_bytes:,} at most; "
                "write it without dictionaries (use_dictionary=False), or as JSON lines"
            )
        at += length + packed
    return pages


def _page_header(file: BinaryIO, at: int) -> tuple[int, int, int, int, int]:
    """The page's bytes unpacked and packed, its values and encoding, and the header's bytes."""
    for size in _HEADER_SIZES:
        file.seek(at)
        data = file.read(size)
        thrift = _Thrift(data)
        try:
            return *_read_page_header(thrift), thrift.at
        except IndexError:
            if len(data) < size:
                break
    raise Broken("a page's header is cut")


def _read_page_header(thrift: _Thrift) -> tuple[int, int, int, int]:
    unpacked = packed = values = 0
    encoding, is_dictionary = -1, False
    for field, kind in thrift.fields():
        if kind == _I32 and field == 1:
            is_dictionary = thrift.number() == 2
        elif kind == _I32 and field in (2, 3):
            number = thrift.number()
            if number < 0:
                raise Broken(f"a page says that it has {number} bytes")
            if field == 2:
                unpacked = max(unpacked, number)
            else:
                packed = number
        elif kind == _STRUCT and field in (5, 8):
            for inner, inner_kind in thrift.fields():
                if inner_kind == _I32 and inner == 1:
                    values = max(0, thrift.number())
                elif inner_kind == _I32 and inner == (2 if field == 5 else 4):
                    encoding = thrift.number()
                else:
                    thrift.skip(inner_kind)
        else:
            thrift.skip(kind)
    # A dictionary is kept in memory three times: its page, its texts, and those of the rows.
    return unpacked * (3 if is_dictionary else 1), packed, values, encoding


class _Thrift:
    """Thrift's compact protocol; whoever gets a field reads its value, or skips it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self.number()
            yield field, head & 15

    def number(self) -> int:
        coded = self._varint()
        return (coded >> 1) ^ -(coded & 1)

    def list_head(self) -> tuple[int, int]:
        head = self._byte()
        return (self._varint() if head >> 4 == 15 else head >> 4), head & 15

    def skip(self, kind: int, *, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise Broken("its headers are nested too deeply")
        if kind == _BYTE:
            self._byte()
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _DOUBLE:
            self._pass(8)
        elif kind == _BINARY:
            self._pass(self._varint())
        elif kind in (_LIST, _SET):
            count, inner = self.list_head()
            for _ in range(count):
                self._skip_element(inner, depth + 1)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._skip_element(kinds >> 4, depth + 1)
                self._skip_element(kinds & 15, depth + 1)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth=depth + 1)
        elif kind not in (_TRUE, _FALSE):
            raise Broken(f"its headers have a value of the unknown kind {kind}")

    def _skip_element(self, kind: int, depth: int) -> None:
        self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind, depth=depth)

    def _pass(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise Broken("its headers have a number of more than 64 bits")
