"""Parquet with typed columns, written one row group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, BinaryIO

from evenhand.errors import MissingExtra
from evenhand.report.records import COLUMNS, ONLY_IN_FULL, RunRow

# A row group is held in memory whole: by its texts where they are long, else by its rows.
_GROUP_ROWS = 2000
_GROUP_CHARACTERS = 16_000_000
# Texts that hardly ever repeat: a dictionary, or their least and greatest, would be copies of them.
_LONG_TEXTS = ("id", "prompt", "response_a", "response_b", "reasoning", "error_message")


def write_parquet(stream: BinaryIO, rows: Iterable[RunRow]) -> int:
    arrow, parquet = load_pyarrow()
    schema = _schema(arrow)
    count = 0
    short = [column for name, column in COLUMNS.items() if name not in _LONG_TEXTS]
    with parquet.ParquetWriter(
        _Counted(stream),
        schema,
        compression="zstd",
        use_dictionary=short,
        write_statistics=short,
    ) as writer:
        for group in _groups(rows):
            count += len(group)
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))
    return count


def load_pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("pyarrow, which writes Parquet,", "parquet") from None


def _schema(arrow: Any) -> Any:
    text = arrow.string()
    criterion = arrow.struct([("criterion", text), ("winner", text), ("outcome", text)])
    kinds = {
        "row": arrow.int64(),
        "tags": arrow.list_(text),
        "confidence": arrow.float64(),
        "abstained": arrow.bool_(),
        "consistent": arrow.bool_(),
        "criteria": arrow.list_(criterion),
        "input_tokens": arrow.int64(),
        "output_tokens": arrow.int64(),
        "cost_usd": arrow.float64(),
        "time_ms": arrow.float64(),
    }
    return arrow.schema([(column, kinds.get(name, text)) for name, column in COLUMNS.items()])


def _groups(rows: Iterable[RunRow]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    characters = 0
    for row in rows:
        group.append(row.model_dump(mode="json", exclude=set(ONLY_IN_FULL)))
        characters += len(row.prompt) + len(row.response_a) + len(row.response_b)
        characters += len(row.reasoning)
        if len(group) >= _GROUP_ROWS or characters >= _GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


class _Counted:
    """Parquet asks how far it has come, which a pipe does not know."""

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._written = 0

    def write(self, data: bytes) -> int:
        self._stream.write(data)
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """The stream is closed by whoever opened it."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
