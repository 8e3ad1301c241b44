"""What a person reads, as values: an analysis says it once, and `present/` turns it into terminal
output, Markdown or HTML. Texts may be messages, which are rendered in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Ruling = Literal["pass", "fail", "undecided"]
Tone = Literal["plain", "strong", "good", "bad", "open", "quiet"]


class Span(NamedTuple):
    """A part of a text with a tone of its own."""

    text: str
    tone: Tone = "plain"


Words: TypeAlias = str | tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is claimed, or another line of prose."""

    text: str
    tone: Tone = "plain"


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
    """A line each: what it is about, and what is known of it."""

    rows: tuple[tuple[Words, Words], ...]
    width: int = 10


@dataclass(frozen=True, slots=True)
class Grid:
    """`names` are columns of text; the others hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: frozenset[str] = frozenset()
    least: tuple[str, ...] = ()  # columns that a narrow terminal leaves out
    total: bool = False  # the last row is of all the others


@dataclass(frozen=True, slots=True)
class Cases:
    """Examples to look at: each with what it is, and what was quoted of it."""

    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True, slots=True)
class Remarks:
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Next:
    """What to do about it."""

    text: str


Block: TypeAlias = Sentence | Title | Ruled | Facts | Grid | Cases | Remarks | Next
Blocks: TypeAlias = Iterable[Block]
