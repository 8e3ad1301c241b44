"""Merge insertion (Ford and Johnson, "A tournament problem", 1959): sorting few items with the
fewest comparisons known, as a generator of batches of independent comparisons.

Tied items share a place. After a few comparisons without a verdict, an item stays unplaced between
its known bounds.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from enum import Enum


class ComparisonResult(Enum):
    FIRST = "first"  # the first is better
    SECOND = "second"
    EQUAL = "equal"  # they could not be told apart
    NOTHING = "nothing"  # there was no verdict


Batch = list[tuple[int, int]]
BatchGenerator = Generator[Batch, list[ComparisonResult], "Order"]

# Comparisons without a verdict after which an item stays unplaced.
MAX_UNDECIDED = 3


@dataclass(eq=False, slots=True)
class Level:
    """Items that share a place; comparisons use the first."""

    items: list[int]


@dataclass(eq=False, slots=True)
class Unplaced:
    """Items better than `above` and worse than `below`; None if unbounded."""

    level: Level
    above: Level | None
    below: Level | None


@dataclass(slots=True)
class Order:
    """Levels from worst to best, and the unplaced items."""

    levels: list[Level]
    unplaced: list[Unplaced] = field(default_factory=list)

    def level_of(self, item: int) -> Level | None:
        return next((level for level in self.levels if item in level.items), None)


@dataclass(eq=False, slots=True)
class _Search:
    """An item searching for its place between two bounds."""

    item: int
    above: Level | None = None
    below: Level | None = None
    budget: int = 0  # how many comparisons it may take
    vain: set[int] = field(default_factory=set)  # compared with these, and nothing came of it


def merge_insertion(items: Sequence[int]) -> BatchGenerator:
    """Yields batches of pairs, receives their results, returns the order."""
    if len(items) < 2:
        return Order([Level([item]) for item in items])
    pairs = list(zip(items[::2], items[1::2], strict=False))
    results = yield pairs
    # The odd one out has no partner, nor has one of a pair without a result.
    singles = [_Search(item) for item in items[2 * len(pairs) :]]
    winners: list[int] = []
    losers: dict[int, int] = {}
    equals: list[tuple[int, int]] = []
    for (first, second), answer in zip(pairs, results, strict=True):
        winner, loser = (second, first) if answer is ComparisonResult.SECOND else (first, second)
        winners.append(winner)
        if answer is ComparisonResult.EQUAL:
            equals.append((winner, loser))
        elif answer is ComparisonResult.NOTHING:
            singles.append(_Search(loser, vain={winner}))
        else:
            losers[winner] = loser
    order = yield from merge_insertion(winners)
    everywhere = [*order.levels, *(unplaced.level for unplaced in order.unplaced)]
    for winner, equal in equals:
        next(level for level in everywhere if winner in level.items).items.append(equal)
    yield from _insert(order, losers, singles)
    return order


def _insert(
    order: Order, losers: dict[int, int], singles: list[_Search]
) -> Generator[Batch, list[ComparisonResult], None]:
    """Losers below their winners, each group in the order that keeps the searches short."""
    searches = [_Search(loser, below=_bound_by(order, winner)) for winner, loser in losers.items()]
    searches += singles
    budget = 0
    while searches:
        # Stable: under one bound, the first stays first.
        searches.sort(key=lambda search: _end(order.levels, search))
        size = _group_size([_end(order.levels, search) for search in searches], 2**budget - 1)
        group, searches = searches[:size], searches[size:]
        for search in group:
            search.budget = budget
        # Best first: later insertions then search no more places than they may.
        yield from _place(order, group[::-1])
        budget += 1


def _bound_by(order: Order, winner: int) -> Level | None:
    level = order.level_of(winner)
    if level is not None:
        return level
    return next(each.below for each in order.unplaced if winner in each.level.items)


def _group_size(ends: list[int], most: int) -> int:
    """How many of them find their place among at most `most` levels, inserted best first: each may
    have all those inserted before it below its bound."""
    fitting = [
        size
        for size in range(1, len(ends) + 1)
        if all(ends[j] + size - 1 - j <= most for j in range(size))
    ]
    return max(fitting, default=0)


def _start(levels: list[Level], search: _Search) -> int:
    return 0 if search.above is None else levels.index(search.above) + 1


def _end(levels: list[Level], search: _Search) -> int:
    return len(levels) if search.below is None else levels.index(search.below)


def _place(order: Order, group: list[_Search]) -> Generator[Batch, list[ComparisonResult], None]:
    """All of the group at once, as far as their comparisons are independent."""
    while group:
        asked: list[tuple[_Search, Level]] = []
        waiting: list[_Search] = []
        for search in group:
            pivot = _next_pivot(order, search, waiting)
            if isinstance(pivot, Level):
                asked.append((search, pivot))
                waiting.append(search)
            elif pivot is _Wait.FOR_OTHERS:
                waiting.append(search)
        group = waiting
        if not asked:
            continue  # somebody found a place without a comparison, or gave up
        results = yield [(search.item, pivot.items[0]) for search, pivot in asked]
        for (search, pivot), answer in zip(asked, results, strict=True):
            search.budget -= 1
            if answer is ComparisonResult.FIRST:
                search.above = pivot
            elif answer is ComparisonResult.SECOND:
                search.below = pivot
            elif answer is ComparisonResult.EQUAL:
                pivot.items.append(search.item)
                group.remove(search)
            else:
                search.vain.add(pivot.items[0])


class _Wait(Enum):
    FOR_OTHERS = "others"
    NO_MORE = "none"


def _next_pivot(order: Order, search: _Search, before: list[_Search]) -> Level | _Wait:
    """The next comparison partner; without any left, the item is placed.

    Items `before` it are still searching and may end anywhere within their bounds. A pivot is good
    if the rest fits the budget wherever they end: nothing is asked beyond what the sequential
    algorithm would need.
    """
    levels = order.levels
    start, end = _start(levels, search), _end(levels, search)
    gaps = [(_start(levels, other), _end(levels, other)) for other in before]
    crowded = any(first <= end and start <= last for first, last in gaps)
    if start == end:
        if crowded:
            return _Wait.FOR_OTHERS
        levels.insert(start, Level([search.item]))
        return _Wait.NO_MORE
    candidates = [place for place in range(start, end) if levels[place].items[0] not in search.vain]
    if len(search.vain) >= MAX_UNDECIDED or not candidates:
        if crowded:
            return _Wait.FOR_OTHERS
        order.unplaced.append(Unplaced(Level([search.item]), search.above, search.below))
        return _Wait.NO_MORE

    def worse_side(place: int) -> int:
        left = sum(first <= place and start <= last for first, last in gaps)
        right = sum(first <= end and place < last for first, last in gaps)
        return max(place - start + left, end - place - 1 + right)

    best = min(candidates, key=worse_side)
    if crowded and worse_side(best) > 2 ** max(search.budget - 1, 0) - 1:
        return _Wait.FOR_OTHERS
    return levels[best]
