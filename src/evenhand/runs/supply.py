"""Where a queue gets its pairs from: what is pending, in the order in which it is to be asked."""

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
        """The next pairs; none when there is nothing more to ask. `limit` is what the judge can
        have in flight now: who chooses by what is known does not choose much further ahead."""

    def open_at_most(self, limit: int, *, done: int) -> int:
        """How many pairs may be under way at once, with this many calls in flight and so many
        pairs judged: more pairs than calls, so that one that waits for its retry holds up no
        other."""
        return max(4, 2 * limit)

    def close(self) -> None:  # noqa: B027 - whoever fetches nothing ahead has nothing to close
        """What is fetched ahead is not wanted any more."""


class FetchedAhead(Supply):
    """The next ones are fetched while these are judged."""

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
    """By number, as the data has them."""

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
    """By the run's queue: prompts in a random order that a seed names."""

    _after = QUEUE_START

    def __init__(
        self, store: Store, run_id: int, judge_id: int, *, looked_at: Callable[[], int] | None
    ) -> None:
        """`looked_at` says how many verdicts the last look knew of. What is under way when a
        decision falls is asked in vain: no more goes out beyond a look than an eighth of what it
        knew. None: as much as the judge takes."""
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
