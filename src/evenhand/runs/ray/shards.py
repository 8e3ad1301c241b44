"""The driver's queue of shards: what is pending, in pieces that grow smaller towards the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from evenhand.runs.ray.messages import Shard
from evenhand.store import Store

# A worker reads a shard in one or two queries; the last ones end at nearly the same time.
_LARGEST, _SMALLEST = 512, 16
_PARTS = 4


class ShardQueue:
    """Of one judge. Pairs with the same content share their passes, so the first of each goes
    before all the others: no two workers ask for the same pass."""

    def __init__(
        self,
        store: Store,
        run_id: int,
        judge_id: int,
        *,
        seat: int,
        workers: int,
        pending: Callable[[], int],
        numbers: Iterator[int],
    ) -> None:
        """`numbers` are the shards' own, for all judges together."""
        self._store = store
        self._run_id = run_id
        self._judge_id = judge_id
        self._seat = seat
        self._workers = workers
        self._pending = pending
        self._after = 0
        self._firsts = True
        self._cut_to_the_end = False
        self._returned: deque[Shard] = deque()
        self._numbers = numbers

    @property
    def is_empty(self) -> bool:
        """Until the repeats' turn comes, or a worker is lost."""
        return self._cut_to_the_end and not self._returned

    def give_back(self, shard: Shard) -> None:
        """Its worker was lost; what is judged of it is not pending, and will not be again."""
        self._returned.append(replace(shard, number=next(self._numbers)))

    def begin_repeats(self) -> bool:
        """Once all before them are at their ends; whether it is their turn just now."""
        if not self._firsts:
            return False
        self._firsts, self._cut_to_the_end, self._after = False, False, 0
        return True

    def next(self) -> Shard | None:
        """It asks the store."""
        if self._returned:
            return self._returned.popleft()
        if self._cut_to_the_end:
            return None
        size = min(_LARGEST, max(_SMALLEST, self._pending() // (_PARTS * self._workers)))
        span = self._store.pending_span(
            self._run_id, self._judge_id, after=self._after, limit=size, firsts=self._firsts
        )
        if span is None:
            self._cut_to_the_end = True
            return None
        first, last, _ = span
        self._after = last
        return Shard(next(self._numbers), self._seat, first, last, self._firsts)
