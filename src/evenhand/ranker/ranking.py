"""A ranking of responses: the places that each may have, and the notes on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from evenhand.contract import ErrorBody, Locale, Outcome, Usage
from evenhand.contract.model import Model
from evenhand.messages import Message, Sentence
from evenhand.ranker.merge_insertion import Level, Order

# How two neighbours relate: the result of their comparison, if any; `identical` texts; `implied` by
# other comparisons; `shared`, placed beside the same one; `unknown`.
Relation = Literal[
    "win",
    "tie",
    "inconsistent",
    "abstained",
    "invalid",
    "identical",
    "implied",
    "shared",
    "unknown",
]


class RankedResponse(Model):
    """One response and its possible places; `index` counts from 0 in the caller's list.

    Indistinguishable responses share places: two at the top are both 1 to 2.
    """

    index: int = Field(ge=0)
    rank_from: int = Field(ge=1)
    rank_to: int = Field(ge=1)


class ResponseComparison(Model):
    """One comparison in both orders. `winner` is an index, and null unless the outcome is `win`."""

    first: int = Field(ge=0)
    second: int = Field(ge=0)
    outcome: Outcome
    winner: int | None
    confidence: float | None = Field(default=None, ge=0, le=1)
    abstained: bool = False
    reasoning: str = ""
    error: ErrorBody | None = None  # why there is no verdict, where the outcome is `invalid`


class AdjacentResponses(Model):
    """Two neighbours in the ranking, and the evidence for their order.

    `winner` and `confidence` are of their own comparison, null if there was none.
    """

    upper: int = Field(ge=0)
    lower: int = Field(ge=0)
    compared: bool
    relation: Relation
    winner: int | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)


class Contradiction(Model):
    """Responses in a circle: each beat or tied with the next, and the last beat the first. They
    share their places."""

    circle: tuple[int, ...]


class RankingMetadata(Model):
    responses: int
    comparisons: int
    invalid: int = 0
    evaluation_time_ms: float = 0
    judge: str | None = None
    judge_caveat: Sentence | None = None
    usage: Usage = Usage()


class RankedResponses(Model):
    """Best first. Rests on single comparisons: `neighbours` says how sure each step is."""

    success: Literal[True] = True
    ranking: tuple[RankedResponse, ...]
    neighbours: tuple[AdjacentResponses, ...]
    comparisons: tuple[ResponseComparison, ...]
    contradictions: tuple[Contradiction, ...] = ()
    notes: tuple[Sentence, ...] = ()
    metadata: RankingMetadata


# From an order and its comparisons to each response's possible places; pure.


class Places:
    """Who is better than whom, directly and by implication.

    `twins` are an item's identical texts, itself included.
    """

    def __init__(
        self,
        order: Order,
        comparisons: Sequence[ResponseComparison],
        twins: Mapping[int, Sequence[int]],
    ) -> None:
        self._comparisons = comparisons
        self._twins = {each: items[0] for items in twins.values() for each in items}
        levels = [*order.levels, *(unplaced.level for unplaced in order.unplaced)]
        self._members = [
            sorted(twin for item in level.items for twin in twins[item]) for level in levels
        ]
        self._level_of = {
            each: place for place, members in enumerate(self._members) for each in members
        }
        self._below = _closure(_beaten(order, levels, comparisons, self._level_of))
        self.ranking = self._ranked()
        self.neighbours = tuple(
            self._between(upper.index, lower.index)
            for upper, lower in zip(self.ranking, self.ranking[1:], strict=False)
        )
        self.contradictions = self._circles()

    def better(self, one: int, other: int) -> bool:
        """Whether one is better and the other is not."""
        upper, lower = self._level_of[one], self._level_of[other]
        return lower in self._below[upper] and upper not in self._below[lower]

    def _ranked(self) -> tuple[RankedResponse, ...]:
        everyone = sorted(self._level_of)
        ranked = [
            RankedResponse(
                index=each,
                rank_from=1 + sum(self.better(other, each) for other in everyone),
                rank_to=len(everyone) - sum(self.better(each, other) for other in everyone),
            )
            for each in everyone
        ]
        return tuple(sorted(ranked, key=lambda r: (r.rank_from, r.rank_to, r.index)))

    def _between(self, upper: int, lower: int) -> AdjacentResponses:
        direct = self._direct(upper, lower)
        if direct is None or direct.outcome is Outcome.INVALID:
            relation = self._undirected(upper, lower, asked=direct is not None)
            return AdjacentResponses(upper=upper, lower=lower, compared=False, relation=relation)
        # Comparisons name the first of identical texts.
        winner = upper if direct.winner == self._twins[upper] else lower
        return AdjacentResponses(
            upper=upper,
            lower=lower,
            compared=True,
            relation="abstained" if direct.abstained else direct.outcome.value,
            winner=None if direct.winner is None else winner,
            confidence=direct.confidence,
        )

    def _undirected(self, upper: int, lower: int, *, asked: bool) -> Relation:
        if self._twins[upper] == self._twins[lower]:
            return "identical"
        if self.better(upper, lower):
            return "implied"
        if self._level_of[upper] == self._level_of[lower]:
            return "shared"
        return "invalid" if asked else "unknown"

    def _direct(self, one: int, other: int) -> ResponseComparison | None:
        wanted = {self._twins[one], self._twins[other]}
        return next((c for c in self._comparisons if {c.first, c.second} == wanted), None)

    def _circles(self) -> tuple[Contradiction, ...]:
        """One for each win that contradicts the order of the others."""
        circles: list[Contradiction] = []
        earlier: dict[int, set[int]] = {}
        for comparison in self._comparisons:
            first, second, winner = comparison.first, comparison.second, comparison.winner
            if winner is None or comparison.abstained:
                if comparison.outcome is not Outcome.INVALID:
                    earlier.setdefault(first, set()).add(second)
                    earlier.setdefault(second, set()).add(first)
                continue
            loser = second if winner == first else first
            if self._level_of[winner] in self._below[self._level_of[loser]]:
                path = _path(earlier, loser, winner)
                if path:
                    circles.append(Contradiction(circle=tuple(path)))
            earlier.setdefault(winner, set()).add(loser)
        return tuple(circles)


def _beaten(
    order: Order,
    levels: Sequence[Level],
    comparisons: Iterable[ResponseComparison],
    level_of: Mapping[int, int],
) -> list[set[int]]:
    """For each level, those right below it: by the order, by bounds, by single comparisons."""
    number = {id(level): place for place, level in enumerate(levels)}
    below: list[set[int]] = [set() for _ in levels]
    for worse, better in zip(order.levels, order.levels[1:], strict=False):
        below[number[id(better)]].add(number[id(worse)])
    for unplaced in order.unplaced:
        own = number[id(unplaced.level)]
        if unplaced.above is not None:
            below[own].add(number[id(unplaced.above)])
        if unplaced.below is not None:
            below[number[id(unplaced.below)]].add(own)
    for comparison in comparisons:
        if comparison.winner is not None and not comparison.abstained:
            first, second = level_of[comparison.first], level_of[comparison.second]
            winner, loser = (
                (first, second) if comparison.winner == comparison.first else (second, first)
            )
            if winner != loser:
                below[winner].add(loser)
    return below


def _closure(below: list[set[int]]) -> list[set[int]]:
    """Everything reachable from each item; itself only within a circle."""
    reached: list[set[int]] = []
    for direct in below:
        seen: set[int] = set()
        ahead = list(direct)
        while ahead:
            place = ahead.pop()
            if place not in seen:
                seen.add(place)
                ahead.extend(below[place])
        reached.append(seen)
    return reached


def _path(steps: Mapping[int, set[int]], start: int, end: int) -> list[int]:
    """The shortest path from one item to another, or empty."""
    previous: dict[int, int] = {start: start}
    ahead = deque([start])
    while ahead:
        item = ahead.popleft()
        if item == end:
            path = [item]
            while path[-1] != start:
                path.append(previous[path[-1]])
            return path[::-1]
        for following in sorted(steps.get(item, ())):
            if following not in previous:
                previous[following] = item
                ahead.append(following)
    return []


def notes_on_ranking(
    ranking: tuple[RankedResponse, ...],
    comparisons: tuple[ResponseComparison, ...],
    *,
    contradictions: tuple[Contradiction, ...],
    repeated: int,
    unasked: int,
    locale: Locale,
) -> tuple[str, ...]:
    def note(sentence: str, **values: int) -> Message:
        return Message.of(f"ranking.{sentence}", values, locale)

    shared = sum(each.rank_from != each.rank_to for each in ranking)
    invalid = sum(each.outcome == "invalid" for each in comparisons)
    notes = [note("single")] if comparisons else []
    if shared:
        notes.append(note("shared", count=shared, total=len(ranking)))
    if invalid:
        notes.append(note("invalid", count=invalid, total=len(comparisons)))
    if contradictions:
        notes.append(note("circles", count=len(contradictions)))
    if unasked:
        notes.append(note("unasked", made=len(comparisons)))
    if repeated:
        notes.append(note("identical", count=repeated))
    return tuple(notes)
