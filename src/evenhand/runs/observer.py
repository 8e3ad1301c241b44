"""Who is told how a run goes. This one listens to nothing; the command line's shows it."""

from __future__ import annotations

from evenhand.runs.estimate import Estimate
from evenhand.runs.progress import Progress


class Observer:
    def reading(self, rows: int) -> None:
        """Rows of the data read so far. Called from another thread."""

    def approve(self, estimate: Estimate) -> None:
        """Raise to keep the run from beginning."""

    def announce(self, what: str) -> None:
        """What a run with an end of its own is about to do."""

    def began(self, run: str, store: str, *, done: int, total: int) -> None:
        """The run is found or made, and its pairs are known."""

    def progress(self, progress: Progress) -> None:
        """Some times a second, and once at the end."""
