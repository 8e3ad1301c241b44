"""The rows of a file before they mean anything: what every format module hands over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

# A row's number with its columns, or with the reason why it could not be read.
RawRow: TypeAlias = tuple[int, "dict[str, Any] | str"]
RawRows: TypeAlias = Iterator[RawRow]

# Whether a column is of interest, so that a columnar format need not read the others.
Wanted: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Table:
    """`columns` is None where each row names its own; `tabular` cells may spell lists as text."""

    rows: RawRows
    columns: tuple[str, ...] | None = None
    tabular: bool = False


def kind_of(value: object) -> str:
    """What a value is, in the words of JSON, short enough for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {shortened(value)!r}"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return f"a {type(value).__name__}"


def shortened(text: str, *, to: int = 40) -> str:
    return text if len(text) <= to else text[: to - 1] + "…"
