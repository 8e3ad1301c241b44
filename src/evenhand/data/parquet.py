"""Parquet, a batch of rows at a time and only the columns that are of interest."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from evenhand.data.remote_file import READ_AHEAD
from evenhand.data.rows import RawRows, Table, Wanted
from evenhand.data.source import Source, after_row
from evenhand.errors import DataError, MissingExtra

MAGIC = b"PAR1"
# Rows are texts of unknown length: few enough of them that a batch of long ones still fits.
_BATCH_ROWS = 64
_READ_AHEAD = 1 << 16


def open_parquet(source: Source, *, wanted: Wanted, after: int = 0) -> Table:
    """`after`: rows that are passed over, whole row groups without reading them."""
    try:
        pyarrow = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("pyarrow, which reads Parquet,", "parquet") from None
    faults = (pyarrow.ArrowException, OSError, ValueError, MemoryError, OverflowError)
    try:
        # pre_buffer would hold whole row groups, which are often the whole file.
        if source.content is None:
            file = parquet.ParquetFile(source.path, pre_buffer=False, buffer_size=_READ_AHEAD)
        else:
            held = source.content.open_anywhere()
            file = parquet.ParquetFile(held, pre_buffer=False, buffer_size=READ_AHEAD)
        columns = tuple(str(name) for name in file.schema_arrow.names)
    except faults as error:
        raise DataError(_broken(source, 0, error)) from None
    used = [name for name in columns if wanted(name)]
    if not used:
        return Table(iter(()), columns=columns, tabular=True)
    return Table(_rows(source, file, used, faults, after), columns=columns, tabular=True)


def _rows(
    source: Source,
    file: Any,
    used: list[str],
    faults: tuple[type[Exception], ...],
    after: int,
) -> RawRows:
    number = 0
    with file:
        try:
            number, groups = _groups_after(file.metadata, after)
            for batch in file.iter_batches(
                batch_size=_BATCH_ROWS, row_groups=groups, columns=used, use_threads=False
            ):
                for row in _of_batch(batch):
                    number += 1
                    if number > after:
                        yield number, row
        except faults as error:
            raise DataError(_broken(source, number, error)) from None


def _groups_after(metadata: Any, after: int) -> tuple[int, list[int]]:
    """How many rows stand before the row group that holds the next one, and the groups from it."""
    passed, first, count = 0, 0, metadata.num_row_groups
    while first < count and passed + metadata.row_group(first).num_rows <= after:
        passed += metadata.row_group(first).num_rows
        first += 1
    return passed, list(range(first, count))


def _of_batch(batch: Any) -> list[dict[str, Any] | str]:
    try:
        rows: list[dict[str, Any] | str] = batch.to_pylist()
    except UnicodeDecodeError:
        return [_of_row(batch.slice(index, 1)) for index in range(batch.num_rows)]
    return rows


def _of_row(batch: Any) -> dict[str, Any] | str:
    try:
        row: dict[str, Any] = batch.to_pylist()[0]
    except UnicodeDecodeError as error:
        return f"a text is not valid UTF-8 (byte {error.start + 1}); write the file anew"
    return row


def _broken(source: Source, number: int, error: Exception) -> str:
    fact = " ".join(str(error).split())[:200].rstrip(".")
    return (
        f"{source.name} is cut or damaged {after_row(number)} (Parquet: {fact}); "
        "write the file anew"
    )
