"""Workers as Ray's actors: each in a process of its own, on whichever node has room."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import RayError

from evenhand.runs.ray.messages import Assignment, Grant, WorkerFailure, WorkerLost, WorkerReport
from evenhand.runs.ray.worker import Worker

_PLACED_WITHIN_S = 15.0


class ActorWorker(Worker):
    """Its process ends with it: a raylet that was killed leaves its workers behind."""

    def leave(self) -> None:
        os._exit(0)


class ActorHandle:
    """Keys and passwords are those of its node's environment: nothing of the sort is passed on."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        actor: Any = ray.remote(ActorWorker)
        self._actor = actor.options(
            num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        ).remote()
        self.place = "no node has room for it yet"

    async def begin(self, assignment: Assignment) -> WorkerFailure | None:
        beginning = asyncio.ensure_future(self._answer(self._actor.begin.remote(assignment)))
        try:
            done, _ = await asyncio.wait([beginning], timeout=_PLACED_WITHIN_S)
            if not done:
                self._announce("a worker waits for a free CPU in the cluster")
            trouble: WorkerFailure | None = await beginning
        finally:
            beginning.cancel()
        self.place = await self._answer(self._actor.where.remote())
        return trouble

    async def exchange(self, grant: Grant, *, within_s: float) -> WorkerReport:
        try:
            report: WorkerReport = await asyncio.wait_for(
                self._answer(self._actor.exchange.remote(grant)), within_s
            )
        except TimeoutError:
            raise WorkerLost(f"it told nothing for {within_s:g} s", surely=False) from None
        return report

    def kill(self) -> None:
        # It may be dead, or the cluster gone: then there is nothing to kill.
        with contextlib.suppress(RayError, ValueError, RuntimeError):
            ray.kill(self._actor)

    async def _answer(self, reference: Any) -> Any:
        try:
            return await asyncio.wrap_future(reference.future())
        except RayError as error:
            # Even where Ray says that an actor is dead: its node may be, and the process may not.
            raise WorkerLost(_cause(error), surely=False) from None


def _cause(error: RayError) -> str:
    """Ray tells a page; its first sentence that says something has to do."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".")
