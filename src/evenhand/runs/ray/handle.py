"""A worker as its driver knows it: how it is spoken to, and what it means when it is gone."""

from __future__ import annotations

from typing import Protocol

from evenhand.errors import ClusterError, EvenhandError, JudgeError, StoreError
from evenhand.runs.ray.messages import Assignment, Grant, Report, Trouble


class WorkerLost(Exception):
    """`surely`: it is dead, and not only out of reach."""

    def __init__(self, why: str, *, surely: bool) -> None:
        super().__init__(why)
        self.why = why
        self.surely = surely


class Handle(Protocol):
    """A worker, wherever it is. Both calls raise WorkerLost."""

    @property
    def place(self) -> str:
        """Where it runs, in words."""

    async def begin(self, assignment: Assignment) -> Trouble | None: ...

    async def exchange(self, grant: Grant, *, within_s: float) -> Report: ...

    def kill(self) -> None: ...


def error_of(trouble: Trouble, place: str) -> EvenhandError:
    """As the class that it was, so that its exit code is what it is on one machine."""
    message = f"{trouble.message} (said a worker: {place})"
    if trouble.by == "judge":
        return _of_kind(JudgeError, trouble.kind)(message)
    if trouble.by == "store" or trouble.kind.startswith("store"):
        return StoreError(message)
    return ClusterError(message)


def _of_kind(root: type[EvenhandError], kind: str) -> type[EvenhandError]:
    return next((each for each in root.__subclasses__() if each.kind == kind), root)
