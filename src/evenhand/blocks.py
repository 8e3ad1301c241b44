"""What a person reads, as values: an analysis says it once; a terminal, a page, and Markdown for
agents render it. Texts may be messages, which are rendered in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Ruling = Literal["pass", "fail", "undecided"]
Tone = Literal["good", "bad", "unclear", "plain"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is claimed, or another line of prose."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Title:
    text: str


@dataclass(frozen=True, slots=True)
class Ruled:
    """A ruling and why."""

    ruling: Ruling
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A line each: a name, and what is known. A nameless line continues the one above; a rate among
    them is drawn, where there are drawings."""

    rows: tuple[tuple[str, str | Rate], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A line with a label that is coloured by its tone: "habit", "passed", "WARNING"."""

    label: str
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Grid:
    """`left` are the columns of text, by their place; the others hold numbers. A row with fewer
    cells than columns is a heading within the table; `strong` rows are totals."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int] = frozenset({0})
    strong: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with its interval, which is drawn on a line from 0 to 1. `tone` says what it shows.
    Without a rate, `text` says why; a row of names alone is a heading within the block."""

    names: tuple[str, ...]
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    tone: Tone = "unclear"
    text: str = ""  # beside the numbers, or in their place
    counts: tuple[int, ...] = ()

    @property
    def is_heading(self) -> bool:
        return self.rate is None and not self.text and not self.counts


@dataclass(frozen=True, slots=True)
class Rates:
    titles: tuple[str, ...]  # of the names
    value: str  # what the rate is, e.g. "win rate"
    counted: tuple[str, ...]  # titles of the counts
    rows: tuple[Rate, ...]


@dataclass(frozen=True, slots=True)
class NoteLines:
    """What qualifies the numbers above."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """An aside, such as what is not shown here."""

    text: str


@dataclass(frozen=True, slots=True)
class Next:
    """What to do about it."""

    text: str


Block: TypeAlias = (
    Sentence | Title | Ruled | Facts | Finding | Grid | Rates | NoteLines | Remark | Next
)
Blocks: TypeAlias = Iterable[Block]
