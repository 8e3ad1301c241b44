"""Where a lane gets its pairs from: what is pending, in the order in which it is to be asked."""

from __future__ import annotations

import asyncio
from typing import Protocol

from evenhand.store import QUEUE_START, Store, WorkItem

_FETCHED_AT_ONCE = 256


class Supply(Protocol):
    async def take(self, *, limit: int) -> list[WorkItem]:
        """The next pairs; none when there is nothing more to ask. `limit` is what the judge can
        have in flight now: who chooses by what is known does not choose much further ahead."""
        ...

    def open_at_most(self, limit: int, *, done: int) -> int:
        """How many pairs may be under way at once, with this many calls in flight and so many
        pairs judged."""
        ...

    def close(self) -> None: ...


class _Ahead:
    """The next ones are fetched while these are judged."""

    def __init__(self, store: Store, run_id: int, judge_id: int) -> None:
        self._store = store
        self._run_id = run_id
        self._judge_id = judge_id
        self._fetching: asyncio.Future[list[WorkItem]] | None = None

    async def take(self, *, limit: int) -> list[WorkItem]:
        fetched = await (self._fetching or self._begin())
        self._fetching = self._begin() if fetched else None
        return fetched

    def open_at_most(self, limit: int, *, done: int) -> int:
        """More pairs than calls, so that a pair that waits for its retry holds up no other."""
        return max(4, 2 * limit)

    def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()

    def _begin(self) -> asyncio.Future[list[WorkItem]]:
        return asyncio.ensure_future(asyncio.to_thread(self._fetch))

    def _fetch(self) -> list[WorkItem]:
        raise NotImplementedError


class InOrder(_Ahead):
    """By number, as the data has them."""

    _after = 0

    def _fetch(self) -> list[WorkItem]:
        fetched = self._store.pending(
            self._run_id, self._judge_id, after=self._after, limit=_FETCHED_AT_ONCE
        )
        if fetched:
            self._after = fetched[-1].number
        return fetched


_FEWEST_OPEN, _OPEN_SHARE = 4, 8


class InRandomOrder(_Ahead):
    """By the run's queue: prompts in a random order that a seed names."""

    _after = QUEUE_START

    def __init__(self, store: Store, run_id: int, judge_id: int, *, careful: bool) -> None:
        """`careful`: what is under way when a decision falls is asked in vain, so that no more
        goes out at once than an eighth of what is judged."""
        super().__init__(store, run_id, judge_id)
        self._careful = careful

    def open_at_most(self, limit: int, *, done: int) -> int:
        most = super().open_at_most(limit, done=done)
        return min(most, max(_FEWEST_OPEN, done // _OPEN_SHARE)) if self._careful else most

    def _fetch(self) -> list[WorkItem]:
        fetched = self._store.queued(
            self._run_id, self._judge_id, after=self._after, limit=_FETCHED_AT_ONCE
        )
        if fetched:
            self._after = fetched[-1].at
        return [each.work for each in fetched]
