"""Progress on its way to a client: only what is newest, and nothing waits for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

# How far, of how much (None where that is not known), and what it is.
Report = Callable[[float, float | None, str | None], Awaitable[None]]


class Progress:
    """What a tool tells; numbers that do not grow are not sent, as the protocol asks."""

    def __init__(self) -> None:
        self._newest: tuple[float, float | None, str | None] | None = None
        self._told = asyncio.Event()
        self._sent = -1.0
        self._ended = False

    def tell(self, done: float, total: float | None = None, message: str | None = None) -> None:
        self._newest = (done, total, message)
        self._told.set()

    def of(self, what: str) -> Callable[[int, int], None]:
        """A listener for functions that tell `done` and `total` of something."""
        return lambda done, total: self.tell(done, total, f"{done} of {total} {what}")

    async def send(self, report: Report) -> None:
        """Until the end is told; what comes while one is being sent is told at once afterwards."""
        while self._told.is_set() or not self._ended:
            await self._told.wait()
            self._told.clear()
            if self._newest is not None and self._newest[0] > self._sent:
                self._sent = self._newest[0]
                await report(*self._newest)

    def end(self) -> None:
        self._ended = True
        self._told.set()


@asynccontextmanager
async def reporting(report: Report) -> AsyncIterator[Progress]:
    """Progress that is sent while the body runs; the last of it before the body's end is told."""
    progress = Progress()
    sending = asyncio.ensure_future(progress.send(report))
    try:
        yield progress
        progress.end()
        await sending
    finally:
        if not sending.done():
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
