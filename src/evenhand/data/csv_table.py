"""CSV and TSV: the first line names the columns, a quoted cell may hold line ends."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Any, BinaryIO

from evenhand.data.options import ReadLimits
from evenhand.data.records import RawRows, Table, Wanted, shortened
from evenhand.data.source import (
    Source,
    beginning,
    count_empty,
    first_byte,
    opened,
    reading_faults,
)
from evenhand.errors import DataError
from evenhand.messages import Message

_HEADER_MAX = 1 << 20
_READ_AHEAD = 1 << 14  # what may have been read of a row before it began
_DELIMITERS = ",\t;"


def fits(start: bytes, *, named: bool | None) -> bool:
    if named is not None or first_byte(start) in (b"", b"{", b"["):
        return named is True
    line = start.partition(b"\n")[0]
    return b"\0" not in line and any(mark.encode() in line for mark in _DELIMITERS)


def open_table(source: Source, *, wanted: Wanted, after: int = 0) -> Table:
    start = beginning(source, size=_HEADER_MAX).decode("utf-8-sig", errors="replace")
    first_line = (start.lstrip("\r\n").splitlines() or [""])[0]
    delimiter = max(_DELIMITERS, key=first_line.count)
    rows = _records(source, delimiter)
    header = next(rows, None)
    if header is None:
        return Table(iter(()))
    names = header[1]
    if isinstance(names, str):
        raise DataError.of("data.header_unreadable", name=source.name, names=names)
    if len(names) > source.limits.columns:
        raise DataError.of(
            "data.too_many_columns", name=source.name, n=len(names), columns=source.limits.columns
        )
    columns = tuple(name.strip() for name in names)
    for name, count in Counter(columns).items():
        if name and count > 1:
            raise DataError.of("data.column_twice", name=source.name, name2=shortened(name))
    return Table(_rows(rows, columns), columns=columns, tabular=True)


def _rows(records: Any, columns: tuple[str, ...]) -> RawRows:
    width = len(columns)
    for number, cells in records:
        if isinstance(cells, str):
            yield number, cells
        elif len(cells) == width:
            yield number, dict(zip(columns, cells, strict=True))
        else:
            yield number, _wrong_width(len(cells), width)


def _wrong_width(count: int, width: int) -> Message:
    code = "data.row_cut" if count < width else "data.row_too_wide"
    return Message(code, n=count, width=width)


def _records(source: Source, delimiter: str) -> Any:
    """Each record with its first line: its cells, or the reason why it has none."""
    # A limit of the whole process, which other code may have raised; rows are bounded by bytes.
    csv.field_size_limit(max(csv.field_size_limit(), source.limits.table_row_bytes))
    seen = [0]
    blank = 0
    with opened(source) as file, reading_faults(source, after=seen):
        bounded: Any = _BoundedRows(file, delimiter.encode(), source.limits)
        # Invalid UTF-8 becomes lone surrogates, which no pair accepts: one bad row, where strict
        # decoding would end the file.
        text = io.TextIOWrapper(bounded, "utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        while True:
            number = reader.line_num + 1
            bounded.begin_row()
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield number, _unreadable(error)
            except _TooLong as error:
                raise DataError.of(
                    "data.row_refused", name=source.name, number=number, error=error
                ) from None
            else:
                if not cells or (len(cells) == 1 and not cells[0].strip()):
                    blank = count_empty(blank, number, source)
                    continue
                yield number, cells
            seen[0] = number


class _TooLong(Exception):
    """The row exceeds the memory limit."""


class _BoundedRows(io.BufferedIOBase):
    """Counts a file's bytes by row: an unclosed quote takes in all that follows, and a line of
    commas is all cells."""

    def __init__(self, file: BinaryIO, delimiter: bytes, limits: ReadLimits) -> None:
        self._file: Any = file
        self._delimiter = delimiter
        self._limits = limits
        self._size = 0
        self._cells = 0

    def begin_row(self) -> None:
        self._size = -_READ_AHEAD
        self._cells = 0

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1, /) -> bytes:
        block: bytes = self._file.read1(size)
        self._size += len(block)
        limits = self._limits
        if self._size > limits.table_row_bytes:
            most, remedy = limits.table_row_bytes, limits.remedy
            raise _TooLong(Message("data.table_row_too_long", most=most, remedy=remedy))
        if self._size > limits.values:
            self._cells += block.count(self._delimiter)
            if self._cells > limits.values:
                most, remedy = limits.values, limits.remedy
                raise _TooLong(Message("data.too_many_cells", most=most, remedy=remedy))
        return block


def _unreadable(error: csv.Error) -> Message:
    if "end of data" in str(error):
        return Message("data.quote_not_closed")
    return Message("data.row_not_csv", error=error)
