"""A thread that joins or starts Ray, and leaves it again. Nobody has to wait for it: Ray's calls
take as long as they like, and cannot be broken off."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Keeper(Generic[T]):
    """Enters a context in a thread of its own, and leaves it there once it is let go.

    The thread lives as long as the context does: the kernel ends what a thread has started with
    that thread, where it was asked to. It is none that an interpreter waits for at its end.
    """

    def __init__(self, kept: Callable[[], AbstractContextManager[T]]) -> None:
        self._kept = kept
        self._let_go = threading.Event()
        self._loop = asyncio.get_running_loop()
        self.entered: asyncio.Future[T] = self._loop.create_future()
        self.entered.add_done_callback(_heard)
        self._left: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._keep, name="ray-keeper", daemon=True).start()

    async def leave(self, *, within_s: float) -> None:
        """Also before it has entered: then it leaves as soon as it has."""
        self._let_go.set()
        await asyncio.wait([self._left], timeout=within_s)

    def _keep(self) -> None:
        try:
            with self._kept() as value:
                self._tell(self.entered.set_result, value)
                self._let_go.wait()
        except Exception as error:  # handed to whoever waits, if anybody still does
            self._tell(self.entered.set_exception, error)
        finally:
            self._tell(self._left.set_result, None)

    def _tell(self, settle: Callable[[U], None], what: U) -> None:
        def told() -> None:
            with contextlib.suppress(asyncio.InvalidStateError):  # nobody waits any more
                settle(what)

        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            self._loop.call_soon_threadsafe(told)


def _heard(entered: asyncio.Future[T]) -> None:
    """What fails after everybody has gone is nobody's trouble."""
    if not entered.cancelled():
        entered.exception()
