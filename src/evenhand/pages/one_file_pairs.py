"""The pairs that a report in one file holds: a table of them that a browser sorts and filters, and
their texts in packed parts that it opens one at a time."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from evenhand.contract import Failure, Outcome, Pass, Verdict
from evenhand.pages.one_file_choice import Choice
from evenhand.report.records import RunRow, row_of
from evenhand.store import RunRecord, Store, WholeVerdict
from evenhand.store.verdict_search import VerdictPlace

# A browser opens a packed part whole for one pair of it; a page of them is little to wait for.
_PAIRS_IN_A_PART = 50
_PART_CHARACTERS = 1_000_000
_READ_AT_ONCE = 64
_BEGINNING = 120

DISAGREES, JUDGES_DIFFER, NOTED, ABSTAINED = 1, 2, 4, 8


@dataclass(slots=True)
class _Names:
    """Texts that many rows share, by their place in a list."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, name: str) -> int:
        return self.places.setdefault(name, len(self.places))

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)


class PairData:
    """Parts come first, as they are read; the table is known once all of them are."""

    def __init__(self, store: Store, run: RunRecord, choice: Choice) -> None:
        self._store = store
        self._run = run
        self._judges = {judge.id: judge for judge in store.run_judges(run.id)}
        self._place_of = {judge_id: place for place, judge_id in enumerate(self._judges)}
        self._choice = choice
        self._names, self._tags, self._criteria = _Names(), _Names(), _Names()
        self._pairs: list[list[Any]] = []
        self._rows: list[list[Any]] = []
        self.cut = 0

    def first(self, count: int) -> list[dict[str, Any]]:
        """For readers whose browser runs no script."""
        shown = PairData(self._store, self._run, Choice(self._choice.numbers[:count], 0, 20_000))
        whole = [shown._pair(each) for each in shown._read()]
        names = [judge.name for judge in self._judges.values()]
        kinds = iter(
            winner if outcome == Outcome.WIN.value else outcome
            for _, _, outcome, winner, *_ in shown._rows
        )
        for pair, row in zip(whole, shown._pairs, strict=True):
            pair["row"] = row
            for judged in pair["judged"]:
                judged |= {"name": names[judged["judge"]], "kind": next(kinds)}
        return whole

    def parts(self) -> Iterator[str]:
        """Gzip in base64: no sign in it means anything to HTML."""
        part: list[bytes] = []
        characters = 0
        number = 0
        for whole in self._read():
            part.append(orjson.dumps(self._pair(whole)))
            self._pairs[-1] += [number, len(part) - 1]
            characters += len(part[-1])
            if len(part) >= _PAIRS_IN_A_PART or characters >= _PART_CHARACTERS:
                yield _packed(part)
                part, characters, number = [], 0, number + 1
        if part:
            yield _packed(part)

    def table(self) -> str:
        return inert_json(
            {
                "judges": [judge.name for judge in self._judges.values()],
                "names": list(self._names),
                "tags": list(self._tags),
                "criteria": list(self._criteria),
                "pairs": self._pairs,
                "rows": self._rows,
            }
        )

    def _read(self) -> Iterator[list[WholeVerdict]]:
        """A pair's verdicts by all judges together."""
        numbers = self._choice.numbers
        for start in range(0, len(numbers), _READ_AT_ONCE):
            wanted = [
                VerdictPlace(number, judge_id)
                for number in numbers[start : start + _READ_AT_ONCE]
                for judge_id in self._judges
            ]
            by_number: dict[int, list[WholeVerdict]] = {}
            for whole in self._store.whole_verdicts_at(self._run.id, wanted):
                by_number.setdefault(whole.row.item.number, []).append(whole)
            for number in sorted(by_number):
                yield sorted(by_number[number], key=lambda each: self._place_of[each.row.judge_id])

    def _pair(self, whole: list[WholeVerdict]) -> dict[str, Any]:
        item, pair = whole[0].row.item, whole[0].pair
        sides = [
            self._names.place(item.model_a or "A"),
            self._names.place(item.model_b or "B"),
        ]
        told_rows = [
            row_of(each, run=self._run, judge=self._judges[each.row.judge_id]) for each in whole
        ]
        for each, told in zip(whole, told_rows, strict=True):
            self._rows.append(self._row(each, told, whole, sides))
        self._pairs.append(
            [
                item.number,
                self._cut(item.key),
                item.label,
                *sides,
                [self._tags.place(tag) for tag in item.tags],
                " ".join(pair.prompt[: 2 * _BEGINNING].split())[:_BEGINNING],
                len(pair.response_a),
                len(pair.response_b),
            ]
        )
        texts = {
            "prompt": pair.prompt,
            "context": pair.context,
            "reference": pair.reference,
            "a": pair.response_a,
            "b": pair.response_b,
        }
        shown = {name: self._cut(text) for name, text in texts.items() if text is not None}
        cut = {
            name: len(text)
            for name, text in texts.items()
            if text is not None and len(text) > self._choice.text_limit
        }
        self.cut += bool(cut)
        judged = [
            self._judged(told, self._place_of[each.row.judge_id])
            for each, told in zip(whole, told_rows, strict=True)
        ]
        return {**shown, "cut": cut, "judged": judged}

    def _row(
        self, own: WholeVerdict, told: RunRow, whole: list[WholeVerdict], sides: list[int]
    ) -> list[Any]:
        row = own.row
        winner = {"A": sides[0], "B": sides[1], "TIE": -1, None: -2}[row.winner]
        decided = {each.row.winner for each in whole if _stands(each.row.outcome)}
        label = row.item.label
        agrees = _stands(row.outcome) and row.winner == label
        notes = told.verdict.notes if isinstance(told.verdict, Verdict) else ()
        flags = (
            DISAGREES * (label is not None and not agrees)
            + JUDGES_DIFFER * (len(decided) > 1)
            + NOTED * bool(notes)
            + ABSTAINED * row.abstained
        )
        judge = self._place_of[row.judge_id]
        return [
            len(self._pairs),
            judge,
            row.outcome.value,
            row.winner,
            winner,
            row.confidence,
            flags,
        ]

    def _judged(self, told: RunRow, judge: int) -> dict[str, Any]:
        settled = told.verdict
        passes = [self._pass(made) for made in settled.metadata.passes]
        said = {made.get("why") for made in passes}
        found: dict[str, Any] = {
            "judge": judge,
            "source": told.confidence_source,
            "passes": passes,
            "criteria": [
                [self._criteria.place(each.criterion), each.outcome.value, each.winner]
                for each in told.criteria
            ],
            "in": told.input_tokens,
            "out": told.output_tokens,
            "cost": told.cost_usd,
            "ms": round(told.time_ms),
        }
        # Most verdicts have the reasoning of one of their passes, which is there already.
        if told.reasoning and self._cut(told.reasoning) not in said:
            found["why"] = self._cut(told.reasoning)
        if isinstance(settled, Failure):
            found["error"] = self._cut(settled.error.message)
        elif settled.notes:
            found["notes"] = [self._cut(note) for note in settled.notes]
        return found

    def _pass(self, made: Pass) -> dict[str, Any]:
        told: dict[str, Any] = {
            "first": "A" if made.order == "original" else "B",
            "sample": made.sample,
            "ms": round(made.time_ms),
        }
        if made.ballot is not None:
            told |= {
                "winner": made.ballot.winner,
                "confidence": made.ballot.confidence,
                "why": self._cut(made.ballot.reasoning),
                "criteria": [
                    [self._criteria.place(each.criterion), each.winner, self._cut(each.reasoning)]
                    for each in made.ballot.criteria
                ],
            }
        elif made.unread is not None:
            told |= {"unread": made.unread.reason, "raw": self._cut(made.unread.raw)}
        return told

    def _cut(self, text: str) -> str:
        return text[: self._choice.text_limit]


def _stands(outcome: Outcome) -> bool:
    return outcome in (Outcome.WIN, Outcome.TIE)


def _packed(pairs: Sequence[bytes]) -> str:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    packed = packer.compress(b"[" + b",".join(pairs) + b"]") + packer.flush()
    return base64.b64encode(packed).decode()


def inert_json(value: Any) -> str:
    """JSON that ends no element and no line, wherever HTML holds it."""
    text = orjson.dumps(value).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
