"""What the peers' adapters share: so many calls at a time, timed without the start-up.

Runs in the peers' own environments, so it needs nothing but Python.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path

Row = dict[str, str]
Ask = Callable[[Row], Awaitable[bool]]  # whether the first response is the better one


def measure(make: Callable[[str], Ask]) -> None:
    """`python -m benchmarks.peer_… PAIRS URL IN_FLIGHT CALLS`; prints one JSON object."""
    path, url, in_flight, calls = sys.argv[1:]
    with Path(path).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in islice(file, int(calls))]
    asyncio.run(_measured(make, rows, url, in_flight=int(in_flight)))


async def _measured(
    make: Callable[[str], Ask], rows: list[Row], url: str, *, in_flight: int
) -> None:
    ask = make(url)
    places = asyncio.Semaphore(in_flight)

    async def in_its_place(row: Row) -> bool:
        async with places:
            return await ask(row)

    wall, cpu = time.perf_counter(), time.process_time()
    first_better = sum(await asyncio.gather(*map(in_its_place, rows)))
    told = {
        "calls": len(rows),
        "firstBetter": first_better,
        "wallSeconds": time.perf_counter() - wall,
        "cpuSeconds": time.process_time() - cpu,
    }
    print(json.dumps(told))
