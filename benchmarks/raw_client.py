"""The limit: a bare aiohttp client sends recorded bodies and reads each reply whole.

python -m benchmarks.raw_client BODIES URL IN_FLIGHT [asyncio]

On uvloop, or on asyncio's own loop as most people run it.
"""

from __future__ import annotations

import asyncio
import mmap
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import uvloop
from benchmarks.recorded import read_bodies

_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "User-Agent": "evenhand",
}


async def send_all(waiting: Iterator[bytes], url: str, *, in_flight: int) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=_HEADERS) as session:

        async def send() -> None:
            for body in waiting:
                async with session.post(url, data=body) as response:
                    await response.read()
                    assert response.status == 200

        await asyncio.gather(*(send() for _ in range(in_flight)))


def main() -> None:
    path, base_url, in_flight, *loop = sys.argv[1:]
    run = asyncio.run if loop == ["asyncio"] else uvloop.run
    url = f"{base_url}/chat/completions"
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as recorded,
    ):
        run(send_all(read_bodies(recorded), url, in_flight=int(in_flight)))


if __name__ == "__main__":
    main()
