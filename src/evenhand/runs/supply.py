"""Where a queue gets its pairs: what is pending, in the order to ask."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable

from evenhand.store import QUEUE_START, Store, WorkItem

FETCHED_AT_ONCE = 256


class Supply(ABC):
    awaits_looks = False  # it may allow more without that any pair has ended

    @abstractmethod
    async def take(self, *, limit: int) -> list[WorkItem]:
        """The next pairs; empty if there are none. `limit` is the judge's current concurrency: an
        adaptive supply does not choose much further ahead."""

    def open_at_most(self, limit: int, *, done: int) -> int:
        """How many pairs may be in progress at this concurrency and number of judged pairs: more
        pairs than calls, so that one waiting for a retry delays no other."""
        return max(4, 2 * limit)

    def close(self) -> None:  # noqa: B027 - whoever fetches nothing ahead has nothing to close
        """Discard what was fetched ahead."""


class FetchedAhead(Supply):
    """Fetches the next pairs while these are judged."""

    def __init__(self, store: Store, run_id: int, judge_id: int) -> None:
        self._store = store
        self._run_id = run_id
        self._judge_id = judge_id
        self._fetching: asyncio.Task[list[WorkItem]] | None = None

    async def take(self, *, limit: int) -> list[WorkItem]:
        fetched = await (self._fetching or self._begin())
        self._fetching = self._begin() if fetched else None
        return fetched

    def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()

    def _begin(self) -> asyncio.Task[list[WorkItem]]:
        return asyncio.create_task(self._fetch())

    @abstractmethod
    async def _fetch(self) -> list[WorkItem]: ...


class InOrder(FetchedAhead):
    """By number, as in the data."""

    _after = 0

    async def _fetch(self) -> list[WorkItem]:
        fetched = await asyncio.to_thread(
            self._store.work.pending,
            self._run_id,
            self._judge_id,
            after=self._after,
            limit=FETCHED_AT_ONCE,
        )
        if fetched:
            self._after = fetched[-1].number
        return fetched


_FEWEST_OPEN, _OPEN_SHARE = 4, 8


class InRandomOrder(FetchedAhead):
    """By the run's queue: prompts in a seeded random order."""

    _after = QUEUE_START

    def __init__(
        self, store: Store, run_id: int, judge_id: int, *, looked_at: Callable[[], int] | None
    ) -> None:
        """`looked_at` says how many verdicts the last look saw. Pairs in progress at the decision
        are wasted, so at most an eighth of that number goes out beyond a look. None: no bound."""
        super().__init__(store, run_id, judge_id)
        self._looked_at = looked_at
        self.awaits_looks = looked_at is not None

    def open_at_most(self, limit: int, *, done: int) -> int:
        most = super().open_at_most(limit, done=done)
        if self._looked_at is None:
            return most
        looked_at = self._looked_at()
        beyond = max(_FEWEST_OPEN, looked_at // _OPEN_SHARE) - (done - looked_at)
        return min(most, beyond)

    async def _fetch(self) -> list[WorkItem]:
        fetched = await asyncio.to_thread(
            self._store.work.queued,
            self._run_id,
            self._judge_id,
            after=self._after,
            limit=FETCHED_AT_ONCE,
        )
        if fetched:
            self._after = fetched[-1].at
        return [each.work for each in fetched]
