"""Parquet, a batch of rows at a time, only the columns needed; what a file would make its reader
allocate is first checked from its headers.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO

from evenhand.data.options import ReadLimits
from evenhand.data.records import RawRows, Table, Wanted, shortened
from evenhand.data.source import (
    REMOTE_READ_AHEAD,
    Source,
    UnpackedBudget,
    after_row,
    is_gzipped,
)
from evenhand.errors import DataError, MissingExtra
from evenhand.messages import Message

# pyarrow allocates by each page's own header, which it does not expose (its metadata is the
# footer's claim), without a memory limit: a kilobyte page may unpack to two gigabytes, and a schema
# may nest until the stack overflows. So both are read here first (Thrift's compact protocol,
# parquet-format's parquet.thrift).

MAGIC = b"PAR1"
_DEEPEST = 32  # levels of a schema; a list of structs has four
_HEADER_SIZES = (1 << 14, 1 << 18, 1 << 22)  # tried one after the other: most are small
_DELTA = frozenset({5, 6, 7})
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class Excess(ValueError):
    """A well-formed file that exceeds a limit."""


class Broken(ValueError):
    """The headers are malformed."""


@dataclass(slots=True)
class ColumnPages:
    """The pages of one column in one row group."""

    largest: int = 0
    total: int = 0
    values: int = 0


def refuse_footer(file: BinaryIO, limits: ReadLimits) -> None:
    """Refuse a footer that is too large, or a schema too wide or too deep."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    if len(end) < 8 or end[4:] != MAGIC:
        return  # no Parquet: the reader says so
    length = struct.unpack("<I", end[:4])[0]
    if length > size:
        return
    if length > limits.footer_bytes:
        raise Excess(
            Message(
                "data.parquet_footer",
                size=length,
                most=limits.footer_bytes,
                remedy=limits.remedy,
            )
        )
    file.seek(size - 8 - length)
    thrift = _Thrift(file.read(length))
    for field, kind in thrift.fields():
        if (field, kind) == (2, _LIST):
            _refuse_schema(thrift, limits)
            return
        thrift.skip(kind)


def _refuse_schema(thrift: _Thrift, limits: ReadLimits) -> None:
    count, _ = thrift.list_head()
    if count > limits.columns:
        raise Excess(
            Message("data.parquet_columns", size=count, most=limits.columns, remedy=limits.remedy)
        )
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
            raise Excess(Message("data.parquet_depth", most=_DEEPEST, remedy=limits.remedy))


def measure_pages(file: BinaryIO, chunk: Any, limits: ReadLimits) -> ColumnPages:
    """Walk the pages by their headers, as the reader will."""
    at = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < at:
        at = dictionary
    end = at + chunk.total_compressed_size
    pages = ColumnPages()
    while at < end and pages.values < chunk.num_values:
        unpacked, packed, values, encoding, length = _page_header(file, at)
        if encoding in _DELTA and not limits.delta_encoded:
            raise Excess(Message("data.parquet_delta"))
        pages.largest = max(pages.largest, unpacked, packed)
        pages.total += max(unpacked, packed)
        pages.values += values
        if pages.largest > limits.page_bytes:
            most = limits.page_bytes
            raise Excess(Message("data.parquet_page", size=pages.largest, most=most))
        at += length + packed
    return pages


def _page_header(file: BinaryIO, at: int) -> tuple[int, int, int, int, int]:
    """The page's size unpacked and packed, its values, encoding, and header size."""
    for size in _HEADER_SIZES:
        file.seek(at)
        data = file.read(size)
        thrift = _Thrift(data)
        try:
            return *_read_page_header(thrift), thrift.at
        except IndexError:
            if len(data) < size:
                break
    raise Broken("a page's header is truncated")


def _read_page_header(thrift: _Thrift) -> tuple[int, int, int, int]:
    unpacked = packed = values = 0
    encoding, is_dictionary = -1, False
    for field, kind in thrift.fields():
        if kind == _I32 and field == 1:
            is_dictionary = thrift.number() == 2
        elif kind == _I32 and field in (2, 3):
            number = thrift.number()
            if number < 0:
                raise Broken(f"a page claims {number} bytes")
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
    # A dictionary is in memory three times: as a page, as texts, and in the rows.
    return unpacked * (3 if is_dictionary else 1), packed, values, encoding


class _Thrift:
    """Thrift's compact protocol; the caller reads or skips each field's value."""

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
            raise Broken(f"its headers have a value of unknown kind {kind}")

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
                raise Broken("its headers have a number longer than 64 bits")


# Texts have any length: few rows, so that a batch of long ones fits.
_BATCH_ROWS = 64
_READ_AHEAD = 1 << 16
_SMALL_BATCH = 1 << 20  # bytes, that become Python's values all at once


def fits(start: bytes, *, named: bool | None) -> bool:
    return start.startswith(MAGIC) or named is True


def open_table(source: Source, *, wanted: Wanted, after: int = 0) -> Table:
    """`after`: rows to skip, whole row groups without reading them."""
    if is_gzipped(source):
        raise DataError.of("data.parquet_in_gzip", name=source.name)
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
    # pre_buffer would hold whole row groups, often the whole file.
    if source.content is None:
        return parquet.ParquetFile(
            source.path, pre_buffer=False, buffer_size=_READ_AHEAD, **options
        )
    held = source.content.open_anywhere()
    return parquet.ParquetFile(held, pre_buffer=False, buffer_size=REMOTE_READ_AHEAD, **options)


def _refuse_columns(source: Source, columns: tuple[str, ...]) -> None:
    for name, count in Counter(columns).items():
        if count > 1:
            raise DataError.of("data.column_twice", name=source.name, name2=shortened(name))


def _leaves_of_lists(file: Any, used: list[str]) -> list[str]:
    """Texts inside lists are kept as dictionary references, since a short list of them may expand
    to gigabytes."""
    leaves = (file.schema.column(place) for place in range(len(file.schema.names)))
    return [
        leaf.path
        for leaf in leaves
        if leaf.max_repetition_level
        and leaf.physical_type == "BYTE_ARRAY"
        and _top(leaf.path, used) is not None
    ]


def _top(path: str, used: list[str]) -> str | None:
    """The column that a leaf belongs to; names may contain dots."""
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
            budget = UnpackedBudget(source)
            for group in groups:
                for batch in _batches(source, file, group, used):
                    size = _decoded_bytes(batch)
                    budget.take(size)
                    for row in _of_batch(batch, size, source.limits):
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
    """As many as fit the limit if each row were as long as a whole page: a dictionary or delta
    encoding can make many long texts of one."""
    limits, group_metadata = source.limits, file.metadata.row_group(group)
    in_a_row = 0
    with source.path.open("rb", buffering=0) as headers:
        for place in range(group_metadata.num_columns):
            leaf = file.schema.column(place)
            if _top(leaf.path, used) is None:
                continue
            pages = measure_pages(headers, group_metadata.column(place), limits)
            if leaf.max_repetition_level:
                # One row's list may be the whole page.
                if pages.total > limits.page_bytes or pages.values > limits.values:
                    raise Excess(
                        Message(
                            "data.parquet_lists",
                            column=shortened(leaf.path),
                            values=pages.values,
                            size=pages.total,
                            most_values=limits.values,
                            most=limits.page_bytes,
                        )
                    )
                in_a_row += pages.largest
            else:
                in_a_row += max(pages.largest, leaf.length or 0)
            if in_a_row > limits.page_bytes:
                most = limits.page_bytes
                raise Excess(Message("data.parquet_pages", size=in_a_row, most=most))
    return max(1, min(_BATCH_ROWS, limits.page_bytes // max(1, in_a_row)))


def _groups_after(metadata: Any, after: int) -> tuple[int, list[int]]:
    """How many rows precede the group of the next row, and the groups from there."""
    passed, first, count = 0, 0, metadata.num_row_groups
    while first < count and passed + metadata.row_group(first).num_rows <= after:
        passed += metadata.row_group(first).num_rows
        first += 1
    return passed, list(range(first, count))


def _of_batch(batch: Any, size: int, limits: ReadLimits) -> Iterator[dict[str, Any] | str]:
    if size <= min(_SMALL_BATCH, limits.row_bytes):
        try:
            yield from batch.to_pylist()
            return
        except UnicodeDecodeError:
            pass
    for index in range(batch.num_rows):
        yield _of_row(batch.slice(index, 1), limits)


def _of_row(batch: Any, limits: ReadLimits) -> dict[str, Any] | str:
    if _decoded_bytes(batch) > limits.row_bytes:
        return limits.row_too_long
    try:
        row: dict[str, Any] = batch.to_pylist()[0]
    except UnicodeDecodeError as error:
        return Message("data.text_not_utf8", byte=error.start + 1)
    return row


def _decoded_bytes(batch: Any) -> int:
    """The rows' size with dictionary references expanded."""
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
    return Message("data.parquet_damaged", name=source.name, after=after_row(number), fact=fact)


def _excessive(source: Source, error: Excess) -> Message:
    return Message("data.parquet_too_large", name=source.name, error=error)
