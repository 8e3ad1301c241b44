"""Ray, joined or started. A started one listens on the loopback only, requires a token, has no
dashboard or usage reports, and ends with this process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from evenhand.errors import ClusterError
from evenhand.messages import Message
from evenhand.runs.stop import Stop

_ANSWERS_WITHIN_S = 10.0
# Ray speaks gRPC over HTTP/2 (RFC 9113, 3.4): each side begins with a SETTINGS frame.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME_HEAD_BYTES = 9
_SETTINGS = 4
_NO_SETTINGS = bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0))


def refuse_unless_ray(address: str, *, within_s: float = _ANSWERS_WITHIN_S) -> None:
    """Raises ClusterError if nothing at HOST:PORT listens, or it cannot be Ray."""
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdigit()):
        return  # Ray has its own words for what is no address
    until = time.monotonic() + within_s
    try:
        with socket.create_connection((host.strip("[]"), int(port)), within_s) as connection:
            if os.environ.get("RAY_USE_TLS", "").lower() in ("1", "true"):
                return  # who it is shows behind its certificate, which Ray looks at
            connection.sendall(_PREFACE + _NO_SETTINGS)
            received = _first_bytes(connection, until)
    except TimeoutError:
        raise _refusal(address, Message("runs.ray_no_answer", seconds=within_s)) from None
    except (OSError, OverflowError) as error:
        raise _refusal(address, getattr(error, "strerror", None) or str(error)) from None
    if len(received) < _FRAME_HEAD_BYTES or received[3] != _SETTINGS or any(received[5:]):
        raise _refusal(address, Message("runs.ray_not_ray"))


def _first_bytes(connection: socket.socket, until: float) -> bytes:
    """A frame head, or less if the peer hangs up."""
    received = b""
    while len(received) < _FRAME_HEAD_BYTES:
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        more = connection.recv(_FRAME_HEAD_BYTES - len(received))
        if not more:
            break
        received += more
    return received


def _refusal(address: str, why: str) -> ClusterError:
    return ClusterError.of("runs.ray_address_refused", address=address, why=why)


# A thread that joins or starts Ray and leaves it again. Nothing waits for it: Ray's calls take
# arbitrarily long and cannot be interrupted.

T = TypeVar("T")
U = TypeVar("U")


class ContextThread(Generic[T]):
    """Enters a context in its own thread, and leaves it there when released.

    The thread lives as long as the context, since the kernel may end child processes with the
    thread that started them. It is a daemon, which the interpreter does not wait for.
    """

    def __init__(self, context: Callable[[], AbstractContextManager[T]]) -> None:
        self._context = context
        self._let_go = threading.Event()
        self._loop = asyncio.get_running_loop()
        self.entered: asyncio.Future[T] = self._loop.create_future()
        self.entered.add_done_callback(_consume_exception)
        self._left: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._keep, name="ray-keeper", daemon=True).start()

    async def leave(self, *, within_s: float) -> None:
        """May be called before entering has finished."""
        self._let_go.set()
        await asyncio.wait([self._left], timeout=within_s)

    def _keep(self) -> None:
        try:
            with self._context() as value:
                self._settle_on_loop(self.entered.set_result, value)
                self._let_go.wait()
        except Exception as error:  # handed to whoever waits, if anybody still does
            self._settle_on_loop(self.entered.set_exception, error)
        finally:
            self._settle_on_loop(self._left.set_result, None)

    def _settle_on_loop(self, settle: Callable[[U], None], what: U) -> None:
        def settle_once() -> None:
            with contextlib.suppress(asyncio.InvalidStateError):  # nobody waits any more
                settle(what)

        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            self._loop.call_soon_threadsafe(settle_once)


def _consume_exception(entered: asyncio.Future[T]) -> None:
    """A failure that nobody awaits any more is ignored."""
    if not entered.cancelled():
        entered.exception()


_OBJECTS_BYTES = 80 * 2**20  # about the least that Ray takes; what goes through it is small
_FOLDER = "ehray-"
_JOINED_WITHIN_S = 60.0
_LEFT_WITHIN_S = 30.0
_LOST_WITHIN_S = 5.0  # one that is lost has nothing to say to it
# The limit of a socket's path, less 64 characters of Ray's and 25 of our folders.
_LONGEST_FOLDER = (103 if sys.platform == "darwin" else 107) - 64 - 25


@dataclass(frozen=True, slots=True)
class Cluster:
    cpus: int
    nodes: int
    hosts: tuple[str, ...]


@contextlib.asynccontextmanager
async def joined(
    address: str | None, *, cpus: int, environment: Mapping[str, str], stop: Stop
) -> AsyncIterator[Cluster | None]:
    """Without an address, start Ray with these CPUs and variables. A cluster that the process had
    joined stays joined. None if the run was stopped meanwhile."""
    stopped = asyncio.Event()
    stop.listen(stopped.set)
    keeper = ContextThread(partial(_connected, address, cpus, environment))
    stopping = asyncio.create_task(stopped.wait())
    try:
        within_s = _JOINED_WITHIN_S if address is not None else None
        awaited: list[asyncio.Future[Any]] = [keeper.entered, stopping]
        await asyncio.wait(awaited, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if keeper.entered.done():
            yield await keeper.entered
        elif stop.by is not None:
            yield None
        else:
            raise ClusterError.of("runs.ray_join_timeout", address=address, within_s=within_s)
    finally:
        stopping.cancel()
        # Pending work is not awaited: it ends by itself, or with this process.
        within_s = _LEFT_WITHIN_S if stop.by != "cluster" else _LOST_WITHIN_S
        await keeper.leave(within_s=within_s if keeper.entered.done() else 0)


@contextlib.contextmanager
def _connected(address: str | None, cpus: int, environment: Mapping[str, str]) -> Iterator[Cluster]:
    import ray

    if ray.is_initialized():
        yield _described()
        return
    with contextlib.ExitStack() as left:
        left.enter_context(_without_worker_logs())
        if address is None:
            _start(cpus, environment, left)
        else:
            _join(address)
        left.callback(ray.shutdown)
        yield _described()


@contextlib.contextmanager
def _without_worker_logs() -> Iterator[None]:
    """When a node is lost, Ray prints pages of its log regardless of settings; we report it
    ourselves."""
    from ray._private import worker

    before, worker._worker_logs_enabled = worker._worker_logs_enabled, False
    try:
        yield
    finally:
        worker._worker_logs_enabled = before


def _join(address: str) -> None:
    import ray
    from ray._private.services import canonicalize_bootstrap_address

    try:
        with _quiet_logger():
            refuse_unless_ray(address)
            # `auto` resolves to an address, and Ray may replace a loopback address with another.
            where = canonicalize_bootstrap_address(address) or address
            if where != address:
                refuse_unless_ray(where)
            ray.init(address=address, **_QUIET)
    except ClusterError:
        raise
    except Exception as error:  # Ray raises all kinds
        raise ClusterError.of(
            "runs.ray_not_joined", address=address, error=_reason(error)
        ) from None


def _start(cpus: int, environment: Mapping[str, str], left: contextlib.ExitStack) -> None:
    folder = _folder()
    left.callback(shutil.rmtree, folder, ignore_errors=True)
    # In case nobody waits for the exit.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with _variables({**_PRIVATE, "RAY_AUTH_TOKEN": _token(), **environment}), _quiet_logger():
        import ray
        from ray._private import ray_constants
        from ray._raylet import Config  # type: ignore[attr-defined]  # it has no stubs

        # Both were read when Ray was imported, maybe before the variables were set.
        Config.initialize("")
        clusters, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
        try:
            ray.init(
                address="local",
                num_cpus=cpus,
                num_gpus=0,
                include_dashboard=False,
                object_store_memory=_OBJECTS_BYTES,
                # Ray opens its folder to everyone, but nobody else can enter the one around it.
                _temp_dir=str(folder / "r"),
                **_QUIET,
            )
        except Exception as error:  # Ray raises all kinds
            raise ClusterError.of("runs.ray_not_started", error=_reason(error)) from None
        finally:
            ray_constants.ENABLE_RAY_CLUSTER = clusters


_QUIET: dict[str, Any] = {
    "log_to_driver": False,
    "configure_logging": False,
    "logging_level": "ERROR",
}
_PRIVATE = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray then uses the loopback as its address and listens nowhere else.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray's workers run at low priority by default; local runs do not.
    "RAY_worker_niceness": "0",
}


@contextlib.contextmanager
def _quiet_logger() -> Iterator[None]:
    """Ray logs at each start, for instance that it leaves signals alone."""
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@cache
def _token() -> str:
    """One per process: Ray reads it once."""
    return secrets.token_hex(32)


@contextlib.contextmanager
def _variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """For processes started meanwhile."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _folder() -> Path:
    """For this process; removes those of killed processes."""
    place = Path(tempfile.gettempdir())
    if len(str(place)) > _LONGEST_FOLDER:
        place = Path("/tmp")  # noqa: S108 - mkdtemp makes a folder that only its user can enter
    for old in place.glob(f"{_FOLDER}*"):
        owner = old.name.removeprefix(_FOLDER).partition("-")[0]
        if owner.isdigit() and not _lives(int(owner)):
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-", dir=place))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def _described() -> Cluster:
    import ray

    known: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call] # Ray is half typed
    nodes = [node for node in known if node.get("Alive")]
    cpus = sum(node.get("Resources", {}).get("CPU", 0) for node in nodes)
    hosts = {str(node.get("NodeManagerAddress")) for node in nodes}
    return Cluster(int(cpus), len(nodes), tuple(sorted(hosts)))


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
