"""Why a run ends before its work does; whoever asks first decides."""

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
    # It has found what it was after, or asked as much as it was told to.
    "decided": Status.OK,
    "certain": Status.OK,
    "budget": Status.OK,
}


class Stop:
    """One for a run. Asked once, it tells everyone who listens; what is in flight goes on."""

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
