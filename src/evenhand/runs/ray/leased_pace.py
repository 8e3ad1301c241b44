"""A judge's pace at one worker: it goes by permits, which the driver gives out for all of them."""

from __future__ import annotations

from evenhand.runs.pace import Pace
from evenhand.runs.ray.messages import Permits
from evenhand.runs.ray.permits import VALID_S

# How soon a call that waits for a permit looks again.
_LOOKED_EVERY_S = 0.02
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
        """What was not used; tokens that were used beyond the permits as a negative number."""
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
        return 0.0 if enough and now < self._good_until else _LOOKED_EVERY_S

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
