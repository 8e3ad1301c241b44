"""Parquet, a batch of rows at a time and only the columns that are of interest."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from evenhand.data.rows import RawRows, Table, Wanted
from evenhand.data.source import Source, after_row
from evenhand.errors import DataError, MissingExtra

MAGIC = b"PAR1"
# Rows are texts of unknown length: few enough of them that a batch of long ones still fits.
_BATCH_ROWS = 64


def open_parquet(source: Source, *, wanted: Wanted) -> Table:
    try:
        pyarrow = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("pyarrow, which reads Parquet,", "parquet") from None
    faults = (pyarrow.ArrowException, OSError, ValueError, MemoryError, OverflowError)
    try:
        # pre_buffer would hold whole row groups, which are often the whole file.
        file = parquet.ParquetFile(source.path, pre_buffer=False, buffer_size=1 << 16)
        columns = tuple(str(name) for name in file.schema_arrow.names)
    except faults as error:
        raise DataError(_broken(source, 0, error)) from None
    used = [name for name in columns if wanted(name)]
    if not used:
        return Table(iter(()), columns=columns, tabular=True)
    return Table(_rows(source, file, used, faults), columns=columns, tabular=True)


def _rows(
    source: Source, file: Any, used: list[str], faults: tuple[type[Exception], ...]
) -> RawRows:
    number = 0
    with file:
        try:
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=used, use_threads=False):
                for row in _of_batch(batch):
                    number += 1
                    yield number, row
        except faults as error:
            raise DataError(_broken(source, number, error)) from None


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
