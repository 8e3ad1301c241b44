"""How the pairs that people should label are shared out in rounds when several vote at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.report.label_samples import label_queue
from evenhand.stats.juries.accuracy import PLURALITY
from evenhand.stats.seeded_order import order_key
from evenhand.store import Draw, RunItem, RunRecord, Store
from evenhand.store.records import PairStanding
from evenhand.trust.panels import predictions_of

# The pairs come in the order of the label queue, in which those come early where a label helps
# most, in rounds. A round's pairs are spread over the people, and the next round begins once each
# has a label: so that the chances by which pairs were drawn are those of whole rounds, and hold at
# the end of each. Now and then a person gets a pair that others have labelled, for their
# agreement's sake.

# More than people will vote on, so that a run of a million pairs does not fill the memory.
_KEPT = 50_000
_FIRST_ROUND = 20
_GROWTH = 8  # a round is at least an eighth of what was drawn before: there are 60 of them at most
_SHARED_EVERY = 5  # of a person's votes, one is on a pair that others have voted on
_READ_AT_ONCE = 1_000

ReadStandings = Callable[[Sequence[int], str], Sequence[PairStanding]]


@dataclass(frozen=True, slots=True)
class VoteQueue:
    """The pairs to vote on, the first of each where rows repeat it; `chances` are NaN in an even
    draw. `pairs` counts all of the run's, of which the queue may be the beginning."""

    numbers: NDArray[np.int64]
    pair_ids: NDArray[np.int64]
    chances: NDArray[np.float64]
    draw: Draw
    pairs: int

    def place_of(self, number: int) -> int | None:
        places = np.flatnonzero(self.numbers == number)
        return int(places[0]) if places.size else None

    def chance_at(self, place: int) -> float | None:
        chance = float(self.chances[place])
        return None if math.isnan(chance) else chance


@dataclass(frozen=True, slots=True)
class VoterProgress:
    """A person's way through the queue. `asked` and `last` are places: the pair to show now, None
    where none is left, and the last one voted on, for whoever thinks again. `reach`: how far the
    rounds have come."""

    asked: int | None
    voted: int
    skipped: int
    last: int | None
    reach: int
    own: frozenset[int]


def vote_queue(store: Store, run: RunRecord, *, seed: int = 0) -> VoteQueue:
    """By doubt where every pair has its verdicts. Of a run that goes on nobody knows yet which
    will be doubtful: there every pair has the same chance, the same order as in the terminal."""
    if run.state == "finished":
        try:
            return _by_doubt(store, run, seed=seed)
        except InputError:
            pass  # nothing was judged, or the judges cannot be taken together
    firsts: dict[int, RunItem] = {}
    for item in store.items.all(run.id):
        firsts.setdefault(item.pair_id, item)
    ordered = sorted(
        firsts.values(), key=lambda item: (order_key(item.key, seed=seed), item.number)
    )
    return _queue(ordered[:_KEPT], None, draw="random", pairs=len(ordered))


def _by_doubt(store: Store, run: RunRecord, *, seed: int) -> VoteQueue:
    jury = PLURALITY if len(store.runs.judges(run.id)) > 1 else None
    columns = predictions_of(store, run, jury=jury).columns
    queue = label_queue(store, run.id, columns, seed=seed)
    order = queue.draw.queue[:_KEPT]
    items = [queue.items[place] for place in order.tolist()]
    pairs = len(queue.items)
    if not queue.by_doubt:
        return _queue(items, None, draw="random", pairs=pairs)
    chances = np.empty(len(items))
    for start, end in rounds(len(items)):
        chances[start:end] = queue.chances_after(end)[order[start:end]]
    return _queue(items, chances, draw="weighted", pairs=pairs)


def _queue(
    items: Sequence[RunItem], chances: NDArray[np.float64] | None, *, draw: Draw, pairs: int
) -> VoteQueue:
    return VoteQueue(
        numbers=np.array([item.number for item in items], dtype=np.int64),
        pair_ids=np.array([item.pair_id for item in items], dtype=np.int64),
        chances=np.full(len(items), np.nan) if chances is None else chances,
        draw=draw,
        pairs=pairs,
    )


def rounds(pairs: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < pairs:
        end = min(pairs, start + max(_FIRST_ROUND, start // _GROWTH))
        yield start, end
        start = end


def voter_progress(
    queue: VoteQueue, who: str, standings: ReadStandings, *, seed: int = 0
) -> VoterProgress:
    """`standings` reads how far some pairs are: those of the rounds so far are enough."""
    read = _QueueProgress(queue, who, standings)
    fresh: int | None = None
    reach = 0
    for start, end in rounds(queue.numbers.size):
        read.up_to(end)
        reach = end
        if fresh is None:
            free = [p for p in range(start, end) if p not in read.own and p not in read.labelled]
            fresh = min(free, key=lambda place: read.turn(place, seed), default=None)
        # The next round may have begun for others; somebody may have taken back a vote since.
        if fresh is not None and not read.is_half_done(start, end):
            break
    done = len(read.own)
    shared: int | None = None
    if fresh is None or done % _SHARED_EVERY == _SHARED_EVERY - 1:
        others = [(count, place) for place, count in read.others.items()]
        shared = min(others)[1] if others else None
    return VoterProgress(
        asked=fresh if shared is None else shared,
        voted=done - read.skipped,
        skipped=read.skipped,
        last=read.last,
        reach=reach,
        own=frozenset(read.own),
    )


class _QueueProgress:
    """What people have said of the beginning of a queue."""

    def __init__(self, queue: VoteQueue, who: str, standings: ReadStandings) -> None:
        self._queue = queue
        self._who = who
        self._standings = standings
        self._to = 0
        self._last_at: float | None = None
        self._touched: set[int] = set()
        self.own: set[int] = set()
        self.labelled: set[int] = set()
        self.others: dict[int, int] = {}  # labels of others, where the person has not voted
        self.skipped = 0
        self.last: int | None = None

    def turn(self, place: int, seed: int) -> int:
        """Which of a round's pairs comes first: another one for everybody, without a word."""
        return order_key(f"turn\0{self._who}\0{self._queue.pair_ids[place]}", seed=seed)

    def is_half_done(self, start: int, end: int) -> bool:
        return 2 * len(self._touched.intersection(range(start, end))) >= end - start

    def up_to(self, end: int) -> None:
        if end <= self._to:
            return
        start, self._to = self._to, max(end, self._to + _READ_AT_ONCE)
        pair_ids = self._queue.pair_ids[start : self._to].tolist()
        places = {pair_id: start + place for place, pair_id in enumerate(pair_ids)}
        for known in self._standings(pair_ids, self._who):
            self._take(places[known.pair_id], known)

    def _take(self, place: int, known: PairStanding) -> None:
        self._touched.add(place)
        if known.labels:
            self.labelled.add(place)
        if not known.own:
            if known.others:
                self.others[place] = known.others
            return
        self.own.add(place)
        self.skipped += known.skipped
        at = known.page_at
        if at is not None and (self._last_at is None or at > self._last_at):
            self.last, self._last_at = place, at
