"""The server as a process, or several over one store: started, watched and ended in good order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn

from evenhand.errors import SettingsError, Status
from evenhand.serve.collecting import loading
from evenhand.serve.config import ServerConfig
from evenhand.serve.connections import protocol_class
from evenhand.serve.logs import configure_logs, log
from evenhand.serve.tokens import Ledger

_KEEP_ALIVE_S = 60
_BACKLOG = 2048
_MOST_FILES = 65_536


def bind(config: ServerConfig) -> socket.socket:
    """The listening socket; taken before anything else is started."""
    try:
        found = socket.getaddrinfo(
            config.host.strip("[]"), config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise SettingsError(
            f"host {config.host!r} is no address of this machine ({error.strerror or error}); "
            "give another --host"
        ) from None
    try:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on port {config.port} of {config.host} ({error.strerror or error}); "
            "give another --port (0 takes any free one) or another --host"
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
    ledger: Ledger | None = None,
    ends_with: Callable[[Callable[[], None]], None] | None = None,
) -> int:
    """Answer until a signal comes; the exit code.

    `ends_with` is given what ends the server, for those who have another reason to than a signal.
    """
    configure_logs(config)
    _take_more_files()
    with loading():
        # Not above: what only checks, and starts others, needs none of it.
        from evenhand.serve.app import make_app

        app = make_app(config)
    if ledger is not None:
        app.state.doorway.share(ledger)
    server = Server(app, config, on_ready=on_ready)
    if ends_with is not None:
        ends_with(server.end)
    server.run(sockets=[listener])
    return Status.OK


def _uvicorn_config(app: Any, config: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol_class(config),
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


class Server(uvicorn.Server):
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
        # What is loaded by now stays; a request makes few cycles.
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
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
        log.info("the server is ending: what is in flight may finish")
        state = getattr(self._app, "state", None)
        doorway = getattr(state, "doorway", None)
        service = getattr(state, "service", None)
        if service is not None:
            service.begin_shutdown()
        if doorway is not None:
            doorway.close()
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
    with loading():
        from evenhand.serve.offers import Offers
        from evenhand.settings import load_settings
        from evenhand.store import open_store

    settings = load_settings()
    offers = Offers(config, settings)
    try:
        offered = offers.offered()
    finally:
        await offers.close()
    with await asyncio.to_thread(open_store, config.store or settings.store):
        pass  # made, or brought up to date, by one process alone
    return [f"{each.name}: {each.caveat}" for each in offered if each.caveat]
