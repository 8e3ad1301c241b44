"""Which format a file has, by its content first and by its ending where that leaves it open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path

from evenhand.data.csv_table import open_csv
from evenhand.data.json_table import open_json, open_json_lines
from evenhand.data.parquet import MAGIC, open_parquet
from evenhand.data.records import RawRows, Table, Wanted
from evenhand.data.source import GZIP_MAGIC, Source, beginning, is_gzipped
from evenhand.errors import DataError, TooLarge
from evenhand.messages import Message

_LINES = (".jsonl", ".ndjson", ".jsonlines")
_TABLES = (".csv", ".tsv")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def open_tables(source: Source, *, wanted: Wanted) -> Iterator[tuple[Source, Table]]:
    """Each file of a data set with its rows, one after another."""
    for file in source.files:
        yield file, open_table(file, wanted=wanted)


def open_table(source: Source, *, wanted: Wanted, after: int = 0) -> Table:
    """The rows of a file, whatever it is called; `wanted` says which columns are looked at.

    They begin after the row of that number, where one is given.
    """
    if after and _is_parquet(source):
        return open_parquet(source, wanted=wanted, after=after)
    table = _open_whole(source, wanted=wanted)
    if source.limits.rows is not None:
        table = replace(table, rows=_bounded(table.rows, source, source.limits.rows))
    if not after:
        return table
    return replace(table, rows=dropwhile(lambda row: row[0] <= after, table.rows))


def _bounded(rows: RawRows, source: Source, most: int) -> RawRows:
    """Before they are joined or kept: what comes of them may be bounded too late."""
    for count, row in enumerate(rows, start=1):
        if count > most:
            raise TooLarge(Message("data.too_many_rows", title=source.stem, most=most))
        yield row


def _open_whole(source: Source, *, wanted: Wanted) -> Table:
    start = beginning(source, size=1 << 12)
    if start.startswith(GZIP_MAGIC):
        raise DataError(Message("data.gzip_twice", name=source.name))
    ending = _ending(source.name) or _ending(source.path.name)
    if start.startswith(MAGIC) or ending == ".parquet":
        if is_gzipped(source):
            raise DataError(Message("data.parquet_in_gzip", name=source.name))
        return open_parquet(source, wanted=wanted)
    if start.startswith(_UTF16):
        raise DataError(Message("data.utf16", name=source.name))
    if ending in _TABLES:
        return open_csv(source)
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first == b"[" or (first == b"{" and ending not in _LINES):
        return open_json(source) or open_json_lines(source)
    if ending in _LINES or first in (b"", b"{"):
        return open_json_lines(source)
    if ending == ".json" or not _could_be_table(start):
        raise DataError(Message("data.format_unknown", name=source.name))
    return open_csv(source)


def _is_parquet(source: Source) -> bool:
    return beginning(source, size=len(MAGIC)) == MAGIC


def _ending(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


def _could_be_table(start: bytes) -> bool:
    line = start.partition(b"\n")[0]
    return b"\0" not in line and any(mark in line for mark in (b",", b"\t", b";"))
