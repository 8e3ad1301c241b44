"""Which pairs a report in one file holds, how much of a long text, and what is packed together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evenhand.store import RunRecord, Store

MOST_PAIRS = 20_000
# What texts may come to before they are packed, and what one text is cut to for that.
_MOST_CHARACTERS = 250_000_000
_TEXT_LIMITS = (50_000, 20_000, 8_000, 3_000)
# A browser opens a packed part whole for one pair of it; a page of them is little to wait for.
_PAIRS_IN_A_PART = 50
_PART_CHARACTERS = 1_000_000
# The same pairs whenever the report is made anew.
_SEED = 20_260_101


@dataclass(frozen=True, slots=True)
class Choice:
    """Which pairs are in the file: all, or so many by lot. Texts are cut at `text_limit`; `lengths`
    are of each pair's two responses together."""

    numbers: Sequence[int]
    of: int
    text_limit: int
    lengths: Sequence[int]

    @property
    def all(self) -> bool:
        return len(self.numbers) == self.of

    def parts(self) -> Iterator[tuple[int, ...]]:
        """The numbers of the pairs that are packed together."""
        part: list[int] = []
        characters = 0
        for number, length in zip(self.numbers, self.lengths, strict=True):
            part.append(number)
            characters += min(length, 2 * self.text_limit)
            if len(part) >= _PAIRS_IN_A_PART or characters >= _PART_CHARACTERS:
                yield tuple(part)
                part, characters = [], 0
        if part:
            yield tuple(part)


def choose(store: Store, run: RunRecord, *, at_most: int) -> Choice:
    """Each judged pair has the same chance, whatever came of it: what is in the file looks like
    what is not. By lot and not every tenth, since data often come in turns."""
    judged: dict[int, int] = {}
    for judge in store.run_judges(run.id):
        columns = store.outcome_columns(run.id, judge.id)
        for number, a, b in zip(columns.number, columns.length_a, columns.length_b, strict=True):
            judged[int(number)] = int(a) + int(b)
    numbers = sorted(judged)
    if len(numbers) > at_most:
        drawn = random.Random(_SEED).sample(numbers, at_most)  # noqa: S311 - no secret
        numbers = sorted(drawn)
    lengths = [judged[number] for number in numbers]
    return Choice(numbers, len(judged), _text_limit(lengths), lengths)


def _text_limit(lengths: Sequence[int]) -> int:
    for limit in _TEXT_LIMITS:
        if sum(min(length, 2 * limit) for length in lengths) <= _MOST_CHARACTERS:
            return limit
    return _TEXT_LIMITS[-1]
