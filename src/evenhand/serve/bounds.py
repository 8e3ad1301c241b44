"""What a client may send: how long a text, how many criteria, how many pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.contract import Pair
from evenhand.data import BadRow, Record, Records
from evenhand.errors import TooLarge
from evenhand.runs import Sources
from evenhand.serve.config import Limits

_TEXTS = (
    ("prompt", "prompt"),
    ("responseA", "response_a"),
    ("responseB", "response_b"),
    ("context", "context"),
    ("reference", "reference"),
    ("id", "id"),
)


def refuse_large(pair: Pair, limits: Limits) -> None:
    excess = _excess(pair, limits)
    if excess is not None:
        raise TooLarge(excess)


def _excess(pair: Pair, limits: Limits) -> str | None:
    most = limits.field_chars
    for name, attribute in _TEXTS:
        text = getattr(pair, attribute)
        if text is not None and len(text) > most:
            return too_long(name, len(text), most)
    if len(pair.criteria) > limits.criteria:
        return f"criteria has {len(pair.criteria)}; this server takes {limits.criteria} at most"
    for criterion in pair.criteria:
        characters = len(criterion.name) + len(criterion.description or "")
        if characters > most:
            return too_long("a criterion", characters, most)
    return None


def too_long(name: str, characters: int, most: int) -> str:
    return f"{name} has {characters:,} characters; this server takes {most:,} at most; shorten it"


@dataclass(slots=True)
class BoundedSources:
    """Sources whose rows keep to the limits: one that does not is a bad row, and too many of them
    are refused. What they are made of is worked out once: it takes reading them all."""

    sources: Sources
    limits: Limits
    _described: Mapping[str, Any] | None = field(default=None, init=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.sources.names

    @property
    def title(self) -> str:
        return self.sources.title

    @property
    def meaning(self) -> str | None:
        return self.sources.meaning

    def describe(self) -> Mapping[str, Any]:
        if self._described is None:
            self._described = self.sources.describe()
        return self._described

    def records(self) -> Records:
        most = self.limits.run_pairs
        for number, row in enumerate(self._each(), start=1):
            if number > most:
                raise TooLarge(
                    f"{self.title} has more than {most:,} rows; split it into several runs"
                )
            yield row

    def _each(self) -> Iterator[Record | BadRow]:
        for row in self.sources.records():
            excess = _excess(row.pair, self.limits) if isinstance(row, Record) else None
            yield row if excess is None else BadRow(row.source, row.row, excess)

    def close(self) -> None:
        self.sources.close()
