"""The server as a process, or as several behind one socket and over one store: started, watched,
replaced and ended in good order.

Not uvicorn's supervisor: its workers share no rate limits, nobody hears when all of them answer,
and one that keeps dying is started anew without a pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.process import parent_process
from types import FrameType
from typing import Any

import uvicorn

from evenhand.errors import EvenhandError, SettingsError, Status, StoreError, exit_code
from evenhand.messages import Message
from evenhand.serve.config import ServerConfig
from evenhand.serve.logs import configure_logs, log
from evenhand.serve.metrics import FOLDER_VARIABLE, forget_process
from evenhand.serve.security.access import RateBuckets, SharedBuckets
from evenhand.serve.startup import share_arenas

_KEEP_ALIVE_S = 60
HEAD_BYTES = 128 * 1024  # of a request's head, its trailers, and what stands beside a chunk
_BACKLOG = 2048
_MOST_FILES = 65_536


def bind(config: ServerConfig) -> socket.socket:
    """The listening socket; taken before anything else is started."""
    try:
        addresses = socket.getaddrinfo(
            config.host.strip("[]"), config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = addresses[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise SettingsError(
            Message(
                "serve.host_not_here",
                host=config.host,
                strerror=error.strerror or error,
            )
        ) from None
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise SettingsError(
            Message(
                "serve.port_not_free",
                port=config.port,
                host=config.host,
                strerror=error.strerror or error,
            )
        ) from None
    listener.set_inheritable(True)
    return listener


def address_of(config: ServerConfig, listener: socket.socket) -> str:
    host = config.host.strip("[]")
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def serve(
    config: ServerConfig,
    listener: socket.socket,
    *,
    on_ready: Callable[[], None],
    ledger: RateBuckets | None = None,
    ends_with: Callable[[Callable[[], None]], None] | None = None,
) -> int:
    """Answer until a signal comes; the exit code.

    `ends_with` is given what ends the server, for those who have another reason to than a signal.
    """
    configure_logs(config)
    _take_more_files()
    share_arenas()
    # Not above: what only checks, and starts others, needs none of it.
    from evenhand.serve.app import make_app

    app = make_app(config)
    if ledger is not None:
        app.state.policy.share(ledger)
    server = UvicornServer(app, config, on_ready=on_ready)
    if ends_with is not None:
        ends_with(server.end)
    server.run(sockets=[listener])
    return Status.OK


def _uvicorn_config(app: Any, config: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        # The parser that bounds heads and takes no trailer for a header.
        http="h11",
        h11_max_incomplete_event_size=HEAD_BYTES,
        loop="uvloop" if _has_uvloop() else "asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # the guard's line says it, without what stands in a query
        server_header=False,
        proxy_headers=bool(config.trusted_proxies),
        forwarded_allow_ips=list(config.trusted_proxies),
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(config.limits.shutdown_s)),
    )


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


class UvicornServer(uvicorn.Server):
    """uvicorn's, with an end of our own: the first signal begins it, the second is it."""

    def __init__(self, app: Any, config: ServerConfig, *, on_ready: Callable[[], None]) -> None:
        super().__init__(_uvicorn_config(app, config))
        self._on_ready = on_ready
        self._app = app
        self._fault: BaseException | None = None

    def end(self) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """What keeps the app from starting is raised; uvicorn would print it and exit."""
        self._keep_fault()
        uvicorns = logging.getLogger("uvicorn.error")
        uvicorns.disabled = True
        try:
            await super().startup(sockets)
        except SystemExit:
            if self._fault is None:
                raise
            raise self._fault from None
        finally:
            uvicorns.disabled = False
        # What is loaded by now stays: looking through it takes a tenth of the time of requests.
        gc.freeze()
        self._on_ready()

    def _keep_fault(self) -> None:
        inner = self._app.router.lifespan_context

        @contextlib.asynccontextmanager
        async def lifespan(app: Any) -> AsyncIterator[Any]:
            try:
                async with inner(app) as state:
                    yield state
            except BaseException as error:
                self._fault = error
                raise

        self._app.router.lifespan_context = lifespan

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log.info("the server is shutting down; requests in flight may finish")
        state = getattr(self._app, "state", None)
        policy = getattr(state, "policy", None)
        service = getattr(state, "service", None)
        if service is not None:
            service.begin_shutdown()
        if policy is not None:
            policy.close()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Without raising them again at the end: to end in good order is no failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in handled}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(Status.INTERRUPTED)  # what was judged is in the store already
        self.should_exit = True


def _take_more_files() -> None:
    """Each connection is a file, and the usual limit is low."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(_MOST_FILES, hard)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def check(config: ServerConfig) -> list[str]:
    """Open everything once, so that what is wrong is said on one line before anything starts.

    What each judge's name brings as a caveat comes back.
    """
    from evenhand.serve.judges import JudgeCatalog
    from evenhand.settings import load_settings
    from evenhand.store import open_store

    settings = load_settings()
    offers = JudgeCatalog(config, settings)
    try:
        offered = offers.offered()
    finally:
        await offers.close()
    with await asyncio.to_thread(open_store, config.store or settings.store):
        pass  # made, or brought up to date, by one process alone
    return [f"{each.name}: {each.caveat}" for each in offered if each.caveat]


_READY = b"ready"
_LOOK_EVERY_S = 0.2
# One that dies so soon may well do so again: the next is given a little longer to come, each time.
_TOO_SOON_S = 5.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
# So many that never came up, one after the other: the fault is none that passes.
_MOST_IN_VAIN = 8


def serve_by_several(
    config: ServerConfig, listener: socket.socket, *, on_ready: Callable[[], None]
) -> int:
    """Answer until a signal comes; the exit code."""
    configure_logs(config)
    folder = tempfile.mkdtemp(prefix="evenhand-metrics-")
    os.environ[FOLDER_VARIABLE] = folder  # they inherit it
    try:
        return _Workers(config, listener, on_ready).run()
    finally:
        del os.environ[FOLDER_VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)


class _Worker:
    """`early` and `in_vain` are how many before it, in its place, died soon or never came up."""

    def __init__(
        self, process: SpawnProcess, ears: Connection, *, early: int = 0, in_vain: int = 0
    ) -> None:
        self.process = process
        self.ears = ears
        self.early = early
        self.in_vain = in_vain
        self.began = time.monotonic()
        self.ended: float | None = None
        self.ready = False

    def look(self) -> None:
        if not self.ready and self.ears.poll():
            try:
                self.ready = self.ears.recv_bytes() == _READY
            except EOFError:
                return

    def note_end(self) -> None:
        """For the one that takes its place."""
        self.ended = time.monotonic()
        self.early = self.early + 1 if self.ended - self.began < _TOO_SOON_S else 0
        self.in_vain = 0 if self.ready else self.in_vain + 1

    @property
    def is_awaited(self) -> bool:
        """Whether it is too early for another in its place."""
        if self.ended is None or not (self.early or self.in_vain):
            return False
        pause = _FIRST_PAUSE_S * 2.0 ** (max(self.early, self.in_vain) - 1)
        return time.monotonic() - self.ended < min(pause, _LONGEST_PAUSE_S)


class _Workers:
    def __init__(
        self, config: ServerConfig, listener: socket.socket, on_ready: Callable[[], None]
    ) -> None:
        self._config = config
        self._listener = listener
        self._on_ready = on_ready
        self._context = multiprocessing.get_context("spawn")
        names = ["", *(token.name for token in (*config.tokens, *config.voters))]
        self._ledger = SharedBuckets(names, self._context)
        self._ending = False
        self._workers: list[_Worker] = []

    def run(self) -> int:
        before = {
            each: signal.signal(each, self._on_signal) for each in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            self._workers = [self._started() for _ in range(self._config.workers)]
            self._watch()
        finally:
            self._end()
            for each, handler in before.items():
                signal.signal(each, handler)
        return Status.OK

    def _started(self, before: _Worker | None = None) -> _Worker:
        ears, mouth = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_work, args=(self._config, self._listener, self._ledger, mouth), daemon=False
        )
        process.start()
        mouth.close()
        if before is None:
            return _Worker(process, ears)
        return _Worker(process, ears, early=before.early, in_vain=before.in_vain)

    def _watch(self) -> None:
        ending = False
        while not self._ending:
            self._rest()
            for place, worker in enumerate(self._workers):
                if worker.ended is None:
                    worker.look()
                    if not worker.process.is_alive():
                        self._part_with(worker, ending=ending)
                elif not worker.is_awaited and not self._ending:
                    self._workers[place] = self._started(worker)
            if not ending and all(worker.ready for worker in self._workers):
                ending = True
                self._on_ready()

    def _rest(self) -> None:
        """Until one of them ends, or for a moment."""
        alive = [each.process.sentinel for each in self._workers if each.ended is None]
        if alive:
            wait(alive, timeout=_LOOK_EVERY_S)
        else:
            time.sleep(_LOOK_EVERY_S)

    def _part_with(self, worker: _Worker, *, ending: bool) -> None:
        """Before the server has said that it answers, what ails a worker is told and is the end;
        afterwards the others go on answering, and another one comes."""
        worker.note_end()
        worker.ears.close()
        if worker.process.pid is not None:
            forget_process(worker.process.pid)
        if not self._ending and (
            worker.in_vain >= _MOST_IN_VAIN or (worker.in_vain and not ending)
        ):
            self._ending = True
            raise StoreError(Message("serve.worker_ended", exitcode=worker.process.exitcode))
        log.warning("worker %s exited; starting another", worker.process.pid)

    def _on_signal(self, sig: int, frame: FrameType | None) -> None:
        if self._ending:  # the second time: at once
            for worker in self._workers:
                worker.process.kill()
            os._exit(Status.INTERRUPTED)
        self._ending = True

    def _end(self) -> None:
        self._listener.close()  # or clients would wait at a door that nobody opens any more
        for worker in self._workers:
            if worker.process.is_alive():
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join()


def _work(
    config: ServerConfig, listener: socket.socket, ledger: SharedBuckets, mouth: Connection
) -> None:
    """One of them. Ctrl-C reaches all of a terminal's processes: the parent passes it on."""

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def say_ready() -> None:
        mouth.send_bytes(_READY)
        mouth.close()

    try:
        code = serve(config, listener, on_ready=say_ready, ledger=ledger, ends_with=_orphaned)
    except EvenhandError as error:
        log.error("a worker could not start: %s", error)
        code = exit_code(error)
    except Exception:  # a fault of ours; its message may quote anything
        log.exception("a worker failed")
        code = Status.JUDGE_FAILED
    sys.exit(code)


def _orphaned(end: Callable[[], None]) -> None:
    """A parent that was killed leaves nobody to pass a signal on: end without one."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        end()

    threading.Thread(target=watch, name="parent", daemon=True).start()
