"""A figure of a large run, computed in a process of its own.

The server's interpreter stays free for whoever waits for a page; what the computing took goes back
to the system; and where the system ends the process for want of memory, the server lives on.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from evenhand import __version__
from evenhand.errors import EvenhandError, ServerBusy
from evenhand.messages import Message
from evenhand.serve.logs import log

if TYPE_CHECKING:
    from evenhand.serve.report_cache import Figure
    from evenhand.store import Store

# It looks for modules where the server does, and not in the folder that it is started in.
_BEGIN = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from evenhand.serve.figure_process import main; main()"
)
_NICE = 5  # behind pages and judging
_AGAIN_AFTER_S = 60
_KILLED = (-9, 137)  # as the system does for want of memory
_AT_ONCE = threading.BoundedSemaphore(2)

_running: WeakKeyDictionary[Store, set[subprocess.Popen[bytes]]] = WeakKeyDictionary()
_registering = threading.Lock()


class FigureBug(Exception):
    """Something was raised there that is no error of ours: its traceback, as text."""


def can_start() -> bool:
    """Whether there is a Python to start: not in a program that was frozen into one file."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def compute_apart(store: Store, figure: Figure[Any]) -> bytes:
    """The figure as JSON; raises what computing it raised. For a thread."""
    address = store.address_with_secrets or store.address
    request = pickle.dumps(sys.path) + pickle.dumps((__version__, address, figure))
    try:
        with _AT_ONCE, _started(store) as process:
            answer, code = _exchange(process, request)
    except OSError as error:  # no memory or no process is left to start one with
        log.warning("no process could be started to compute %s: %s", figure.what, error)
        answer, code = b"", error.errno or 1
    if code != 0 or not answer:
        log.warning("the process that computed %s ended with code %s", figure.what, code)
        killed = "killed" if code in _KILLED else "ended"
        message = Message(f"serve.figure_process_{killed}", what=figure.what, code=code)
        raise ServerBusy(message, retry_after_s=_AGAIN_AFTER_S)
    computed = pickle.loads(answer)  # noqa: S301 - by a process of ours
    if isinstance(computed, Exception):
        raise computed
    body: bytes = computed
    return body


def end_processes(store: Store) -> None:
    """Of a server that ends; whoever waits for them is told that they have."""
    with _registering:
        for process in _running.get(store, ()):
            process.kill()


@contextmanager
def _started(store: Store) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(  # noqa: S603 - this Python, and no shell
        [sys.executable, "-P", "-c", _BEGIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the server, which ends it
    )
    with _registering:
        _running.setdefault(store, set()).add(process)
    try:
        yield process
    finally:
        with _registering:
            _running[store].discard(process)
        process.kill()
        process.wait()


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> tuple[bytes, int]:
    """What it answered, and its exit code."""
    to, back = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    with contextlib.suppress(BrokenPipeError):  # it has ended before; its code says how
        to.write(request)
        to.flush()
    with back:
        # Its input stays open to its end: without one, it knows that the server is gone.
        answer, code = back.read(), process.wait()
    with contextlib.suppress(BrokenPipeError):
        to.close()
    return answer, code


def main() -> None:
    """The process: one request, one answer."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no part of the answer
    with contextlib.suppress(AttributeError, OSError):  # Windows has no such thing
        os.nice(_NICE)
    version, address, figure = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the server
    threading.Thread(target=_end_with_server, daemon=True).start()
    if version == __version__:
        answer = pickle.dumps(_computed(address, figure))
    else:
        upgraded = Message("serve.upgraded_meanwhile", version=version, now=__version__)
        answer = pickle.dumps(ServerBusy(upgraded, retry_after_s=_AGAIN_AFTER_S))
    with answers:
        answers.write(answer)
    os._exit(0)  # what it holds need not be taken apart


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _computed(address: str, figure: Figure[Any]) -> bytes | Exception:
    from evenhand.store import open_store

    try:
        with open_store(address, create=False) as store:
            return figure.body(store)
    except EvenhandError as error:
        return error
    except Exception:  # of any kind: it is told where it can be logged
        return FigureBug(traceback.format_exc())
