"""What a run is after: every pair, or only as many as a question needs."""

from __future__ import annotations

from typing import Protocol

from evenhand.contract.model import Model
from evenhand.runs.stop import StoppedBy
from evenhand.runs.supply import InOrder, Supply
from evenhand.stats.sequential import Decision
from evenhand.store import Store


class RankProgress(Model):
    """How sure the order of the models is. The probabilities are those of the fitted strengths."""

    models: tuple[str, ...]  # best first
    expected_tau: float
    least_neighbour: float  # how probably the least certain two neighbours stand right
    asked: int
    budget: int


class Found(Model):
    """What a run that ends by itself has found; nulls where it was not after that."""

    decision: Decision | None = None
    ranking: RankProgress | None = None


class Pursuit(Protocol):
    """Its methods read the store, and so are called off the event loop."""

    def begin(self) -> StoppedBy | None:
        """Make ready once all items are in; says so where nothing is left to ask."""
        ...

    def look(self, done: int) -> StoppedBy | None:
        """Whether what is stored by now is enough; so many verdicts there are."""
        ...

    def found(self) -> Found: ...

    def announcement(self) -> str | None:
        """What will be done, said before the start."""
        ...

    def account(self) -> str | None:
        """What came of it, said at the end."""
        ...

    def most_pairs(self, pending: int) -> int:
        """How many of the pending pairs will be asked at most."""
        ...

    def supply(self, judge_id: int) -> Supply: ...


class EveryPair:
    def __init__(self, store: Store, run_id: int) -> None:
        self._store = store
        self._run_id = run_id

    def begin(self) -> StoppedBy | None:
        return None

    def look(self, done: int) -> StoppedBy | None:
        return None

    def found(self) -> Found:
        return Found()

    def announcement(self) -> str | None:
        return None

    def account(self) -> str | None:
        return None

    def most_pairs(self, pending: int) -> int:
        return pending

    def supply(self, judge_id: int) -> Supply:
        return InOrder(self._store, self._run_id, judge_id)
