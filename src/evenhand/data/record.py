"""What reading a data set yields: a pair with what is known about it, or why a row is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from evenhand.contract import Pair, Winner

Side: TypeAlias = Literal["A", "B"]


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
    """A row that is no pair: its number in the source, and the reason on one line."""

    source: str
    row: int
    reason: str

    @property
    def message(self) -> str:
        return f"{self.source}, row {self.row}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Unpaired(BadRow):
    """An answer to a prompt that other models have none to.

    `lost` are the pairs that it would have been in: their A, their B, and which side it is.
    """

    turn: int
    lost: tuple[tuple[str, str, Side], ...]


Records: TypeAlias = Iterator[Record | BadRow]
