"""Opens a file as a table of rows, by its content first and its ending second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import dropwhile
from pathlib import Path
from typing import Any

from evenhand.data.records import RawRows, Table, Wanted
from evenhand.data.source import GZIP_MAGIC, Source, beginning
from evenhand.errors import DataError, TooLarge
from evenhand.formats import FORMATS, endings, labels

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LOOKED_AT = 1 << 12


def open_tables(source: Source, *, wanted: Wanted) -> Iterator[tuple[Source, Table]]:
    for file in source.files:
        yield file, open_table(file, wanted=wanted)


def open_table(source: Source, *, wanted: Wanted, after: int = 0) -> Table:
    """The rows of a file, in whichever format, after row number `after`; `wanted` says which
    columns are needed."""
    table: Table = _format_of(source).open_table(source, wanted=wanted, after=after)
    if source.limits.rows is not None:
        table = replace(table, rows=_bounded(table.rows, source, source.limits.rows))
    if not after:
        return table
    return replace(table, rows=dropwhile(lambda row: row[0] <= after, table.rows))


def _bounded(rows: RawRows, source: Source, most: int) -> RawRows:
    """Bounded before the rows are joined or kept."""
    for count, row in enumerate(rows, start=1):
        if count > most:
            raise TooLarge.of("data.too_many_rows", title=source.stem, most=most)
        yield row


def _format_of(source: Source) -> Any:
    start = beginning(source, size=_LOOKED_AT)
    if start.startswith(GZIP_MAGIC):
        raise DataError.of("data.gzip_twice", name=source.name)
    if start.startswith(_UTF16):
        raise DataError.of("data.utf16", name=source.name)
    ending = _ending(source.name) or _ending(source.path.name)
    known = ending in endings()
    for each in reversed(FORMATS):
        module = import_module(each.module)
        if module.fits(start, named=ending in each.endings if known else None):
            return module
    raise DataError.of("data.format_unknown", name=source.name, formats=labels())


def _ending(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix
