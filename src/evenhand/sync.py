"""The sync face: a background event loop that outlives the single call.

One loop for all calls, so that a judge's connections stay open between them, and so that it works
inside a running loop (a notebook) too.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid = 0  # a forked child has the loop, but not the thread that runs it


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from sync code; Ctrl-C cancels it and waits for its clean-up."""
    loop = _background_loop()
    if _running_loop() is loop:
        work.close()
        raise RuntimeError("a judge that is asked by sync code cannot use the sync face; await it")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        concurrent.futures.wait([future], timeout=5)
        raise


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
