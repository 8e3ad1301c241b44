"""How many comparisons are judged at once, and how many may wait for it: both bounded."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from evenhand.errors import ServerBusy

# Of the last comparison's time in the mean of all; some ten of them say how fast it goes.
_NEWEST_SHARE = 0.1


class Admission:
    """First come, first served; of one event loop."""

    def __init__(self, slots: int, queue: int) -> None:
        self._slots = slots
        self._queue = queue
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._took_s = 1.0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.changed: Callable[[Admission], None] | None = None  # told whenever it is

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """A slot, at once or after waiting; ServerBusy where even the queue is full."""
        await self._enter()
        began = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            took_s = asyncio.get_running_loop().time() - began
            self._took_s += _NEWEST_SHARE * (took_s - self._took_s)
            self._leave()

    def close(self) -> None:
        """Nobody is let in any more; those who wait are sent away, those inside may finish."""
        self._closed = True
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(_ending())
        self._look()

    async def drained(self, timeout_s: float) -> bool:
        """Whether nobody is inside any more, waiting for that so long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def _enter(self) -> None:
        if self._closed:
            raise _ending()
        if self._in_flight < self._slots and not self._waiting:
            self._in_flight += 1
            self._look()
            return
        if len(self._waiting) >= self._queue:
            raise ServerBusy(
                f"{self._in_flight} comparisons are being judged and {len(self._waiting)} wait; "
                "ask again later, or ask fewer at once",
                retry_after_s=self._until_free_s(),
            )
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._look()
        try:
            await waiter  # whoever leaves hands its slot over, so it stays counted
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._leave()  # the slot came together with the cancellation
            else:
                self._forget(waiter)
            raise

    def _leave(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._look()
                return
        self._in_flight -= 1
        self._look()

    def _forget(self, waiter: asyncio.Future[None]) -> None:
        if waiter in self._waiting:
            self._waiting.remove(waiter)
        self._look()

    def _look(self) -> None:
        if self._in_flight or self._waiting:
            self._idle.clear()
        else:
            self._idle.set()
        if self.changed is not None:
            self.changed(self)

    def _until_free_s(self) -> float:
        """When the queue will have moved on by half, as things go now."""
        ahead = max(1.0, len(self._waiting) / 2)
        return float(min(60, math.ceil(ahead * self._took_s / self._slots)))


def _ending() -> ServerBusy:
    return ServerBusy("the server is shutting down; ask again in a moment", retry_after_s=5)
