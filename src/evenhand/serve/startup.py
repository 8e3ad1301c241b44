"""Before anything heavy is loaded: whether the extra `serve` is installed, imports without garbage
collection, and freed memory used again or handed back to the system.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal

from evenhand.errors import MissingExtra

Needed = Literal["fastapi", "uvicorn", "mcp"]
_M_ARENA_MAX = -8  # glibc's malloc.h
# Of the SDK it is the second version that is needed, which has two modules.
_MODULES: dict[Needed, tuple[str, ...]] = {
    "fastapi": ("fastapi",),
    "uvicorn": ("uvicorn",),
    "mcp": ("mcp", "mcp_types"),
}


def refuse_without(*wanted: Needed) -> None:
    """To be told at the start, and not to whoever first asks for what is missing."""
    for what in wanted:
        if any(find_spec(module) is None for module in _MODULES[what]):
            raise MissingExtra(what, "serve")


# What is loaded at a start stays until the end, and the garbage collector need not look through
# it; what a large request took goes back to the system.


@contextmanager
def importing() -> Iterator[None]:
    """Around imports. Nothing is collected meanwhile, and what is there afterwards is left out of
    every later search, the one at the process's end too: a seventh of the work of starting MCP."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if collects:
            gc.enable()


def share_arenas() -> None:
    """Threads allocate from two arenas and not from one each: what one freed another can use.
    Measured over all pages of two runs of a million: 510 MB instead of 680."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # it is glibc's alone
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


class MemoryTrimmer:
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
        loop.run_in_executor(None, trim_memory)


def trim_memory() -> None:
    gc.collect()  # errors hold what they were raised over, and each other
    with contextlib.suppress(OSError, AttributeError, TypeError):  # it is glibc's alone
        ctypes.CDLL(None).malloc_trim(0)
