"""The one writer: what was judged goes to the store in batches, by a thread of its own.

The event loop never waits for the disk, and what waits for the disk is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from evenhand.errors import EvenhandError
from evenhand.store import NewPass, NewVerdict, Store

_MOST_WAITING = 4096

Stored = Callable[[], None]


class Writer:
    """Writes whenever it has something to write, and gathers the next batch meanwhile: batches
    grow with the load, and what a kill can lose is what came during one write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evenhand-store")
        self._passes: list[tuple[NewPass, Stored]] = []
        self._verdicts: list[NewVerdict] = []
        self._writing: asyncio.Task[None] | None = None
        self._written = asyncio.Event()
        self.error: EvenhandError | None = None

    def add_pass(self, made: NewPass, stored: Stored = lambda: None) -> None:
        """`stored` is called once the pass is committed."""
        self._passes.append((made, stored))
        self._begin()

    def add_verdict(self, verdict: NewVerdict) -> None:
        self._verdicts.append(verdict)
        self._begin()

    async def room(self) -> None:
        """Wait while too much waits for the disk; raise what the disk said."""
        while self.error is None and self._waiting > _MOST_WAITING:
            self._written.clear()
            await self._written.wait()
        if self.error is not None:
            raise self.error

    async def flush(self) -> None:
        """Until everything handed over so far is stored."""
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        try:
            await self.flush()
        finally:
            self._thread.shutdown(wait=True)

    @property
    def _waiting(self) -> int:
        return len(self._passes) + len(self._verdicts)

    def _begin(self) -> None:
        if self._writing is None and self.error is None:
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                passes, self._passes = self._passes, []
                verdicts, self._verdicts = self._verdicts, []
                made = [each for each, _ in passes]
                await loop.run_in_executor(self._thread, self._store.write, made, verdicts)
                for _, stored in passes:
                    stored()
                self._written.set()
        except EvenhandError as error:
            self.error = error
        finally:
            self._writing = None
            self._written.set()
