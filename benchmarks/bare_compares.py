"""The comparer alone, as the server's measure: reads a count, judges so many pairs, says the CPU.

    python -m benchmarks.bare_compares URL IN_FLIGHT

Prints "ready", then for each line on standard input the CPU seconds that it took.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from itertools import islice

import orjson
import uvloop
from benchmarks.serve_pairs import bodies

from evenhand.contract import read_pair
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.registry import JudgeOptions
from evenhand.judging.comparison import compare
from evenhand.judging.config import JudgeConfig


async def judged(judge: OpenAIJudge, count: int, *, in_flight: int) -> float:
    pairs = [orjson.loads(body) for body in islice(bodies(), count)]
    left = iter(pairs)
    config = JudgeConfig()

    async def some() -> None:
        for pair in left:
            await compare(read_pair(pair), judge, config)

    begun = time.process_time()
    await asyncio.gather(*(some() for _ in range(in_flight)))
    return time.process_time() - begun


async def work(url: str, in_flight: int) -> None:
    gc.freeze()
    async with OpenAIJudge("bench", JudgeOptions(base_url=url)) as judge:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(await judged(judge, int(line), in_flight=in_flight), flush=True)


def main() -> None:
    url, in_flight = sys.argv[1:]
    uvloop.run(work(url, int(in_flight)))


if __name__ == "__main__":
    main()
