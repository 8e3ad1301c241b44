"""A run with an end of its own looks for it whenever there is something new in the store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from evenhand.errors import EvenhandError
from evenhand.runs.executor import Seat
from evenhand.runs.pursuit import EveryPair, Pursuit
from evenhand.runs.stop import Stop

_LOOKED_EVERY_S = 0.05


class Looking:
    def __init__(self, pursuit: Pursuit, seats: tuple[Seat, ...], stop: Stop) -> None:
        self._pursuit = pursuit
        self._seats = seats
        self._stop = stop

    @contextlib.asynccontextmanager
    async def kept_up(self) -> AsyncIterator[None]:
        ended = asyncio.Event()

        async def keep_looking() -> None:
            seen = -1
            while self._stop.by is None and not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), _LOOKED_EVERY_S)
                if self._in_store != seen:
                    seen = self._in_store
                    await self.look()

        if isinstance(self._pursuit, EveryPair):
            yield
            return
        looking = asyncio.create_task(keep_looking())
        try:
            yield
        finally:
            # Told and not cancelled: a look is in a thread, and must not meet the next one.
            ended.set()
            await looking

    async def look(self) -> None:
        try:
            found = await asyncio.to_thread(self._pursuit.look, self._in_store)
        except EvenhandError as error:
            self._stop.ask("store", error)
            return
        except Exception:
            # A lane may wait for the next look, and there will be none.
            self._stop.ask("store")
            raise
        if found is not None:
            self._stop.ask(found)

    @property
    def _in_store(self) -> int:
        """Verdicts that a look can see."""
        return sum(seat.count.in_store for seat in self._seats)
