"""The one writer: stores results in batches, in its own thread.

The event loop never waits for the disk, and its backlog is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from evenhand.errors import EvenhandError, StoreError
from evenhand.judging.preparation import GeneratedAnswer
from evenhand.store import NewPass, NewVerdict, Store

# A write begins at this size or age: a transaction costs as much as some dozen rows. Unstored
# results hold their gate slots, so it must not take long.
_ENOUGH = 96
_GATHERED_FOR_S = 0.01
_MOST_WAITING = 4096
_STORED_TOGETHER = 50  # answers

Stored = Callable[[int], None]


class Writer:
    """Writes one batch while collecting the next: batches grow with the load, and a kill loses at
    most what arrived during one write."""

    def __init__(self, store: Store, broken: Callable[[EvenhandError], None]) -> None:
        """`broken` is called if the store fails: answers waiting for it hold gate slots, so that
        nothing else would notice."""
        self._store = store
        self._broken = broken
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evenhand-store")
        self._passes: list[NewPass] = []
        self._stored: dict[Stored, int] = {}
        self._verdicts: list[NewVerdict] = []
        self._due: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._written = asyncio.Event()
        self.error: EvenhandError | None = None

    def add_pass(self, made: NewPass, stored: Stored | None = None) -> None:
        """`stored` is called on commit with the number of passes in the batch."""
        self._passes.append(made)
        self._notify_after_commit(stored)
        self._schedule()

    def add_verdict(self, verdict: NewVerdict, stored: Stored | None = None) -> None:
        self._verdicts.append(verdict)
        self._notify_after_commit(stored)
        self._schedule()

    def _notify_after_commit(self, stored: Stored | None) -> None:
        if stored is not None:
            self._stored[stored] = self._stored.get(stored, 0) + 1

    async def room(self) -> None:
        """Wait while the backlog is full; raise the writer's error."""
        while self.error is None and self._waiting > _MOST_WAITING:
            self._written.clear()
            await self._written.wait()
        if self.error is not None:
            raise self.error

    async def flush(self) -> None:
        """Until everything handed over so far is stored."""
        while self.error is None and (self._writing is not None or self._waiting):
            self._begin()
            if self._writing is not None:
                await asyncio.wait([self._writing])
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        try:
            await self.flush()
        finally:
            if self._due is not None:
                self._due.cancel()
            self._thread.shutdown(wait=True)

    @property
    def _waiting(self) -> int:
        return len(self._passes) + len(self._verdicts)

    def _schedule(self) -> None:
        if self._writing is not None or self.error is not None:
            return
        if self._waiting >= _ENOUGH:
            self._begin()
        elif self._due is None:
            self._due = asyncio.get_running_loop().call_later(_GATHERED_FOR_S, self._begin)

    def _begin(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._writing is None and self._waiting and self.error is None:
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        passes, self._passes = self._passes, []
        verdicts, self._verdicts = self._verdicts, []
        waiting, self._stored = self._stored, {}
        try:
            await loop.run_in_executor(self._thread, self._store.work.write, passes, verdicts)
        except Exception as error:  # whatever it is, nothing more can be stored
            self.error = error if isinstance(error, EvenhandError) else _unexpected(error)
            self._broken(self.error)
        else:
            for stored, count in waiting.items():
                stored(count)
        finally:
            self._writing = None
            self._written.set()
        self._schedule()


def _unexpected(error: Exception) -> StoreError:
    reason = " ".join(str(error).split())[:200]
    return StoreError.of("runs.store_failed", name=type(error).__name__, reason=reason)


class AnswerWriter:
    """Stores answers that arrive together in one write; none waits for others."""

    def __init__(self, store: Store, run_id: int) -> None:
        self._store = store
        self._run_id = run_id
        self._waiting: list[GeneratedAnswer] = []
        self._lock = asyncio.Lock()

    async def find(self, keys: Sequence[str]) -> dict[str, GeneratedAnswer]:
        return await asyncio.to_thread(self._store.answers.find, keys)

    async def add(self, answer: GeneratedAnswer) -> None:
        self._waiting.append(answer)
        async with self._lock:
            # An earlier caller may have stored it with its own.
            if any(each is answer for each in self._waiting):
                await self._write()

    async def flush(self) -> None:
        async with self._lock:
            while self._waiting:
                await self._write()

    async def _write(self) -> None:
        some, self._waiting = (
            self._waiting[:_STORED_TOGETHER],
            self._waiting[_STORED_TOGETHER:],
        )
        await asyncio.to_thread(self._store.answers.add, self._run_id, some)
