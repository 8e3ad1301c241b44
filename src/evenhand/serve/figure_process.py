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

from evenhand.errors import EvenhandError, ServerBusy
from evenhand.messages import Message

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

_running: WeakKeyDictionary[Store, set[subprocess.Popen[bytes]]] = WeakKeyDictionary()
_registering = threading.Lock()


class FigureBug(Exception):
    """Something was raised there that is no error of ours: its traceback, as text."""


def compute_apart(store: Store, figure: Figure[Any]) -> bytes:
    """The figure as JSON; raises what computing it raised. For a thread."""
    with _started(store) as process:
        request = pickle.dumps(sys.path) + pickle.dumps(
            (store.address_with_secrets or store.address, figure)
        )
        answer, code = _exchange(process, request)
    if code != 0:
        message = Message("serve.figure_process_ended", what=figure.what, code=code)
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
    address, figure = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the server
    threading.Thread(target=_end_with_server, daemon=True).start()
    answer = pickle.dumps(_computed(address, figure))
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
