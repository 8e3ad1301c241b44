"""Who counts what the service does. This one counts nothing; the server's own makes metrics."""

from __future__ import annotations

from evenhand.contract import Verdict
from evenhand.errors import EvenhandError


class Watch:
    def compared(self, judge: str, told: Verdict | EvenhandError, *, seconds: float) -> None:
        """A comparison has ended: with a verdict, or with what was raised."""

    def run_told(self, judge: str, *, calls: int, verdicts: int) -> None:
        """A background run has made so many more calls and verdicts; `judge` is its first."""

    def run_ended(self, state: str) -> None:
        """A background run was let go of: finished, stopped, failed, or queued for later."""
