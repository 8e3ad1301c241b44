"""What a fleet adds to each call: the choice of a server, over servers that answer in process."""

from __future__ import annotations

import asyncio
import time

from evenhand.contract import Criterion, Pair, Usage
from evenhand.judges.fleet import FleetJudge
from evenhand.judges.protocol import Completion, Judge, JudgeCall, Traits

ROUNDS, CALLS = 7, 5000
IN_FLIGHT = 9  # at each server of a busy fleet
_ANSWER = Completion(text="A", usage=Usage(requests=1))
_RESPONSE = "word " * 400


class InstantServer:
    name = "openai:instant"
    traits = Traits()

    def __init__(self, number: int) -> None:
        self.base_url = f"http://gpu-{number}:8000/v1"
        self.held: asyncio.Event | None = None

    async def ask(self, call: JudgeCall) -> Completion:
        if self.held is not None:
            await self.held.wait()
        return _ANSWER

    async def close(self) -> None: ...


def calls() -> list[JudgeCall]:
    criteria = (Criterion(name="accuracy"),)
    pairs = (
        Pair(
            prompt=f"question {number}",
            response_a=_RESPONSE + str(number),
            response_b=_RESPONSE,
            criteria=criteria,
        )
        for number in range(CALLS)
    )
    return [JudgeCall(pair, "original", 1) for pair in pairs]


async def cpu_us(judge: Judge, asked: list[JudgeCall]) -> float:
    """Of one call, the least of all rounds."""
    least = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        for call in asked:
            await judge.ask(call)
        least = min(least, time.process_time() - begun)
    return 1e6 * least / len(asked)


async def main() -> None:
    asked = calls()
    alone = await cpu_us(InstantServer(0), asked)
    print("CPU microseconds that a fleet adds to a call")
    print("servers   idle   busy")
    for count in (3, 8, 32, 128):
        servers = [InstantServer(number) for number in range(count)]
        fleet = FleetJudge(servers)
        idle = await cpu_us(fleet, asked) - alone
        for server in servers:
            server.held = asyncio.Event()
        held = [asyncio.create_task(fleet.ask(call)) for call in asked[: count * IN_FLIGHT]]
        await asyncio.sleep(0)
        waiting = [server.held for server in servers if server.held is not None]
        for server in servers:
            server.held = None
        busy = await cpu_us(fleet, asked) - alone
        print(f"{count:7} {idle:6.1f} {busy:6.1f}")
        for event in waiting:
            event.set()
        await asyncio.gather(*held)


if __name__ == "__main__":
    asyncio.run(main())
