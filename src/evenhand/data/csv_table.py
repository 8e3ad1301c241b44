"""CSV and TSV: the first line names the columns, a quoted cell may hold line ends."""

from __future__ import annotations

import csv
import io
from typing import Any

from evenhand.data.rows import RawRows, Table
from evenhand.data.source import Source, beginning, opened, reading_faults
from evenhand.errors import DataError

# A quote that is never closed takes in all that follows; this keeps it from taking the memory.
_LONGEST_CELL = 1 << 28
_HEADER_MAX = 1 << 20
_DELIMITERS = ",\t;"


def open_csv(source: Source) -> Table:
    start = beginning(source, size=_HEADER_MAX).decode("utf-8-sig", errors="replace")
    first_line = (start.lstrip("\r\n").splitlines() or [""])[0]
    delimiter = max(_DELIMITERS, key=first_line.count)
    rows = _records(source, delimiter)
    header = next(rows, None)
    if header is None:
        return Table(iter(()))
    names = header[1]
    if isinstance(names, str):
        raise DataError(f"{source.name} has no header that can be read: {names}")
    columns = tuple(name.strip() for name in names)
    for name in columns:
        if name and columns.count(name) > 1:
            raise DataError(f"{source.name} has two columns named {name!r}; rename one of them")
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


def _wrong_width(count: int, width: int) -> str:
    cells = f"{count} cell{'' if count == 1 else 's'}"
    if count < width:
        return f"the row is cut: it has {cells}, the header {width}; write the row anew"
    return f"the row has {cells}, the header {width}; quote cells that hold the delimiter"


def _records(source: Source, delimiter: str) -> Any:
    """Each record as (the line it begins at, its cells or the reason why it has none)."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    seen = [0]
    with opened(source) as file, reading_faults(source, after=seen):
        # Bytes that are not UTF-8 become lone surrogates, which no pair takes: a bad row, where
        # strict decoding would end the reading.
        text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        while True:
            number = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield number, _unreadable(error)
            else:
                if not cells or (len(cells) == 1 and not cells[0].strip()):
                    continue
                yield number, cells
            seen[0] = number


def _unreadable(error: csv.Error) -> str:
    if "end of data" in str(error):
        return "the row is cut: the file ends inside a quoted cell; close the quote"
    if "field limit" in str(error):
        return f"a cell is longer than {_LONGEST_CELL:,} characters; is a quote left open?"
    return f"the row is not CSV ({error}); double the quotes inside a quoted cell"
