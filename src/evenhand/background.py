"""One background event loop for all sync calls, so that a judge's connections stay open between
them, and so that they work inside a running loop (a notebook) too.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid = 0  # a forked child has the loop, but not the thread that runs it


def in_background(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from sync code; Ctrl-C cancels it and waits for its clean-up."""
    loop = _background_loop()
    if _running_loop() is loop:
        work.close()
        raise RuntimeError("the sync API cannot be called from a judge; await the async one")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        concurrent.futures.wait([future], timeout=5)
        raise


def sync_of(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same function for code that is not async; works inside a running event loop too."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        return in_background(function(*args, **named))

    call.__name__ = call.__qualname__ = f"{function.__name__}_sync"
    return call


def each_in_background(values: AsyncGenerator[T, None]) -> Iterator[T]:
    """The same for a stream. It is closed where the iteration ends, or is left."""

    async def following() -> tuple[T, ...]:
        # Not by StopAsyncIteration, which no future may hold.
        async for value in values:
            return (value,)
        return ()

    try:
        while following_values := in_background(following()):
            yield following_values[0]
    finally:
        # A program that ends while the iteration is open has no loop any more to wait for.
        if not sys.is_finalizing():
            in_background(values.aclose())


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop, _pid
    with _lock:
        if _loop is None or _loop.is_closed() or _pid != os.getpid():
            _pid = os.getpid()
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="evenhand", daemon=True).start()
        return _loop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
