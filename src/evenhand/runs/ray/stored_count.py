"""A worker's count: what is stored, and nothing that a kill could take back."""

from __future__ import annotations

from collections import deque

from evenhand.runs.progress import Count
from evenhand.store import Settled


class StoredCount(Count):
    """Verdicts are stored in the order in which they are settled."""

    def __init__(self, judge: str, *, known: bool) -> None:
        super().__init__(judge, 0)
        self._known = known
        self._unstored: deque[Settled] = deque()

    @property
    def proven(self) -> bool:
        return self._known

    def settled(self, settled: Settled) -> None:
        self.waiting += 1
        self._unstored.append(settled)

    def stored(self, count: int) -> None:
        for _ in range(count):
            super().settled(self._unstored.popleft())
            self.waiting -= 1
        super().stored(count)
