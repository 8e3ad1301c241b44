"""Standard input and output as the protocol's wire: lines in, lines out, nothing else on either.

Reading and writing block in threads that end with the process, so that neither a silent client
nor one that does not read can keep it from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from queue import SimpleQueue

_BLOCK = 64 * 1024


class TooLong(Exception):
    """A line longer than the wire takes; it was passed over."""


class Wire:
    """Lines of UTF-8. `read` gives None at the end; `write` is over when the line is out."""

    def __init__(self, reads: int, writes: int, *, longest_line: int) -> None:
        self._reads = reads
        self._writes = writes
        self._longest = longest_line
        self._loop = asyncio.get_running_loop()
        # One line ahead: a client that sends faster than it is served waits.
        self._lines: asyncio.Queue[bytes | TooLong | None] = asyncio.Queue(1)
        self._out: SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = SimpleQueue()
        for name, work in (("reads", self._read_all), ("writes", self._write_all)):
            threading.Thread(target=work, name=f"evenhand-mcp-{name}", daemon=True).start()

    async def read(self) -> bytes | None:
        line = await self._lines.get()
        if isinstance(line, TooLong):
            raise line
        return line

    async def write(self, line: bytes) -> None:
        """OSError where nobody reads any more."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._out.put((line + b"\n", written))
        await written

    def end(self) -> None:
        self._out.put(None)

    def _read_all(self) -> None:
        line = bytearray()
        passing_over = False
        with contextlib.suppress(CancelledError, RuntimeError):  # the event loop has ended
            while block := self._block():
                *ended, rest = block.split(b"\n")
                for part in ended:
                    line += part
                    if passing_over or len(line) > self._longest:
                        self._hand_over(TooLong())
                    elif line.strip():
                        self._hand_over(bytes(line))
                    line.clear()
                    passing_over = False
                line += rest
                if len(line) > self._longest:
                    passing_over = True
                    line.clear()
            if line.strip():  # the last line needs no end
                self._hand_over(bytes(line))
            self._hand_over(None)

    def _block(self) -> bytes:
        try:
            return os.read(self._reads, _BLOCK)
        except OSError:  # whoever wrote is gone
            return b""

    def _hand_over(self, line: bytes | TooLong | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()

    def _write_all(self) -> None:
        while (told := self._out.get()) is not None:
            line, written = told
            failure: OSError | None = None
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(self._writes, left) :]
            except OSError as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(_settle, written, failure)


def _settle(written: asyncio.Future[None], failure: OSError | None) -> None:
    if written.done():
        return
    if failure is None:
        written.set_result(None)
    else:
        written.set_exception(failure)


@asynccontextmanager
async def standard_wire(*, longest_line: int) -> AsyncIterator[Wire]:
    """The process's own input and output. While it is held, whatever else reads finds an end, and
    whatever else prints, a child too, prints to standard error."""
    sys.stdout.flush()
    reads, writes = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    wire = Wire(reads, writes, longest_line=longest_line)
    try:
        yield wire
    finally:
        wire.end()
        sys.stdout.flush()
        # Theirs again, not closed: a thread may still be reading.
        os.dup2(reads, 0)
        os.dup2(writes, 1)
