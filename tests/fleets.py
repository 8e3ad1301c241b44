"""Servers of a fleet, in process: each is told how the next calls and checks end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from evenhand.contract import Usage
from evenhand.errors import JudgeError
from evenhand.judges import Completion, JudgeCall, Traits

Outcome = JudgeError | Completion | None


class ScriptedServer:
    """Answers, unless `outcome` says otherwise. Remembers every call and every check."""

    def __init__(self, address: str, outcome: Callable[[], Outcome] = lambda: None) -> None:
        self.base_url = address
        self.name = "openai:m"
        self.traits = Traits(api_url=address)
        self.identity: Mapping[str, object] = {"base_url": address}
        self.outcome = outcome
        self.unwell: JudgeError | None = None
        self.held: asyncio.Event | None = None  # answers wait for it
        self.calls: list[JudgeCall] = []
        self.checks = 0
        self.closed = False

    async def ask(self, call: JudgeCall) -> Completion:
        self.calls.append(call)
        if self.held is not None:
            await self.held.wait()
        told = self.outcome()
        if isinstance(told, JudgeError):
            raise told
        return told or Completion(text=self.base_url, usage=Usage(requests=1))

    async def check(self, *, timeout_s: float) -> None:
        self.checks += 1
        if self.unwell is not None:
            raise self.unwell

    async def close(self) -> None:
        self.closed = True


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self._sleepers.append((self.now + seconds, woken))
        await woken.wait()

    async def pass_by(self, seconds: float) -> None:
        """Whoever sleeps until then does what it was going to do."""
        await _all_others()
        self.now += seconds
        for until, woken in self._sleepers:
            if self.now >= until:
                woken.set()
        await _all_others()


async def _all_others() -> None:
    """More turns of the loop than anything here takes."""
    for _ in range(10):
        await asyncio.sleep(0)
