"""How many calls may be in flight: as many as bring more answers, fewer when the judge objects.

Pure: it is told what happened and when, and never looks at a clock.
"""

from __future__ import annotations

# A doubled limit that brings less than this is not worth holding.
_WORTH_DOUBLING = 1.15
_WORTH_A_STEP = 1.02
# After a step that brought nothing, this many rounds pass before the next is tried.
_ROUNDS_OF_REST = 20
# Below this share of refused calls the judge is near its limit, and not beyond it: a server that
# fails one call in ten at random would otherwise bring everything to a standstill.
_TOO_MANY_REFUSED = 0.2
_REFUSED_OVER = 16  # calls, at least, that the share is taken over


class AdaptiveLimit:
    """Doubles each round while that brings more answers a second, then feels its way in steps.

    A round is as many answers as may be in flight. Where more than a fifth of the calls meet
    trouble (too many requests, a time-out) the limit is halved, at most once for calls that were
    begun before the last cut. With `insist` the caller named the limit: it is held without
    measuring whether fewer would do, and regained after a cut.
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
        """`busy`: the limit was used to the full. A round in which it never was says nothing of
        what a larger one would bring."""
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

    def overloaded(self, now: float, *, begun: float) -> None:
        """A call begun at `begun` met a limit of the judge's."""
        if begun <= self._last_cut:
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
