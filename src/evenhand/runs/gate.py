"""The gate before a judge: a call goes in when there is a place, the pace allows it, and nobody
has asked to stop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from evenhand.runs.limit import AdaptiveLimit
from evenhand.runs.pace import Pace

# How long the first call goes alone: it finds out whether the key, the model and the features that
# are asked for will do, before a hundred others pay for it.
FIRST_ALONE_S = 5.0


LONGEST_PAUSE_S = 600.0


class Stopped(Exception):
    """The run is ending: no call begins any more. Never shown; `Stop` says why."""


@dataclass(slots=True)
class Turn:
    """One call that was let in."""

    begun: float
    tokens: float


class Gate:
    """First come, first served, so that both passes of a pair go in one after the other."""

    def __init__(self, limit: AdaptiveLimit, pace: Pace, *, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._pace = pace
        self._clock = clock
        self._waiting: deque[tuple[asyncio.Future[Turn], float]] = deque()
        self._resting: set[asyncio.Future[None]] = set()
        self._paused_until = float("-inf")
        self._wake: asyncio.TimerHandle | None = None
        self._looking_soon = False
        self._alone = True
        self._alone_until: float | None = None
        self._stopped = False
        self._uncommitted = 0
        self.in_flight = 0

    @property
    def limit(self) -> int:
        return self._limit.current

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def counts_tokens(self) -> bool:
        return self._pace.counts_tokens

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    def paused_s(self) -> float:
        """How much longer the judge asked to wait."""
        return max(0.0, self._paused_until - self._clock())

    async def enter(self, tokens: float) -> Turn:
        if self._stopped:
            raise Stopped
        now = self._clock()
        if not self._waiting and self._has_place(now) and self._wait_s(now) <= 0:
            return self._let_in(tokens, now)
        place: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, tokens))
        if len(self._waiting) == 1:  # behind another, it is looked at when that one is
            self._admit()
        try:
            turn = await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._leave()  # let in and cancelled at the same moment
            raise
        if self.is_stopped:  # let in and stopped at the same moment
            self._leave()
            raise Stopped
        return turn

    def answered(self, turn: Turn, *, used: int | None, output: int | None, requests: int) -> None:
        now = self._clock()
        self._pace.correct(turn.tokens, used=used, output=output, requests=requests)
        self._limit.answered(now, busy=self._is_full)
        self._alone = False
        self._leave()

    def failed(self, turn: Turn, *, overloaded: bool, pause_s: float | None) -> None:
        if overloaded:
            self._limit.overloaded(self._clock(), begun=turn.begun)
        if pause_s:
            self.pause(pause_s)
        self._alone = False
        self._leave()

    def left(self, turn: Turn) -> None:
        """The call was given up by its caller, which says nothing of the judge."""
        self._leave()

    def answer_waits(self) -> None:
        """An answer waits to be stored. It keeps its place until then: what is neither stored nor
        in flight would be lost by a kill, beyond what the limit allows."""
        self._uncommitted += 1

    def answers_stored(self, count: int) -> None:
        self._uncommitted -= count
        if self._waiting:
            self._admit()

    def pause(self, seconds: float) -> None:
        """As the judge asks; longer than anybody waits for, the call that was told so fails."""
        if seconds > LONGEST_PAUSE_S:
            return
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    async def rest(self, seconds: float) -> None:
        """Sleep before a retry, unless the run is stopped meanwhile."""
        if self._stopped:
            raise Stopped
        loop = asyncio.get_running_loop()
        nap: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _finish, nap)
        self._resting.add(nap)
        try:
            await nap
        finally:
            timer.cancel()
            self._resting.discard(nap)

    def stop(self) -> None:
        """Nothing goes in any more; what is inside goes on to its end."""
        self._stopped = True
        for place, _ in self._waiting:
            if not place.done():
                place.set_exception(Stopped())
        self._waiting.clear()
        for nap in self._resting:
            if not nap.done():
                nap.set_exception(Stopped())
        if self._wake:
            self._wake.cancel()

    def _leave(self) -> None:
        self.in_flight -= 1
        if self._waiting and not self._looking_soon:
            # Soon, and not now: the answer may be about to take the place until it is stored.
            # Once for all the answers that come together.
            self._looking_soon = True
            asyncio.get_running_loop().call_soon(self._look_now)

    def _look_now(self) -> None:
        self._looking_soon = False
        self._admit()

    def _has_place(self, now: float) -> bool:
        if self._alone and self.in_flight:
            if self._alone_until is not None and now >= self._alone_until:
                self._alone = False
            else:
                return False
        return not self._is_full

    @property
    def _is_full(self) -> bool:
        return self.in_flight + self._uncommitted >= self._limit.current

    def _wait_s(self, now: float) -> float:
        paused, paced = self._paused_until - now, self._pace.wait_s(now)
        return max(paced, paused)

    def _let_in(self, tokens: float, now: float) -> Turn:
        if self._alone and self._alone_until is None:
            self._alone_until = now + FIRST_ALONE_S
        self.in_flight += 1
        return Turn(now, self._pace.take(tokens, now))

    def _admit(self) -> None:
        while self._waiting and not self._stopped:
            place, tokens = self._waiting[0]
            if place.done():  # cancelled while it waited
                self._waiting.popleft()
                continue
            now = self._clock()
            if not self._has_place(now):
                if self._alone and self._alone_until is not None:
                    self._look_again(self._alone_until - now)
                return
            wait = self._wait_s(now)
            if wait > 0:
                self._look_again(wait)
                return
            self._waiting.popleft()
            place.set_result(self._let_in(tokens, now))

    def _look_again(self, seconds: float) -> None:
        if self._wake:
            self._wake.cancel()
        self._wake = asyncio.get_running_loop().call_later(max(0.0, seconds), self._admit)


def _finish(nap: asyncio.Future[None]) -> None:
    if not nap.done():
        nap.set_result(None)
