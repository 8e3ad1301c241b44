"""Processes that compute the figures of large runs.

The server's interpreter stays free for whoever waits for a page; where the system ends a process
for want of memory, the server lives on; and they end once nothing is left to compute, which gives
their memory back. (`max_tasks_per_child` would, but CPython 3.11 may hang with it: gh-115634.)
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from evenhand import __version__
from evenhand.errors import ServerBusy
from evenhand.messages import Message
from evenhand.serve.logs import log

if TYPE_CHECKING:
    from evenhand.serve.figures import Figure

MOST_PROCESSES = 2
_NICE = 5  # behind pages and judging
_AGAIN_AFTER_S = 60


def can_start() -> bool:
    """Whether there is a Python to start: not in a program that was frozen into one file."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


class FigurePool:
    """Of one server and one store; `address` with its password, where it has one."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._server: Connection | None = None  # without it, the processes end
        self._asked = 0
        self._closed = False

    def compute(self, figure: Figure[Any]) -> bytes:
        """The figure as JSON; raises what computing it raised. For a thread."""
        with self._opened() as pool:
            try:
                computing: Future[bytes] = pool.submit(_compute, __version__, self._address, figure)
            except (OSError, RuntimeError) as error:  # no memory is left to start one, or it closes
                raise _ended(figure, error) from None
            try:
                return computing.result()
            except BrokenProcessPool as error:
                raise _ended(figure, error) from None

    def close(self) -> None:
        """End the processes; whoever waits for them is told to try again."""
        with self._lock:
            self._closed = True
            self._end()

    @contextmanager
    def _opened(self) -> Iterator[ProcessPoolExecutor]:
        with self._lock:
            if self._pool is None:
                alive, self._server = multiprocessing.Pipe(duplex=False)
                self._pool = ProcessPoolExecutor(
                    MOST_PROCESSES, multiprocessing.get_context("spawn"), _begin, (alive,)
                )
                if self._closed:
                    self._pool.shutdown()
            pool = self._pool
            self._asked += 1
        try:
            yield pool
        finally:
            with self._lock:
                self._asked -= 1
                if self._asked == 0:
                    self._end()

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._server is not None:
            self._server.close()
        self._pool = self._server = None


def _ended(figure: Figure[Any], error: Exception) -> ServerBusy:
    log.warning("the process that computed %s ended: %s", figure.name, error)
    message = Message("serve.figure_process_ended", name=figure.name)
    return ServerBusy(message, retry_after_s=_AGAIN_AFTER_S)


def _begin(alive: Connection) -> None:
    """In a new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends it
    os.dup2(2, 1)  # what a library prints is no part of what a server on stdio says
    with contextlib.suppress(AttributeError, OSError):  # Windows has no such thing
        os.nice(_NICE)
    threading.Thread(target=_end_with_server, args=(alive,), daemon=True).start()


def _end_with_server(alive: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        alive.recv_bytes()
    os._exit(1)


def _compute(version: str, address: str, figure: Figure[Any]) -> bytes:
    from evenhand.store import open_store

    if version != __version__:
        upgraded = Message("serve.upgraded_meanwhile", version=version, now=__version__)
        raise ServerBusy(upgraded, retry_after_s=_AGAIN_AFTER_S)
    with open_store(address, create=False) as store:
        return figure.body(store)
