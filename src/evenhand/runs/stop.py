"""Why a run ends early; the first request decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from evenhand.errors import EvenhandError, Status

StoppedBy = Literal[
    "max-calls",
    "max-cost",
    "interrupt",
    "judge",
    "store",
    "cluster",
    "decided",
    "certain",
    "budget",
]

STOPPED_STATUS: dict[StoppedBy, int] = {
    "max-calls": Status.CAP_REACHED,
    "max-cost": Status.CAP_REACHED,
    "interrupt": Status.INTERRUPTED,
    "judge": Status.JUDGE_FAILED,
    "store": Status.BAD_INPUT,
    "cluster": Status.BAD_INPUT,
    # A stop rule met its target or its budget.
    "decided": Status.OK,
    "certain": Status.OK,
    "budget": Status.OK,
}


class Stop:
    """One per run. The first request notifies all listeners; calls in flight finish."""

    def __init__(self) -> None:
        self.by: StoppedBy | None = None
        self.error: EvenhandError | None = None
        self._listeners: list[Callable[[], None]] = []

    def ask(self, by: StoppedBy, error: EvenhandError | None = None) -> None:
        if self.by is not None:
            return
        self.by, self.error = by, error
        for listener in self._listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)
        if self.by is not None:
            listener()
