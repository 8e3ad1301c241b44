"""Workers in this process instead of Ray's: everything else is as it is on a cluster."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from evenhand.runs.ray import executor
from evenhand.runs.ray.cluster import Cluster
from evenhand.runs.ray.messages import Assignment, Grant, WorkerFailure, WorkerLost, WorkerReport
from evenhand.runs.ray.worker import Worker


@dataclass
class Crowd:
    """What happened to the workers, and what is to happen to them."""

    dies_at: Callable[[int, int], bool] = lambda worker, exchange: False
    finds_no_place: Callable[[int], bool] = lambda worker: False
    begun: int = 0
    dying: list[asyncio.Task[None]] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)  # all that went to workers


class WorkerHere:
    """A worker in this event loop, behind pickles as it would be behind Ray."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd = crowd
        self._number = number
        self._worker = Worker()
        self._exchanges = count(1)
        self._killed = False
        self._beginning: asyncio.Task[WorkerFailure | None] | None = None
        self.place = f"worker {number} here"

    async def begin(self, assignment: Assignment) -> WorkerFailure | None:
        self._crowd.begun += 1
        if self._crowd.finds_no_place(self._number):
            await asyncio.Event().wait()
        if self._crowd.dies_at(self._number, 0):
            raise WorkerLost("it died young", confirmed=True)
        self._beginning = asyncio.create_task(self._worker.begin(self._there(assignment)))
        # A process that is not waited for any more goes on until it is killed.
        return await asyncio.shield(self._beginning)

    async def exchange(self, grant: Grant, *, within_s: float) -> WorkerReport:
        if self._crowd.dies_at(self._number, next(self._exchanges)):
            self.kill()
            raise WorkerLost("it was killed", confirmed=True)
        report: WorkerReport = self._there(await self._worker.exchange(self._there(grant)))
        return report

    def kill(self) -> None:
        if not self._killed:
            self._killed = True
            self._crowd.dying.append(asyncio.create_task(self._die()))

    async def _die(self) -> None:
        if self._beginning is not None:
            await self._beginning
        for name in ("_working", "_watching"):
            task: asyncio.Task[None] | None = getattr(self._worker, name, None)
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    def _there(self, message: Any) -> Any:
        self._crowd.sent.append(pickle.dumps(message))
        return pickle.loads(self._crowd.sent[-1])  # noqa: S301 - our own


@pytest.fixture
async def crowd(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Crowd]:
    from evenhand.runs.ray import actors  # imports Ray

    crowd, numbers = Crowd(), count(1)

    @asynccontextmanager
    async def joined(*_: Any, **__: Any) -> AsyncIterator[Cluster]:
        yield Cluster(cpus=4, nodes=1, hosts=("127.0.0.1",))

    monkeypatch.setattr(executor, "joined", joined)
    monkeypatch.setattr(actors, "ActorHandle", lambda _: WorkerHere(crowd, next(numbers)))
    yield crowd
    await asyncio.gather(*crowd.dying, return_exceptions=True)
