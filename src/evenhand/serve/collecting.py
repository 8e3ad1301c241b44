"""What is loaded at a start stays until the end, and the garbage collector need not look through
it; what a large request took goes back to the system."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Around imports. Nothing is collected meanwhile, and what is there afterwards is left out of
    every later search, the one at the process's end too: that is a quarter of a start's work."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if collects:
            gc.enable()


class Returning:
    """The allocator keeps what was freed, a hundred megabytes after a few large bodies, and may
    never need it again."""

    def __init__(self, after_s: float = 3.0) -> None:
        self._after_s = after_s
        self._due: asyncio.TimerHandle | None = None

    def soon(self) -> None:
        """Once for all that come until then."""
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_later(self._after_s, self._begin, loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = None
        loop.run_in_executor(None, give_back)


def give_back() -> None:
    gc.collect()  # errors hold what they were raised over, and each other
    with contextlib.suppress(OSError, AttributeError, TypeError):  # it is glibc's alone
        ctypes.CDLL(None).malloc_trim(0)
