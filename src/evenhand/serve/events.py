"""Server-sent events: a run's status whenever it changes, until the run, or the client, ends.

    event: progress
    id: 8f0c…
    data: {"id": "1", "state": "judging", …}

Each event is the whole status, so nothing is lost with a connection: an id names what was told,
and whoever comes back with it (`Last-Event-ID`) is not told the same again, by any worker.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evenhand.errors import EvenhandError
from evenhand.serve.problems import problem_of
from evenhand.serve.values import RunStatus

HEARTBEAT_S = 15.0
HEARTBEAT = b": still here\n\n"
# After a lost connection; browsers would else come back after three seconds or more.
_COME_BACK_MS = 2000
_END = "end-"


async def event_stream(
    statuses: AsyncIterator[RunStatus], *, last_id: str | None = None
) -> Response:
    """The answer to whoever wants to follow. What is wrong with the first step is raised."""
    first = await anext(statuses, None)
    if first is None or (first.at_rest and last_id == _END + told_id(first)):
        # It was told the end already; 204 is how a browser is told not to come back.
        await _close(statuses)
        return Response(status_code=204)
    return _EventStream(_blocks(first, statuses, last_id))


def told_id(status: RunStatus) -> str:
    """What was told, without what changes by itself: speed and times."""
    passing = {"pairs_per_s", "remaining_s", "created_at", "updated_at"}
    told = status.model_dump_json(exclude=passing).encode()
    return hashlib.blake2b(told, digest_size=8).hexdigest()


async def _blocks(
    first: RunStatus, statuses: AsyncIterator[RunStatus], last_id: str | None
) -> AsyncGenerator[bytes]:
    status = first
    try:
        yield f"retry: {_COME_BACK_MS}\n\n".encode()
        if last_id != told_id(first):
            yield _block("progress", first, told_id(first))
        async for status in statuses:
            yield _block("progress", status, told_id(status))
        if status.at_rest:  # else the server is going down: the client comes back and goes on
            yield _block("end", status, _END + told_id(status))
    except EvenhandError as error:
        yield f"event: problem\ndata: {problem_of(error).model_dump_json()}\n\n".encode()
    finally:
        await _close(statuses)


async def _close(statuses: AsyncIterator[RunStatus]) -> None:
    if isinstance(statuses, AsyncGenerator):  # else nothing of it is left open
        await statuses.aclose()


def _block(event: str, status: RunStatus, identifier: str) -> bytes:
    data = status.model_dump_json()  # one line: JSON has no line ends outside of escapes
    return f"event: {event}\nid: {identifier}\ndata: {data}\n\n".encode()


class _EventStream(Response):
    media_type = "text/event-stream"

    def __init__(self, blocks: AsyncGenerator[bytes]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._blocks = blocks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_until_gone(receive))
        step: asyncio.Future[bytes | None] | None = None
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            while not gone.done():
                step = step or asyncio.ensure_future(_next(self._blocks))
                either: set[asyncio.Future[Any]] = {step, gone}
                await asyncio.wait(either, timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    break
                block = HEARTBEAT
                if step.done():
                    found, step = step.result(), None
                    if found is None:
                        await send({"type": "http.response.body", "body": b""})
                        break
                    block = found
                await send({"type": "http.response.body", "body": block, "more_body": True})
        finally:
            await _ended(step, gone)
            await self._blocks.aclose()


async def _next(blocks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(blocks, None)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(*tasks: asyncio.Future[Any] | None) -> None:
    left = [task for task in tasks if task is not None]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
