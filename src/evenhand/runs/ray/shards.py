"""Pending pairs cut into shards: the driver's queue, and a worker's supply."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from evenhand.runs.ray.messages import Shard
from evenhand.runs.supply import FETCHED_AT_ONCE, FetchedAhead
from evenhand.store import Store, WorkItem

# A worker reads a shard in one or two queries; the last ones end at nearly the same time.
_LARGEST, _SMALLEST = 512, 16
_PARTS = 4


class ShardQueue:
    """For one judge. Pairs with the same content share passes, so the first of each goes before all
    others: no two workers request the same pass."""

    def __init__(
        self,
        store: Store,
        run_id: int,
        judge_id: int,
        *,
        judge_index: int,
        workers: int,
        pending: Callable[[], int],
        numbers: Iterator[int],
    ) -> None:
        """`numbers` are unique over all judges."""
        self._store = store
        self._run_id = run_id
        self._judge_id = judge_id
        self._judge_index = judge_index
        self._workers = workers
        self._pending = pending
        self._after = 0
        self._firsts = True
        self._cut_to_the_end = False
        self._returned: deque[Shard] = deque()
        self._numbers = numbers

    @property
    def is_empty(self) -> bool:
        """Until the repeats begin, or a worker is lost."""
        return self._cut_to_the_end and not self._returned

    def give_back(self, shard: Shard) -> None:
        """Of a lost worker; pairs judged already are no longer pending."""
        self._returned.append(replace(shard, number=next(self._numbers)))

    def begin_repeats(self) -> bool:
        """Once all first items are done; whether the repeats begin now."""
        if not self._firsts:
            return False
        self._firsts, self._cut_to_the_end, self._after = False, False, 0
        return True

    def next(self) -> Shard | None:
        """Queries the store."""
        if self._returned:
            return self._returned.popleft()
        if self._cut_to_the_end:
            return None
        size = min(_LARGEST, max(_SMALLEST, self._pending() // (_PARTS * self._workers)))
        span = self._store.work.pending_span(
            self._run_id, self._judge_id, after=self._after, limit=size, firsts=self._firsts
        )
        if span is None:
            self._cut_to_the_end = True
            return None
        first, last, _ = span
        self._after = last
        return Shard(next(self._numbers), self._judge_index, first, last, self._firsts)


# A worker's supply: the pending pairs of its shards, and a request for more.


class ShardSupply(FetchedAhead):
    def __init__(
        self, store: Store, run_id: int, judge_id: int, *, hungry: Callable[[], None]
    ) -> None:
        """`hungry` is called when the last shard is nearly read."""
        super().__init__(store, run_id, judge_id)
        self._hungry = hungry
        self._shards: deque[Shard] = deque()
        self._after = 0
        self._read: list[Shard] = []  # to their ends, and maybe not judged to theirs
        self._no_more = False
        self._more = asyncio.Event()
        self._reading: asyncio.Task[list[WorkItem]] | None = None
        self._waits = False

    @property
    def wants_shard(self) -> bool:
        return not self._shards and not self._no_more

    @property
    def is_empty(self) -> bool:
        """Everything is read, and the consumer waits for more."""
        return self._waits and not self._shards

    def give(self, shard: Shard) -> None:
        if not self._shards:
            self._after = shard.first - 1
        self._shards.append(shard)
        self._more.set()

    def end(self) -> None:
        """There will be no more, or none is wanted."""
        self._no_more = True
        self._more.set()

    def close(self) -> None:
        self.end()
        super().close()

    async def closed(self) -> None:
        """Waits until no thread reads the store for it."""
        self.close()
        if self._reading is not None:
            await asyncio.wait([self._reading])

    def finished(self) -> list[Shard]:
        """Shards with nothing pending, each reported once. Queries the store."""
        over = [shard for shard in self._read if not self._is_pending(shard)]
        self._read = [shard for shard in self._read if shard not in over]
        return over

    def _is_pending(self, shard: Shard) -> bool:
        left = self._store.work.pending_span(
            self._run_id,
            self._judge_id,
            after=shard.first - 1,
            up_to=shard.last,
            limit=1,
            firsts=shard.firsts,
        )
        return left is not None

    def _pending(self, shard: Shard) -> list[WorkItem]:
        return self._store.work.pending(
            self._run_id,
            self._judge_id,
            after=self._after,
            up_to=shard.last,
            limit=FETCHED_AT_ONCE,
            firsts=shard.firsts,
        )

    async def _fetch(self) -> list[WorkItem]:
        while True:
            while not self._shards:
                if self._no_more:
                    return []
                self._more.clear()
                self._waits = True
                self._hungry()
                await self._more.wait()
                self._waits = False
            shard = self._shards[0]
            self._reading = asyncio.create_task(asyncio.to_thread(self._pending, shard))
            fetched = await asyncio.shield(self._reading)
            if fetched:
                self._after = fetched[-1].number
            if not fetched or self._after >= shard.last:
                self._read.append(self._shards.popleft())
                if self._shards:
                    self._after = self._shards[0].first - 1
                else:
                    self._hungry()
            if fetched:
                return fetched
