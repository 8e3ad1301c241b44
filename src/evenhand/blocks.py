"""What a person reads, as values: an analysis says it once, and a terminal or a page renders it.
Texts may be messages, which are rendered in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Ruling = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is claimed, or another line of prose."""

    text: str


@dataclass(frozen=True, slots=True)
class Ruled:
    """A ruling and why."""

    ruling: Ruling
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A line each: what it is about, and what is known of it."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Next:
    """What to do about it."""

    text: str


Block: TypeAlias = Sentence | Ruled | Facts | Next
Blocks: TypeAlias = Iterable[Block]
