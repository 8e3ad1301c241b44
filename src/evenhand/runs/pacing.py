"""How fast a judge is called: the adaptive concurrency limit, requests and tokens a minute, and the
gate that each call passes.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from evenhand.errors import (
    JudgeConnectionLost,
    JudgeError,
    JudgeRateLimited,
    JudgeServerError,
    JudgeTimeout,
    JudgeUnreachable,
)
from evenhand.messages import Message

# Pure: events and times are passed in.

# Doubling the limit must gain at least this.
_WORTH_DOUBLING = 1.15
_WORTH_A_STEP = 1.02
# Rounds to wait after a step without gain.
_ROUNDS_OF_REST = 20
# Below this share of refused calls the judge is near its limit, not beyond it: otherwise a server
# that randomly fails one call in ten would stall the run.
_TOO_MANY_REFUSED = 0.2
_REFUSED_OVER = 16  # calls, at least, that the share is taken over


class AdaptiveLimit:
    """Doubles each round while that brings more answers a second, then proceeds in steps.

    A round is as many answers as may be in flight. If over a fifth of the calls are refused or time
    out, the limit is halved, once for all calls begun before the last cut. With `insist` the caller
    named the limit: it is held without testing lower ones, and regained after a cut.
    """

    def __init__(self, start: int, most: int, *, insist: bool = False) -> None:
        self._limit = float(max(1, min(start, most)))
        self._most = max(1, most)
        self._insist = insist
        self._doubling = not insist
        self._answers = 0
        self._reached = False
        self._begun: float | None = None
        self._last_cut = float("-inf")
        self._refused = 0.0  # the share of refused calls, the older ones counting less
        self._rate = 0.0  # of the round before
        self._before = self._limit  # the limit that rate was reached with
        self._resting = 0

    @property
    def current(self) -> int:
        return int(self._limit)

    def answered(self, now: float, *, busy: bool) -> None:
        """`busy`: the limit was fully used. Other rounds say nothing about a larger limit."""
        self._refused -= self._refused * self._weight
        if self._begun is None:
            self._begun = now
            return
        self._answers += 1
        self._reached = self._reached or busy
        if self._answers >= self._limit:
            elapsed = now - self._begun
            rate = self._answers / elapsed if elapsed > 0 else float("inf")
            self._answers, self._begun = 0, now
            reached, self._reached = self._reached, False
            if reached:
                self._end_round(rate)

    def overloaded(self, now: float, *, started: float) -> None:
        """A call begun at `started` hit a limit of the judge."""
        if started <= self._last_cut:
            return
        self._refused += (1 - self._refused) * self._weight
        if self._refused <= _TOO_MANY_REFUSED:
            return
        self._last_cut = now
        self._answers, self._begun = 0, None
        self._refused /= 2
        self._doubling = False
        self._limit = max(1.0, self._limit / 2)
        self._rate, self._before, self._resting = 0.0, self._limit, 0

    @property
    def _weight(self) -> float:
        return 1 / max(_REFUSED_OVER, self._limit)

    def _end_round(self, rate: float) -> None:
        if self._insist:
            self._grow(max(1.0, self._limit / 8))
            return
        if self._doubling:
            if self._rate and rate < self._rate * _WORTH_DOUBLING:
                self._doubling = False
                self._step_back()
                return
            self._remember(rate)
            self._grow(self._limit)
            return
        if self._resting:
            self._resting -= 1
            return
        if self._limit > self._before and rate < self._rate * _WORTH_A_STEP:
            self._step_back()
            return
        self._remember(rate)
        self._grow(max(1.0, self._limit / 10))

    def _remember(self, rate: float) -> None:
        self._rate, self._before = rate, self._limit

    def _grow(self, by: float) -> None:
        self._limit = min(float(self._most), self._limit + by)

    def _step_back(self) -> None:
        self._limit = self._before
        self._rate = 0.0
        self._resting = _ROUNDS_OF_REST


# Requests or tokens a minute, spread evenly, so that no minute exceeds the rate.

_MINUTE_S = 60.0
# How long turns missed by a late event loop can be made up for.
_CATCH_UP_S = 0.05


class Meter:
    """A rate that is never exceeded over a minute. Pure: times are passed in."""

    def __init__(self, per_minute: float) -> None:
        self._unit_s = _MINUTE_S / per_minute
        self._free_at = float("-inf")

    def wait_s(self, now: float) -> float:
        return max(0.0, self._free_at - now)

    def take(self, amount: float, now: float) -> None:
        self._free_at = max(self._free_at, now - _CATCH_UP_S) + amount * self._unit_s

    def correct(self, amount: float) -> None:
        """What a call took beyond its estimate; negative if less."""
        self._free_at += amount * self._unit_s


class Pace:
    """One judge's rates; tokens are estimated before a call and corrected after it."""

    def __init__(self, *, requests: float | None = None, tokens: float | None = None) -> None:
        self._requests = Meter(requests) if requests else None
        self._tokens = Meter(tokens) if tokens else None
        # A server's absurd token count may not stall the run beyond a minute.
        self._most_tokens = tokens or 0.0
        self._mean_output = _Mean()

    def wait_s(self, now: float) -> float:
        wait = self._requests.wait_s(now) if self._requests else 0.0
        return max(wait, self._tokens.wait_s(now)) if self._tokens else wait

    def take(self, input_tokens: float, now: float) -> float:
        """Returns the tokens taken, for `correct`."""
        if self._requests:
            self._requests.take(1, now)
        if self._tokens is None:
            return 0.0
        guessed = input_tokens + self._mean_output.value
        self._tokens.take(guessed, now)
        return guessed

    def correct(
        self, guessed: float, *, used: int | None, output: int | None, requests: int
    ) -> None:
        if self._requests and requests > 1:
            self._requests.correct(requests - 1)
        if self._tokens is None:
            return
        most = self._most_tokens
        if output is not None:
            self._mean_output.add(min(output, most))
        if used is not None:
            self._tokens.correct(min(used, most) - guessed)

    @property
    def counts_tokens(self) -> bool:
        return self._tokens is not None


class _Mean:
    """Of the answers so far; a typical length before the first."""

    _USUAL_OUTPUT_TOKENS = 400.0

    def __init__(self) -> None:
        self._sum = 0.0
        self._count = 0

    def add(self, value: float) -> None:
        self._sum += value
        self._count += 1

    @property
    def value(self) -> float:
        return self._sum / self._count if self._count else self._USUAL_OUTPUT_TOKENS


# How long the first call goes alone, to check key, model and features before a hundred others pay
# for the mistake.
FIRST_ALONE_S = 5.0


LONGEST_PAUSE_S = 600.0
_OVERLOADED = (JudgeRateLimited, JudgeTimeout)
# Faults with a sentence of their own.
_TROUBLES = frozenset(
    each.kind
    for each in (
        JudgeRateLimited,
        JudgeServerError,
        JudgeTimeout,
        JudgeUnreachable,
        JudgeConnectionLost,
    )
)


class Stopped(Exception):
    """The run is ending: no call begins. Never shown; `Stop` says why."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Calls fail, and none has been answered since."""

    error: JudgeError  # of the last of them
    since_s: float  # how long ago the first of them began
    retry_s: float  # when the next one begins

    @property
    def line(self) -> Message:
        """As a progress line."""
        kind = type(self.error).kind
        code = f"trouble.{kind if kind in _TROUBLES else 'other'}"
        who = self.error.host or Message("trouble.judge")
        return Message(code, host=who, seconds=math.ceil(self.retry_s))


@dataclass(slots=True)
class CallSlot:
    started: float
    tokens: float


class CallGate:
    """First come, first served, so that both passes of a pair follow each other."""

    def __init__(self, limit: AdaptiveLimit, pace: Pace, *, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._pace = pace
        self._clock = clock
        self._waiting: deque[tuple[asyncio.Future[CallSlot], float]] = deque()
        self._resting: dict[asyncio.Future[None], float] = {}  # and when each ends
        self._failing_since: float | None = None
        self._last_error: JudgeError | None = None
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
        """How much longer the judge asked us to wait."""
        return max(0.0, self._paused_until - self._clock())

    def trouble(self) -> Trouble | None:
        if self._failing_since is None or self._last_error is None:
            return None
        now = self._clock()
        next_one = min((due - now for due in self._resting.values()), default=0.0)
        retry_s = max(0.0, next_one, self.paused_s())
        return Trouble(self._last_error, now - self._failing_since, retry_s)

    async def enter(self, tokens: float) -> CallSlot:
        if self._stopped:
            raise Stopped
        now = self._clock()
        if not self._waiting and self._has_place(now) and self._wait_s(now) <= 0:
            return self._let_in(tokens, now)
        place: asyncio.Future[CallSlot] = asyncio.get_running_loop().create_future()
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

    def answered(
        self, turn: CallSlot, *, used: int | None, output: int | None, requests: int
    ) -> None:
        now = self._clock()
        self._pace.correct(turn.tokens, used=used, output=output, requests=requests)
        self._limit.answered(now, busy=self._is_full)
        self._failing_since = self._last_error = None
        self._alone = False
        self._leave()

    def failed(self, turn: CallSlot, error: JudgeError) -> None:
        if self._failing_since is None:
            self._failing_since = turn.started
        self._last_error = error
        if isinstance(error, _OVERLOADED):
            self._limit.overloaded(self._clock(), started=turn.started)
        if error.retry_after_s:
            self.pause(error.retry_after_s)
        self._alone = False
        self._leave()

    def left(self, turn: CallSlot) -> None:
        """The caller gave up the call, which says nothing about the judge."""
        self._leave()

    def answer_waits(self) -> None:
        """Holds the call's slot until the answer is stored, so that a kill loses no more than the
        limit allows."""
        self._uncommitted += 1

    def answers_stored(self, count: int) -> None:
        self._uncommitted -= count
        if self._waiting:
            self._admit()

    def pause(self, seconds: float) -> None:
        """As the judge asks; if that is too long, the call fails."""
        if seconds > LONGEST_PAUSE_S:
            return
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    async def rest(self, seconds: float) -> None:
        """Sleep before a retry, unless the run is stopped."""
        if self._stopped:
            raise Stopped
        loop = asyncio.get_running_loop()
        nap: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _finish, nap)
        self._resting[nap] = self._clock() + seconds
        try:
            await nap
        finally:
            timer.cancel()
            self._resting.pop(nap, None)

    def stop(self) -> None:
        """Admit no more calls; those inside finish."""
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
            # Deferred: the answer may be about to take over the slot until stored. Once for all
            # answers that arrive together.
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

    def _let_in(self, tokens: float, now: float) -> CallSlot:
        if self._alone and self._alone_until is None:
            self._alone_until = now + FIRST_ALONE_S
        self.in_flight += 1
        return CallSlot(now, self._pace.take(tokens, now))

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
