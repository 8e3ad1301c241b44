"""Parquet, a batch of rows at a time and only the columns that are of interest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from evenhand.data.options import Limits
from evenhand.data.parquet_pages import MAGIC, Excess, measure_pages, refuse_footer
from evenhand.data.remote_file import READ_AHEAD
from evenhand.data.rows import RawRows, Table, Wanted, shortened
from evenhand.data.source import Source, after_row
from evenhand.errors import DataError, MissingExtra

__all__ = ["MAGIC", "open_parquet"]

# Rows are texts of unknown length: few enough of them that a batch of long ones still fits.
_BATCH_ROWS = 64
_READ_AHEAD = 1 << 16
_SMALL_BATCH = 1 << 20  # bytes, that become Python's values all at once


def open_parquet(source: Source, *, wanted: Wanted, after: int = 0) -> Table:
    """`after`: rows that are passed over, whole row groups without reading them."""
    try:
        pyarrow = import_module("pyarrow")
        import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("pyarrow, which reads Parquet,", "parquet") from None
    faults = (pyarrow.ArrowException, OSError, ValueError, MemoryError, OverflowError, IndexError)
    try:
        if source.content is None:
            with source.path.open("rb") as headers:
                refuse_footer(headers, source.limits)
        file = _opened(source)
        columns = tuple(str(name) for name in file.schema_arrow.names)
        _refuse_columns(source, columns)
        used = [name for name in columns if wanted(name)]
        lists = _leaves_of_lists(file, used)
        if lists:
            file = _opened(source, metadata=file.metadata, read_dictionary=lists)
    except Excess as error:
        raise DataError(_excessive(source, error)) from None
    except faults as error:
        raise DataError(_broken(source, 0, error)) from None
    if not used:
        return Table(iter(()), columns=columns, tabular=True)
    return Table(_rows(source, file, used, faults, after), columns=columns, tabular=True)


def _opened(source: Source, **options: Any) -> Any:
    parquet = import_module("pyarrow.parquet")
    # pre_buffer would hold whole row groups, which are often the whole file.
    if source.content is None:
        return parquet.ParquetFile(
            source.path, pre_buffer=False, buffer_size=_READ_AHEAD, **options
        )
    held = source.content.open_anywhere()
    return parquet.ParquetFile(held, pre_buffer=False, buffer_size=READ_AHEAD, **options)


def _refuse_columns(source: Source, columns: tuple[str, ...]) -> None:
    for name, count in Counter(columns).items():
        if count > 1:
            raise DataError(
                f"{source.name} has two columns named {shortened(name)!r}; rename one of them"
            )


def _leaves_of_lists(file: Any, used: list[str]) -> list[str]:
    """Texts inside lists: they stay references to a dictionary, where the file has one, since a
    short list of references may mean gigabytes."""
    leaves = (file.schema.column(place) for place in range(len(file.schema.names)))
    return [
        leaf.path
        for leaf in leaves
        if leaf.max_repetition_level
        and leaf.physical_type == "BYTE_ARRAY"
        and _top(leaf.path, used) is not None
    ]


def _top(path: str, used: list[str]) -> str | None:
    """The column that a leaf belongs to; names may hold dots."""
    return next((name for name in used if path == name or path.startswith(f"{name}.")), None)


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
            for group in groups:
                for batch in _batches(source, file, group, used):
                    for row in _of_batch(batch, source.limits):
                        number += 1
                        if number > after:
                            yield number, row
        except Excess as error:
            raise DataError(_excessive(source, error)) from None
        except faults as error:
            raise DataError(_broken(source, number, error)) from None


def _batches(source: Source, file: Any, group: int, used: list[str]) -> Iterator[Any]:
    rows = _BATCH_ROWS
    if source.content is None:
        rows = _rows_at_once(source, file, group, used)
    pool = import_module("pyarrow").default_memory_pool()
    for batch in file.iter_batches(
        batch_size=rows, row_groups=[group], columns=used, use_threads=False
    ):
        yield batch
        if batch.nbytes > _SMALL_BATCH:
            pool.release_unused()  # it would keep what long rows took


def _rows_at_once(source: Source, file: Any, group: int, used: list[str]) -> int:
    """So many that their texts fit the limit, if each were as long as a whole page: a dictionary,
    or what is told as the same as before, makes many long texts of one."""
    limits, told = source.limits, file.metadata.row_group(group)
    in_a_row = 0
    with source.path.open("rb", buffering=0) as headers:
        for place in range(told.num_columns):
            leaf = file.schema.column(place)
            if _top(leaf.path, used) is None:
                continue
            pages = measure_pages(headers, told.column(place), limits)
            if leaf.max_repetition_level:
                # One row's list may be all of it.
                if pages.total > limits.page_bytes or pages.values > limits.values:
                    raise Excess(
                        f"the lists of {shortened(leaf.path)!r} have {pages.values:,} values in "
                        f"{pages.total:,} bytes, of {limits.values:,} and {limits.page_bytes:,} at "
                        "most; write it with smaller row groups, or as JSON lines"
                    )
                in_a_row += pages.largest
            else:
                in_a_row += max(pages.largest, leaf.length or 0)
            if in_a_row > limits.page_bytes:
                raise Excess(
                    f"the pages of the columns that are read have {in_a_row:,} bytes, of "
                    f"{limits.page_bytes:,} at most; write it without dictionaries "
                    "(use_dictionary=False), or as JSON lines"
                )
    return max(1, min(_BATCH_ROWS, limits.page_bytes // max(1, in_a_row)))


def _groups_after(metadata: Any, after: int) -> tuple[int, list[int]]:
    """How many rows stand before the row group that holds the next one, and the groups from it."""
    passed, first, count = 0, 0, metadata.num_row_groups
    while first < count and passed + metadata.row_group(first).num_rows <= after:
        passed += metadata.row_group(first).num_rows
        first += 1
    return passed, list(range(first, count))


def _of_batch(batch: Any, limits: Limits) -> Iterator[dict[str, Any] | str]:
    if _decoded_bytes(batch) <= min(_SMALL_BATCH, limits.row_bytes):
        try:
            yield from batch.to_pylist()
            return
        except UnicodeDecodeError:
            pass
    for index in range(batch.num_rows):
        yield _of_row(batch.slice(index, 1), limits)


def _of_row(batch: Any, limits: Limits) -> dict[str, Any] | str:
    if _decoded_bytes(batch) > limits.row_bytes:
        return limits.row_too_long
    try:
        row: dict[str, Any] = batch.to_pylist()[0]
    except UnicodeDecodeError as error:
        return f"a text is not valid UTF-8 (byte {error.start + 1}); write the file anew"
    return row


def _decoded_bytes(batch: Any) -> int:
    """What the rows take when references to a dictionary are written out."""
    return sum(_bytes_of(column) for column in batch.columns)


def _bytes_of(column: Any) -> int:
    types = import_module("pyarrow.types")
    kind = column.type
    if types.is_dictionary(kind):
        compute = import_module("pyarrow.compute")
        lengths = compute.binary_length(column.dictionary)
        return (compute.sum(lengths.take(column.indices)).as_py() or 0) + 8 * len(column)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return 8 * len(column) + _bytes_of(column.flatten())
    if types.is_map(kind):
        return 16 * len(column) + _bytes_of(column.keys) + _bytes_of(column.items)
    if types.is_struct(kind):
        return sum(_bytes_of(inner) for inner in column.flatten())
    return int(column.nbytes)


def _broken(source: Source, number: int, error: Exception) -> str:
    fact = " ".join(str(error).split())[:200].rstrip(".")
    return (
        f"{source.name} is cut or damaged {after_row(number)} (Parquet: {fact}); "
        "write the file anew"
    )


def _excessive(source: Source, error: Excess) -> str:
    remedy = "" if ";" in str(error) else f"; {source.limits.remedy}"
    return f"{source.name} is too large to be read: {error}{remedy}"
