"""So many requests, or tokens, a minute, for a whole cluster: given out in small numbers that are
good for a moment. Pure: it is told the time."""

from __future__ import annotations

from evenhand.runs.ray.messages import Permits

# A permit is used within this time or not at all.
VALID_S = 1.5
# Nobody may have asked for so long, and what would have been given is given after all.
_CAUGHT_UP_S = 0.5
_MINUTE_S = 60.0


class PermitOffice:
    """Of one judge. A little slower than the rate that it keeps: a permit may be used later than
    it is given, so that a minute could hold the permits of a little more than a minute."""

    def __init__(self, *, requests: float | None, tokens: float | None) -> None:
        self._requests = None if requests is None else _Source(requests)
        self._tokens = None if tokens is None else _Source(tokens)

    def take_back(self, unused: Permits) -> None:
        if self._requests is not None:
            self._requests.take_back(unused.requests)
        if self._tokens is not None:
            self._tokens.take_back(unused.tokens)

    def give(self, wanted: Permits, now: float) -> Permits:
        calls = int(wanted.requests)
        if calls < 1:
            return Permits()
        requests = 0.0
        if self._requests is not None:
            calls = int(self._requests.give(calls, now, least=1.0, whole=True))
            requests = float(calls)
        tokens = 0.0
        if self._tokens is not None and calls:
            each = wanted.tokens / wanted.requests
            tokens = self._tokens.give(each * calls, now, least=each)
        return Permits(requests, tokens)


class _Source:
    def __init__(self, per_minute: float) -> None:
        self._unit_s = (_MINUTE_S + VALID_S + _CAUGHT_UP_S) / per_minute
        self._free_at = float("-inf")

    def give(self, wanted: float, now: float, *, least: float, whole: bool = False) -> float:
        """Up to what has come together; `least` in any case, once it is time for the next."""
        if now < self._free_at or wanted <= 0:
            return 0.0
        begun = max(self._free_at, now - _CAUGHT_UP_S)
        given = min(wanted, max(least, (now - begun) / self._unit_s))
        given = float(int(given)) if whole else given
        self._free_at = begun + given * self._unit_s
        return given

    def take_back(self, amount: float) -> None:
        """A negative amount was used beyond what was given."""
        self._free_at -= amount * self._unit_s
