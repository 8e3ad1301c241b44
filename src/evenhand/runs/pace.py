"""So many requests, or tokens, a minute: spread evenly, so that no minute holds more."""

from __future__ import annotations

_MINUTE_S = 60.0
# Turns that the event loop came too late for may be caught up on for this long.
_CATCH_UP_S = 0.05


class Meter:
    """A rate that is never exceeded over a minute. Pure: it is told the time."""

    def __init__(self, per_minute: float) -> None:
        self._unit_s = _MINUTE_S / per_minute
        self._free_at = float("-inf")

    def wait_s(self, now: float) -> float:
        return max(0.0, self._free_at - now)

    def take(self, amount: float, now: float) -> None:
        self._free_at = max(self._free_at, now - _CATCH_UP_S) + amount * self._unit_s

    def correct(self, amount: float) -> None:
        """What a call took beyond what was taken for it (or below, as a negative amount)."""
        self._free_at += amount * self._unit_s


class Pace:
    """Both meters of one judge; tokens are guessed before a call and corrected after it."""

    def __init__(self, *, requests: float | None = None, tokens: float | None = None) -> None:
        self._requests = Meter(requests) if requests else None
        self._tokens = Meter(tokens) if tokens else None
        self._mean_output = _Mean()

    def wait_s(self, now: float) -> float:
        wait = self._requests.wait_s(now) if self._requests else 0.0
        return max(wait, self._tokens.wait_s(now)) if self._tokens else wait

    def take(self, input_tokens: float, now: float) -> float:
        """The number of tokens taken, to be handed back to `correct`."""
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
        if output is not None:
            self._mean_output.add(output)
        if used is not None:
            self._tokens.correct(used - guessed)

    @property
    def counts_tokens(self) -> bool:
        return self._tokens is not None


class _Mean:
    """Of the answers so far; before the first one, a usual answer's length."""

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
