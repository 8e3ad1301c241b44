"""A worker's share of the budget, and its call rate."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from evenhand.judges.protocol import Completion, Judge, JudgeCall
from evenhand.runs.budget import Budget
from evenhand.runs.local import WrappedJudge
from evenhand.runs.pacing import Pace, Stopped
from evenhand.runs.ray.ledger import VALID_S
from evenhand.runs.ray.messages import Grant, Permits
from evenhand.runs.stop import Stop

_LOOKED_EVERY_S = 0.2


class Lease:
    """A call without leave waits. Without a cap, a lease only expires."""

    def __init__(
        self, *, capped_calls: bool, capped_cost: bool, clock: Callable[[], float]
    ) -> None:
        self._capped_calls = capped_calls
        self._capped_cost = capped_cost
        self._clock = clock
        self._calls_left = 0
        self._cost_left = 0.0
        self._mean: float | None = None
        self._expires_at = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._looked_at = clock()
        self._calls_then = 0
        self._calls_per_s = 0.0
        self.in_flight = 0
        self.calls = 0  # begun, each with all its requests
        self.cost_usd = 0.0
        self.priced = 0
        self.returned_calls = 0
        self.returned_cost_usd = 0.0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_expired(self) -> bool:
        return self._clock() >= self._expires_at

    @property
    def starves(self) -> bool:
        return bool(self._waiting) and not self.in_flight and not self._allows()

    def is_low(self, limit: int) -> bool:
        """Time to ask for more, at this concurrency."""
        enough = self._enough(limit) / 2
        if self._capped_calls and self._calls_left < enough:
            return True
        if not self._capped_cost:
            return False
        return self._cost_left <= 0 or self._cost_left < enough * (self._mean or 0.0)

    def wanted_calls(self, limit: int) -> int:
        left = self._calls_left if self._capped_calls else 0
        return max(0, self._enough(limit) - left)

    def _enough(self, limit: int) -> int:
        """For two rounds at this concurrency, or a second's worth if calls are quick."""
        return max(2 * limit, int(self._calls_per_s))

    def look_at_clock(self) -> None:
        """Measure calls begun per second since the last look."""
        now = self._clock()
        if (passed := now - self._looked_at) >= _LOOKED_EVERY_S:
            self._calls_per_s = (self.calls - self._calls_then) / passed
            self._looked_at, self._calls_then = now, self.calls

    @property
    def wants_cost(self) -> bool:
        return self._capped_cost

    def accept(self, grant: Grant) -> None:
        self._calls_left += grant.calls
        self._cost_left += grant.cost_usd
        self._mean = grant.mean_cost_usd if grant.mean_cost_usd is not None else self._mean
        self._expires_at = self._clock() + grant.valid_s
        self._admit()

    def give_back(self) -> None:
        """All that is left, if the worker cannot use it now."""
        calls, cost = max(0, self._calls_left), max(0.0, self._cost_left)
        self._calls_left -= calls
        self._cost_left -= cost
        self.returned_calls += calls
        self.returned_cost_usd += cost

    def close(self) -> None:
        """No call begins any more."""
        self._closed = True
        for place in self._waiting:
            if not place.done():
                place.set_exception(Stopped())
        self._waiting.clear()

    async def take(self) -> None:
        if self._closed:
            raise Stopped
        if not self._waiting and self._allows():
            self._begin()
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.settle(requests=0, cost_usd=None)  # let in and cancelled at the same moment
            raise

    def settle(self, *, requests: int, cost_usd: float | None) -> None:
        self.in_flight -= 1
        self.calls += requests - 1
        self._calls_left -= requests - 1
        if cost_usd is not None:
            self.cost_usd += cost_usd
            self._cost_left -= cost_usd
            self.priced += 1
            self._mean = self._mean if self._mean is not None else cost_usd
        self._admit()

    def _begin(self) -> None:
        self.in_flight += 1
        self.calls += 1
        self._calls_left -= 1

    def _allows(self) -> bool:
        if self._closed or self.is_expired:
            return False
        if self._capped_calls and self._calls_left < 1:
            return False
        if not self._capped_cost:
            return True
        if self._mean is None:  # the first finds out what a call costs
            return not self.in_flight and self._cost_left > 0
        # Tolerance for the rounding of a lease for a single call.
        return (self.in_flight + 1) * self._mean <= self._cost_left * (1 + 1e-9)

    def _admit(self) -> None:
        while self._waiting and self._allows():
            place = self._waiting.popleft()
            if not place.done():
                self._begin()
                place.set_result(None)


class LeasedBudget(Budget):
    """Counts as any budget does; the lease decides what may begin."""

    def __init__(self, stop: Stop, lease: Lease) -> None:
        super().__init__(stop)
        self._lease = lease

    def _settle(self, requests: int, cost_usd: float | None) -> None:
        if requests:  # else it never got leave
            self._lease.settle(requests=requests, cost_usd=cost_usd)


class LeasedJudge(WrappedJudge):
    """Waits for leave before each question."""

    def __init__(self, judge: Judge, lease: Lease) -> None:
        super().__init__(judge)
        self._lease = lease

    async def ask(self, call: JudgeCall) -> Completion:
        await self._lease.take()
        return await super().ask(call)


# A judge's pace at one worker, by permits from the driver.

# Polling interval of a call that waits for a permit.
_PERMITS_LOOKED_EVERY_S = 0.02
_USUAL_TOKENS = 1_000.0


class LeasedPace(Pace):
    def __init__(self, *, by_requests: bool, by_tokens: bool) -> None:
        super().__init__()
        self._by_requests = by_requests
        self._by_tokens = by_tokens
        self._requests_left = 0.0
        self._tokens_left = 0.0
        self._good_until = float("-inf")
        self._calls = 0
        self._tokens_used = 0.0

    def accept(self, permits: Permits, now: float) -> None:
        self._requests_left += permits.requests
        self._tokens_left += permits.tokens
        self._good_until = now + VALID_S

    def give_back(self) -> Permits:
        """What was unused; overused tokens as a negative number."""
        unused = Permits(self._requests_left, self._tokens_left)
        self._requests_left = self._tokens_left = 0.0
        return unused

    def wanted(self, calls: int) -> Permits:
        each = self._tokens_used / self._calls if self._calls else _USUAL_TOKENS
        return Permits(float(calls), calls * each)

    @property
    def counts_tokens(self) -> bool:
        return self._by_tokens

    def wait_s(self, now: float) -> float:
        if not self._by_requests and not self._by_tokens:
            return 0.0
        enough = (not self._by_requests or self._requests_left >= 1) and (
            not self._by_tokens or self._tokens_left > 0
        )
        return 0.0 if enough and now < self._good_until else _PERMITS_LOOKED_EVERY_S

    def take(self, input_tokens: float, now: float) -> float:
        if self._by_requests:
            self._requests_left -= 1
        if not self._by_tokens:
            return 0.0
        guessed = input_tokens + self._mean_output.value
        self._tokens_left -= guessed
        self._calls += 1
        self._tokens_used += guessed
        return guessed

    def correct(
        self, guessed: float, *, used: int | None, output: int | None, requests: int
    ) -> None:
        if self._by_requests and requests > 1:
            self._requests_left -= requests - 1
        if not self._by_tokens:
            return
        if output is not None:
            self._mean_output.add(output)
        if used is not None:
            self._tokens_left -= used - guessed
            self._tokens_used += used - guessed
