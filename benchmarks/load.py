"""A load of POSTs on a loopback server: HTTP written by hand, so that the server is the slow one.

Closed: so many clients, each asking again once it is answered. Open: so many requests a second,
whatever comes of them, which is how a crowd behaves.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """What became of the requests. `unanswered`: the connection ended before the answer did."""

    statuses: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    without_retry_after: int = 0  # of the 429s
    wrong: int = 0  # of the 200s
    seconds: list[float] = field(default_factory=list)  # of the 200s

    @property
    def sent(self) -> int:
        return self.statuses.total() + self.unanswered


@dataclass(frozen=True, slots=True)
class Target:
    port: int
    path: str
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, body: bytes) -> bytes:
        headers = {
            "Host": f"127.0.0.1:{self.port}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **self.headers,
        }
        lines = [f"POST {self.path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


class _Client:
    """One connection, opened when first needed and again after it was closed."""

    def __init__(self, target: Target, tally: Tally, right: Callable[[bytes], bool]) -> None:
        self._target = target
        self._tally = tally
        self._right = right
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, body: bytes) -> int:
        """The status, and it is counted; 0 where no answer came."""
        began = time.perf_counter()
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(
                    "127.0.0.1", self._target.port, limit=2**20
                )
            reader, writer = self._streams
            writer.write(self._target.request(body))
            head = await reader.readuntil(b"\r\n\r\n")
            answer = await reader.readexactly(_header(head, b"content-length"))
        except (OSError, EOFError):
            self._tally.unanswered += 1
            await self.close()
            return 0
        status = int(head[9:12])
        self._tally.statuses[status] += 1
        if status == 200:
            self._tally.seconds.append(time.perf_counter() - began)
            self._tally.wrong += not self._right(answer)
        elif status == 429:
            self._tally.without_retry_after += b"\r\nretry-after: " not in head.lower()
        if b"\r\nconnection: close" in head.lower():
            await self.close()
        return status

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def _header(head: bytes, name: bytes) -> int:
    at = head.lower().index(b"\r\n" + name + b":") + len(name) + 3
    return int(head[at : head.index(b"\r\n", at)])


async def closed_load(
    target: Target, bodies: Iterator[bytes], *, clients: int, right: Callable[[bytes], bool]
) -> Tally:
    """Until the bodies are through."""
    tally = Tally()

    async def ask_on() -> None:
        client = _Client(target, tally, right)
        for body in bodies:
            await client.ask(body)
        await client.close()

    await asyncio.gather(*(ask_on() for _ in range(clients)))
    return tally


async def open_load(
    target: Target,
    bodies: Iterator[bytes],
    *,
    per_s: float,
    for_s: float,
    right: Callable[[bytes], bool],
) -> Tally:
    tally = Tally()
    idle: deque[_Client] = deque()
    busy: set[asyncio.Task[None]] = set()

    async def ask(client: _Client, body: bytes) -> None:
        await client.ask(body)
        idle.append(client)

    began = time.perf_counter()
    sent = 0
    while (now := time.perf_counter() - began) < for_s:
        while sent < now * per_s:
            client = idle.pop() if idle else _Client(target, tally, right)
            task = asyncio.create_task(ask(client, next(bodies)))
            busy.add(task)
            task.add_done_callback(busy.discard)
            sent += 1
        await asyncio.sleep(0.002)
    await asyncio.gather(*list(busy))
    for client in idle:
        await client.close()
    return tally
