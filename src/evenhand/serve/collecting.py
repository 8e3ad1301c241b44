"""What is loaded at a start stays until the end: the garbage collector need not look through it."""

from __future__ import annotations

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
