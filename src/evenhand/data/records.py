"""What reading yields: raw rows from the format modules, then records or bad rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evenhand.contract import Pair, Winner
from evenhand.messages import Message

# A row's number with its columns, or the reason why it is unreadable.
RawRow: TypeAlias = tuple[int, "dict[str, Any] | str"]
RawRows: TypeAlias = Iterator[RawRow]

# Whether a column is needed; columnar formats skip the others.
Wanted: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Table:
    """`columns` is None if each row names its own; `tabular` cells may spell lists as text."""

    rows: RawRows
    columns: tuple[str, ...] | None = None
    tabular: bool = False


def kind_of(value: object) -> str:
    """The JSON type of a value, short enough for a message."""
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
    """A tag that knows its column."""

    __slots__ = ("column",)
    column: str

    def __new__(cls, name: str, column: str) -> Tag:
        tag = str.__new__(cls, name)
        tag.column = column
        return tag


@dataclass(frozen=True, slots=True)
class Record:
    """One pair of a data set. `label` is a person's choice, in the pair's labels.

    `cluster` groups rows of different prompts, such as the turns of a conversation: they count
    together, as rows of one prompt do.
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
    """An unusable row: its number in the source and the reason. `turn` distinguishes several pairs
    of one row."""

    source: str
    row: int
    reason: str
    turn: int = 1

    @property
    def message(self) -> str:
        return Message("data.bad_row", source=self.source, row=self.row, reason=self.reason)


@dataclass(frozen=True, slots=True)
class Unpaired(BadRow):
    """An answer to a prompt that other models did not answer.

    `lost` are the pairs it would have been in: their A, their B, and its side.
    """

    lost: tuple[tuple[str, str, Side], ...] = ()


Records: TypeAlias = Iterator[Record | BadRow]
