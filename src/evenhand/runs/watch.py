"""A run under way, watched: every quarter of a second whoever listens is told how far it is."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from evenhand.runs.budget import Budget
from evenhand.runs.executor import Executor, Seat
from evenhand.runs.observer import Observer
from evenhand.runs.progress import Progress, Rate
from evenhand.runs.stop import Stop

_TOLD_EVERY_S = 0.25


class Watch:
    """`total`: the judgments that there will be in all, those of earlier commands included."""

    def __init__(
        self, run: str, seats: tuple[Seat, ...], budget: Budget, stop: Stop, *, total: int
    ) -> None:
        self._run = run
        self._seats = seats
        self._budget = budget
        self._stop = stop
        self._total = total

    @contextlib.asynccontextmanager
    async def told(self, executor: Executor, observer: Observer) -> AsyncIterator[None]:
        begun = time.monotonic()
        rate = Rate(begun, self._done)

        def tell() -> None:
            now = time.monotonic()
            told = self._progress(executor, now - begun, rate.at(now, self._done))
            # Who watches may fail, e.g. write to a closed pipe; what is watched goes on.
            with contextlib.suppress(Exception):
                observer.progress(told)

        async def keep_telling() -> None:
            while True:
                tell()
                await asyncio.sleep(_TOLD_EVERY_S)

        telling = asyncio.create_task(keep_telling())
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            tell()

    @property
    def _done(self) -> int:
        return sum(seat.count.done for seat in self._seats)

    def _progress(self, executor: Executor, elapsed_s: float, rate: float | None) -> Progress:
        counts = [seat.count for seat in self._seats]
        return Progress(
            run=self._run,
            done=self._done,
            total=self._total,
            calls=self._budget.calls,
            in_flight=executor.in_flight,
            limit=executor.limit,
            paused_s=executor.paused_s,
            elapsed_s=elapsed_s,
            pairs_per_s=rate,
            cost_usd=self._budget.known_cost_usd,
            reused=sum(count.reused for count in counts),
            wins_a=sum(count.wins_a for count in counts),
            wins_b=sum(count.wins_b for count in counts),
            ties=sum(count.ties for count in counts),
            inconsistent=sum(count.inconsistent for count in counts),
            invalid=sum(count.invalid for count in counts),
            passes=sum(count.passes for count in counts),
            unread=sum(count.unread for count in counts),
            stopping=self._stop.by is not None,
        )
