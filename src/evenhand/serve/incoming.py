"""A request's body as it comes in: counted whether or not its length was told, and timed."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive

from evenhand.errors import EvenhandError, ServerBusy, TooLarge, TooSlow
from evenhand.serve.config import MIB

_STEP = 64 * 1024  # of an upload, that must come in time


class Held:
    """The bytes of all bodies that are in memory, and how many may be."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = 0


class Body:
    """Stands between the server and the app. `refused` is what it was broken off with."""

    def __init__(
        self,
        receive: Receive,
        *,
        most: int,
        timeout_s: float,
        held: Held | None,
        keeps: int = 0,
    ) -> None:
        self._receive = receive
        self._most = most
        self._timeout_s = timeout_s
        self._held = held  # None: it goes to a file
        self._deadline: float | None = None
        self._next_step = _STEP
        self._counted = 0
        self._whole = False
        self.size = 0
        self.refused: EvenhandError | None = None
        self.kept = bytearray()
        self.keeps = keeps  # so many bytes, for the log

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()  # what is left to come is the client's leaving
        if self.refused is not None:
            raise self.refused
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + self._timeout_s
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            self.refused = TooSlow(
                f"the body stopped at {self.size} bytes for {self._timeout_s:g} s; send it faster"
            )
            raise self.refused from None
        if message["type"] != "http.request":
            self._whole = True
            return message
        chunk = message.get("body", b"")
        self._whole = not message.get("more_body", False)
        self._take(chunk, loop)
        return message

    def _take(self, chunk: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self.size += len(chunk)
        if self.size > self._most:
            self.refused = too_large(self._most)
            raise self.refused
        if self.keeps:
            self.kept += chunk[: self.keeps - len(self.kept)]
        if self._held is not None:
            self._held.now += len(chunk)
            self._counted += len(chunk)
            if self._held.now > self._held.most:
                self.release()
                self.refused = ServerBusy(
                    "the requests in memory are as large as may be together; ask again later"
                )
                raise self.refused
        elif self.size >= self._next_step:
            self._next_step = self.size + _STEP
            self._deadline = loop.time() + self._timeout_s

    async def skip(self) -> Message:
        """What comes next, for nobody."""
        return await self._receive()

    def release(self) -> None:
        """The request is over, and with it what it held."""
        if self._held is not None:
            self._held.now -= self._counted
            self._counted = 0


def too_large(most: int) -> TooLarge:
    size = f"{most / MIB:g} MiB" if most >= MIB else f"{most} bytes"
    return TooLarge(f"the body is larger than {size}; send less, or upload it as a run's file")
