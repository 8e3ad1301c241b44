"""The time between two looks at the provider: it grows, and a stop ends it."""

from __future__ import annotations

import asyncio
import contextlib
import time

from evenhand.errors import JudgeError, JudgeRateLimited, JudgeServerError
from evenhand.runs.batch.timing import BatchTiming
from evenhand.runs.stop import Stop


class Waiting:
    def __init__(self, timing: BatchTiming, stop: Stop) -> None:
        self._timing = timing
        self._stopped = asyncio.Event()
        self._next_s = timing.first_look_s
        self._at_least_s = 0.0
        self._failing_since: float | None = None
        self._patience_s = timing.first_patience_s
        stop.listen(self._stopped.set)

    def anew(self) -> None:
        """Something is new there, and may be done soon."""
        self._next_s = self._timing.first_look_s

    def worked(self) -> None:
        self._failing_since = None
        self._patience_s = self._timing.patience_s

    def hold_back(self) -> None:
        """There is no room there, and it may take long until there is."""
        self._at_least_s = self._timing.look_s

    @property
    def is_failing(self) -> bool:
        return self._failing_since is not None

    def failed(self, error: JudgeError) -> bool:
        """Whether it is worth going on."""
        if isinstance(error, JudgeRateLimited | JudgeServerError) and error.retry_after_s:
            self._at_least_s = error.retry_after_s
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        return error.retryable and now - self._failing_since <= self._patience_s

    async def rest(self, *, at_most_s: float | None = None) -> None:
        """Until it is time to look again, or the run is stopped."""
        wait_s = self._next_s if at_most_s is None else min(self._next_s, at_most_s)
        wait_s, self._at_least_s = max(wait_s, self._at_least_s), 0.0
        self._next_s = min(self._timing.look_s, self._next_s * self._timing.grows_by)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), wait_s)
