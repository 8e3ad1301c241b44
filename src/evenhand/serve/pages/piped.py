"""What a thread writes, sent as it is written: a file that nobody has to hold whole."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO, cast

_BLOCK = 1 << 16
_WAITING = 4  # blocks; then the thread waits for whoever reads


class _GivenUp(OSError):
    """Nobody reads any more."""


class _Pipe(io.RawIOBase):
    """The thread's end: gathered to blocks, since writers write a few bytes at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, blocks: asyncio.Queue[bytes]) -> None:
        super().__init__()
        self._loop = loop
        self._blocks = blocks
        self._gathered = bytearray()
        self.given_up = False

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        if self.given_up:
            raise _GivenUp
        told = memoryview(cast("bytes", data)).cast("B")
        self._gathered += told
        if len(self._gathered) >= _BLOCK:
            self.send()
        return len(told)

    def send(self) -> None:
        if not self._gathered:
            return
        block, self._gathered = bytes(self._gathered), bytearray()
        sent = asyncio.run_coroutine_threadsafe(self._blocks.put(block), self._loop)
        while not self.given_up:
            try:
                sent.result(timeout=0.5)
            except TimeoutError:
                continue
            return
        sent.cancel()
        raise _GivenUp


async def piped(write: Callable[[BinaryIO], object]) -> AsyncIterator[bytes]:
    """`write` runs in a thread; it ends with an error where nobody reads any more."""
    blocks: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
    pipe = _Pipe(asyncio.get_running_loop(), blocks)

    def work() -> None:
        write(cast("BinaryIO", pipe))
        pipe.send()

    writing = asyncio.create_task(asyncio.to_thread(work))
    try:
        while True:
            reading = asyncio.create_task(blocks.get())
            await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                yield reading.result()
                continue
            reading.cancel()
            while not blocks.empty():
                yield blocks.get_nowait()
            writing.result()
            return
    finally:
        pipe.given_up = True
        # A thread cannot be broken off; it ends at its next block, and what it meets is no news.
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
