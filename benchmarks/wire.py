"""What one judge call costs over one bare aiohttp request with the same bytes, in CPU time.

    python -m benchmarks.wire

Short rounds of each in turn against the loopback server; the last results are in
docs/benchmarks.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp
import orjson
import uvloop
from benchmarks.loopback import LoopbackServer
from benchmarks.rooms import PLAIN

from evenhand.contract import read_pair
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.protocol import JudgeCall
from evenhand.judges.registry import JudgeOptions
from evenhand.prompts import Prompt, answer_schema, built_in_template

IN_FLIGHT = 128
CALLS = 512
ROUNDS = 60
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "User-Agent": "evenhand",
}


def a_call() -> JudgeCall:
    pair = read_pair(PLAIN)
    prompt = Prompt.of(pair, built_in_template("en", "reasoned"))
    messages = prompt.messages("original")
    return JudgeCall(pair, "original", 1, messages=messages, answer_schema=answer_schema(pair))


def the_same_bytes(call: JudgeCall) -> bytes:
    return orjson.dumps(
        {
            "model": "bench",
            "messages": [{"role": m.role, "content": m.text} for m in call.messages],
            "max_tokens": 4096,
            "temperature": 0.0,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": call.answer_schema},
            },
        }
    )


async def cpu_us(one: Callable[[], Awaitable[object]]) -> float:
    left = iter(range(CALLS))

    async def some() -> None:
        for _ in left:
            await one()

    begun = time.process_time_ns()
    await asyncio.gather(*(some() for _ in range(IN_FLIGHT)))
    return (time.process_time_ns() - begun) / CALLS / 1e3


async def measure(url: str) -> None:
    call = a_call()
    body, address = the_same_bytes(call), f"{url}/chat/completions"
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(connector=connector, headers=HEADERS) as session,
        OpenAIJudge("bench", JudgeOptions(base_url=url)) as judge,
    ):

        async def raw() -> None:
            async with session.post(address, data=body) as response:
                await response.read()

        async def ask() -> None:
            await judge.ask(call)

        taken: dict[str, list[float]] = {"raw aiohttp": [], "OpenAIJudge.ask": []}
        for round_number in range(ROUNDS + 1):
            for name, one in zip(taken, (raw, ask), strict=True):
                spent = await cpu_us(one)
                if round_number:  # the first opens the connections
                    taken[name].append(spent)
    print(f"CPU microseconds a call, {IN_FLIGHT} in flight, {len(body):,} bytes sent")
    for name, spent_us in taken.items():
        spent_us.sort()
        print(
            f"  {name:<16} least {spent_us[0]:6.1f}   a tenth {spent_us[ROUNDS // 10]:6.1f}   "
            f"median {spent_us[ROUNDS // 2]:6.1f}"
        )


def main() -> None:
    with LoopbackServer() as server:
        uvloop.run(measure(server.url))


if __name__ == "__main__":
    main()
