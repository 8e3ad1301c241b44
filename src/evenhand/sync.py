"""The sync face: a background event loop that outlives the single call.

One loop for all calls, so that a judge's connections stay open between them, and so that it works
inside a running loop (a notebook) too.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from sync code; Ctrl-C cancels it and waits for its clean-up."""
    future = asyncio.run_coroutine_threadsafe(work, _background_loop())
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        concurrent.futures.wait([future], timeout=5)
        raise


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="evenhand", daemon=True).start()
        return _loop
