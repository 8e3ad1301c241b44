"""The pairs that a report in one file holds: a table of them that a browser sorts and filters, and
their texts in packed parts that it opens one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.entities import html5
from types import TracebackType
from typing import Any, Self

import orjson

from evenhand.pages.one_file_choice import Choice
from evenhand.pages.one_file_pair import HeldPair, PairReader
from evenhand.pages.one_file_parts import Parts
from evenhand.pages.texts import ShownResponses, ShownText, show_responses, show_text
from evenhand.pages.wording import Language
from evenhand.store import RunRecord, Store


@dataclass(slots=True)
class _Names:
    """Texts that many rows share, by their place in a list."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, name: str) -> int:
        return self.places.setdefault(name, len(self.places))

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)


@dataclass(frozen=True, slots=True)
class PlainPair:
    """A pair for readers whose browser runs no script."""

    held: HeldPair
    texts: dict[str, ShownText]
    responses: ShownResponses


class PairData:
    """Parts come first, as they are read; the table is known once all of them are."""

    def __init__(
        self,
        store: Store,
        run: RunRecord,
        choice: Choice,
        *,
        language: Language = "en",
        processes: int = 1,
    ) -> None:
        self._numbers = choice.numbers
        self._reader = PairReader(store, run, text_limit=choice.text_limit, language=language)
        self._parts = Parts(store, run, choice, language=language, processes=processes)
        self._names, self._tags = _Names(), _Names()
        self._pairs: list[list[Any]] = []
        self._rows: list[list[Any]] = []
        self._entities: set[str] = set()
        self.cut = 0

    def __enter__(self) -> Self:
        self._parts.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._parts.__exit__(kind, error, traceback)

    @property
    def judges(self) -> list[str]:
        return self._reader.judges

    def first(self, count: int) -> list[PlainPair]:
        return [_plain(pair) for pair in self._reader.read(self._numbers[:count])]

    def parts(self) -> Iterator[str]:
        for number, part in enumerate(self._parts):
            for place, pair in enumerate(part.pairs):
                self._add(pair, number, place)
            self._entities |= part.entities
            yield part.packed

    def table(self) -> str:
        return inert_json(
            {
                "judges": self.judges,
                "names": list(self._names),
                "tags": list(self._tags),
                "entities": {name.rstrip(";"): html5[name] for name in sorted(self._entities)},
                "pairs": self._pairs,
                "rows": self._rows,
            }
        )

    def _add(self, pair: HeldPair, part: int, place: int) -> None:
        self.cut += pair.cut
        a, b = self._names.place(pair.model_a), self._names.place(pair.model_b)
        won = {"A": a, "B": b, "TIE": -1, None: -2}
        for each in pair.verdicts:
            self._rows.append(
                [
                    len(self._pairs),
                    each.judge,
                    each.outcome,
                    each.winner,
                    won[each.winner],
                    each.confidence,
                    each.flags,
                ]
            )
        self._pairs.append(
            [
                pair.number,
                pair.id,
                pair.label,
                a,
                b,
                [self._tags.place(tag) for tag in pair.tags],
                pair.begins,
                pair.length_a,
                pair.length_b,
                part,
                place,
            ]
        )


def _plain(pair: HeldPair) -> PlainPair:
    whole = pair.whole
    texts: dict[str, ShownText] = {
        name: show_text(whole[name], rendered=True)
        for name in ("prompt", "context", "reference")
        if name in whole
    }
    return PlainPair(
        pair, texts, show_responses(whole["a"], whole["b"], rendered=True, differences=True)
    )


def inert_json(value: Any) -> str:
    """JSON that ends no element and no line, wherever HTML holds it."""
    text = orjson.dumps(value).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
