"""Workers as Ray actors: each a process, on whichever node has room."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayError

from evenhand.messages import Message
from evenhand.runs.ray.messages import Assignment, Grant, WorkerFailure, WorkerLost, WorkerReport
from evenhand.runs.ray.worker import Worker

_PLACED_WITHIN_S = 15.0


class ActorWorker(Worker):
    """Exits its process: a killed raylet leaves its workers behind."""

    def leave(self) -> None:
        os._exit(0)


class ActorHandle:
    """Keys and passwords come from the node's environment; none are sent."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        self._actor: Any = None
        self.place = Message("runs.ray_no_node")

    async def begin(self, assignment: Assignment) -> WorkerFailure | None:
        # Calls that may ask Ray's head block if it is lost, so they run in threads.
        self._actor = await _in_thread(_new_actor)
        pending = await _in_thread(partial(self._actor.begin.remote, assignment))
        starting = asyncio.ensure_future(self._answer(pending))
        try:
            done, _ = await asyncio.wait([starting], timeout=_PLACED_WITHIN_S)
            if not done:
                self._announce(Message("runs.ray_no_cpu"))
            trouble: WorkerFailure | None = await starting
        finally:
            starting.cancel()
        self.place = await self._answer(self._actor.where.remote())
        return trouble

    async def exchange(self, grant: Grant, *, within_s: float) -> WorkerReport:
        try:
            report: WorkerReport = await asyncio.wait_for(
                self._answer(self._actor.exchange.remote(grant)), within_s
            )
        except TimeoutError:
            raise WorkerLost(
                Message("runs.ray_silent", seconds=within_s), confirmed=False
            ) from None
        return report

    def kill(self) -> None:
        actor, self._actor = self._actor, None
        if actor is not None:
            threading.Thread(target=_kill, args=(actor,), daemon=True).start()

    async def _answer(self, reference: Any) -> Any:
        try:
            return await asyncio.wrap_future(reference.future())
        except RayError as error:
            # Even an actor that Ray calls dead may live on: only its node may be lost.
            raise WorkerLost(_cause(error), confirmed=False) from None


def _new_actor() -> Any:
    actor: Any = ray.remote(ActorWorker)
    return actor.options(
        num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
    ).remote()


def _kill(actor: Any) -> None:
    # Nothing to kill if it is dead or the cluster is gone.
    with contextlib.suppress(RayError, ValueError, RuntimeError):
        ray.kill(actor)


async def _in_thread(call: Callable[[], Any]) -> Any:
    """In a daemon thread, which neither the process nor the event loop waits for."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(ended: Callable[[Any], None], value: Any) -> None:
        if not answer.done():
            ended(value)

    def work() -> None:
        try:
            ended, value = answer.set_result, call()
        except RayError as error:
            ended, value = answer.set_exception, WorkerLost(_cause(error), confirmed=False)
        except Exception as error:  # handed to whoever waits
            ended, value = answer.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(settle, ended, value)

    threading.Thread(target=work, daemon=True).start()
    return await answer


def _cause(error: RayError) -> str:
    """The first line of Ray's page of text."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".")
