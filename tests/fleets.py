"""Servers of a fleet, in process: each is told how its next calls end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from evenhand.contract import Usage
from evenhand.errors import JudgeError
from evenhand.judges.protocol import Completion, JudgeCall, Traits

Outcome = JudgeError | Completion | None


class ScriptedServer:
    """Answers, unless `outcome` says otherwise. Remembers every call."""

    def __init__(self, address: str, outcome: Callable[[], Outcome] = lambda: None) -> None:
        self.base_url = address
        self.name = "openai:m"
        self.traits = Traits(api_url=address)
        self.identity: Mapping[str, object] = {"base_url": address}
        self.outcome = outcome
        self.held: asyncio.Event | None = None  # answers wait for it
        self.calls: list[JudgeCall] = []
        self.closed = False

    async def ask(self, call: JudgeCall) -> Completion:
        self.calls.append(call)
        if self.held is not None:
            await self.held.wait()
        told = self.outcome()
        if isinstance(told, JudgeError):
            raise told
        return told or Completion(text=self.base_url, usage=Usage(requests=1))

    async def close(self) -> None:
        self.closed = True


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
