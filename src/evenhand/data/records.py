"""What reading yields: a file's raw rows as every format module hands them over, then records (a
pair with what is known about it) or the reason why a row is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evenhand.contract import Pair, Winner
from evenhand.messages import Message

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
        return Message("data.text_value", value=shortened(value))
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    if isinstance(value, (int, float)):
        return Message("data.number_value", value=value)
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return f"a {type(value).__name__}"


def shortened(text: str, *, to: int = 40) -> str:
    return text if len(text) <= to else text[: to - 1] + "…"


Side: TypeAlias = Literal["A", "B"]


class Tag(str):
    """A tag that knows which column it was read from."""

    __slots__ = ("column",)
    column: str

    def __new__(cls, name: str, column: str) -> Tag:
        tag = str.__new__(cls, name)
        tag.column = column
        return tag


@dataclass(frozen=True, slots=True)
class Record:
    """One pair of a data set. `label` is what a person chose, in the pair's own labels.

    `cluster` is what rows of different prompts have in common, such as the turns of a
    conversation: they count together, as rows of one prompt do.
    """

    key: str
    pair: Pair
    source: str
    row: int
    label: Winner | None = None
    model_a: str | None = None
    model_b: str | None = None
    tags: tuple[str, ...] = ()
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no pair: its number in the source, and the reason on one line. `turn` tells
    apart several pairs that one row would have made."""

    source: str
    row: int
    reason: str
    turn: int = 1

    @property
    def message(self) -> str:
        return Message("data.bad_row", source=self.source, row=self.row, reason=self.reason)


@dataclass(frozen=True, slots=True)
class Unpaired(BadRow):
    """An answer to a prompt that other models have none to.

    `lost` are the pairs that it would have been in: their A, their B, and which side it is.
    """

    lost: tuple[tuple[str, str, Side], ...] = ()


Records: TypeAlias = Iterator[Record | BadRow]
