"""What a client may send: how long a text, how many criteria, how many pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.contract import Criterion, Pair, json_text
from evenhand.data.records import BadRow, Record, Records
from evenhand.errors import TooLarge
from evenhand.messages import Message
from evenhand.runs.sources import Sources
from evenhand.serve.config import ServerLimits

# In a JSON body that holds a run's pairs; no body may keep a processor for longer than an answer to
# somebody else may wait, and it is values that take time, not characters.
PAIRS_VALUES = 500_000
MCP_VALUES = 100_000  # the protocol's library reads it on the event loop
_NAME_CHARS = 1000  # of a criterion: names are folded and matched again and again
_TEXTS = (
    ("prompt", "prompt"),
    ("responseA", "response_a"),
    ("responseB", "response_b"),
    ("context", "context"),
    ("reference", "reference"),
    ("id", "id"),
)


def values_of_a_pair(limits: ServerLimits) -> int:
    """The most values that a comparison has: its fields, and each criterion's."""
    return 100 + 20 * limits.criteria


def refuse_many_values(body: bytes, most: int) -> None:
    try:
        json_text.refuse_many_values(body, most, object_cost=1)
    except json_text.TooManyValues:
        raise many_values(most) from None


def many_values(most: int) -> TooLarge:
    return TooLarge(Message("serve.body_too_many_values", most=most))


def refuse_wide(given: Mapping[str, Any], limits: ServerLimits, *, rows: str | None = None) -> None:
    """Before it is validated: each unknown field and each wrong value would be a complaint of its
    own. Rows are held to the limits one by one, as they are read."""
    left = values_of_a_pair(limits) - len(given)
    inner = [value for name, value in given.items() if name != rows] if left >= 0 else []
    while inner and left >= 0:
        value = inner.pop()
        if isinstance(value, (Mapping, list)):
            left -= len(value)
            if left >= 0:
                inner.extend(value.values() if isinstance(value, Mapping) else value)
    if left < 0:
        raise TooLarge(Message("serve.request_too_many_values", limits=values_of_a_pair(limits)))


def refuse_large_given(given: Mapping[str, Any], limits: ServerLimits) -> None:
    """A pair that is not yet read, as far as it looks like one."""
    refuse_wide(given, limits)
    criteria = given.get("criteria")
    for criterion in criteria if isinstance(criteria, list) else ():
        name = criterion.get("name") if isinstance(criterion, Mapping) else criterion
        if isinstance(name, str) and len(name) > _NAME_CHARS:
            raise TooLarge(_long_name(name))


def refuse_large_texts(texts: Mapping[str, str | None], limits: ServerLimits) -> None:
    for name, text in texts.items():
        if text is not None and len(text) > limits.field_chars:
            raise TooLarge(too_long(name, len(text), limits.field_chars))


def refuse_large_criteria(criteria: Sequence[Criterion], limits: ServerLimits) -> None:
    excess = _criteria_excess(criteria, limits)
    if excess is not None:
        raise TooLarge(excess)


def refuse_large(pair: Pair, limits: ServerLimits) -> None:
    excess = _excess(pair, limits)
    if excess is not None:
        raise TooLarge(excess)


def _excess(pair: Pair, limits: ServerLimits) -> str | None:
    most = limits.field_chars
    for name, attribute in _TEXTS:
        text = getattr(pair, attribute)
        if text is not None and len(text) > most:
            return too_long(name, len(text), most)
    return _criteria_excess(pair.criteria, limits)


def _criteria_excess(criteria: Sequence[Criterion], limits: ServerLimits) -> str | None:
    if len(criteria) > limits.criteria:
        return (
            f"criteria has {len(criteria)} entries; this server accepts at most {limits.criteria}"
        )
    for criterion in criteria:
        if len(criterion.name) > _NAME_CHARS:
            return _long_name(criterion.name)
        characters = len(criterion.name) + len(criterion.description or "")
        if characters > limits.field_chars:
            return too_long("a criterion", characters, limits.field_chars)
    return None


def _long_name(name: str) -> str:
    return (
        f"a criterion's name has {len(name):,} characters; this server accepts at most "
        f"{_NAME_CHARS:,}; put the rest in its description"
    )


def too_long(name: str, characters: int, most: int) -> str:
    return Message("serve.field_too_long", name=name, characters=characters, most=most)


@dataclass(slots=True)
class BoundedSources:
    """Sources whose rows keep to the limits: one that does not is a bad row, and too many of them
    are refused. What they are made of is worked out once: it takes reading them all."""

    sources: Sources
    limits: ServerLimits
    _described: Mapping[str, Any] | None = field(default=None, init=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.sources.names

    @property
    def title(self) -> str:
        return self.sources.title

    def meaning(self, a: str, b: str) -> Message | None:
        return self.sources.meaning(a, b)

    def describe(self) -> Mapping[str, Any]:
        if self._described is None:
            self._described = self.sources.describe()
        return self._described

    def records(self) -> Records:
        most = self.limits.run_pairs
        for number, row in enumerate(self._each(), start=1):
            if number > most:
                raise TooLarge(Message("data.too_many_rows", title=self.title, most=most))
            yield row

    def _each(self) -> Iterator[Record | BadRow]:
        for row in self.sources.records():
            excess = _excess(row.pair, self.limits) if isinstance(row, Record) else None
            yield row if excess is None else BadRow(row.source, row.row, excess)

    def close(self) -> None:
        self.sources.close()
