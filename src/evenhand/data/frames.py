"""DataFrames as rows: pandas, polars, and anything with Arrow's PyCapsule interface.

No data-frame library is imported: frames are recognised by their methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from evenhand.errors import DataError, MissingExtra

_ROWS_AT_ONCE = 1000


class ArrowStream(Protocol):
    """Anything with Arrow's PyCapsule interface, such as a polars or pandas DataFrame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def is_frame(value: object) -> bool:
    return _is_pandas(value) or _is_polars(value) or hasattr(value, "__arrow_c_stream__")


def _is_pandas(value: object) -> bool:
    return hasattr(value, "iloc") and hasattr(value, "columns")


def _is_polars(value: object) -> bool:
    return hasattr(value, "iter_rows") and hasattr(value, "columns")


def frame_rows(frame: Any, name: str) -> tuple[tuple[str, ...], Iterator[dict[str, Any]]]:
    """Columns and rows; `name` is for messages."""
    # Their own methods first: pandas cannot export a column of mixed types to Arrow.
    if _is_pandas(frame):
        return _columns(list(frame.columns), name), _pandas_rows(frame)
    if _is_polars(frame):
        return _columns(frame.columns, name), frame.iter_rows(named=True)
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        raise MissingExtra("pyarrow, which reads Arrow data,", "parquet") from None
    try:
        reader = arrow.RecordBatchReader.from_stream(frame)
    except (arrow.ArrowException, TypeError, ValueError) as error:
        raise DataError.of("data.frame_no_table", name=name, error=error) from None
    return _columns(reader.schema.names, name), _arrow_rows(reader)


def _columns(given: Sequence[object], name: str) -> tuple[str, ...]:
    columns = tuple(str(column) for column in given)
    for place, column in enumerate(columns):
        if column in columns[:place]:
            raise DataError.of("data.frame_column_twice", name=name, column=column)
    return columns


def _pandas_rows(frame: Any) -> Iterator[dict[str, Any]]:
    for start in range(0, len(frame), _ROWS_AT_ONCE):
        part = frame.iloc[start : start + _ROWS_AT_ONCE]
        # pandas has NaN, NaT and NA for a missing value.
        for row in part.astype(object).where(part.notna(), None).to_dict("records"):
            yield {str(column): _listed(value) for column, value in row.items()}


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value  # an array in a cell


def _arrow_rows(reader: Any) -> Iterator[dict[str, Any]]:
    for batch in reader:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield from batch.slice(start, _ROWS_AT_ONCE).to_pylist()
