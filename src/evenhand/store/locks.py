"""Run locks: one process holds a run; several workers may work on it. A lock ends with its process
or connection.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import SQLAlchemyError

from evenhand.errors import StoreBusy, StoreError
from evenhand.messages import Message
from evenhand.store.schema import runs, unescape


def _busy(name: str, address: str, process: str = "") -> StoreBusy:
    values = {"name": name, "address": address}
    if process:
        return StoreBusy.of("store.run_in_use_by", process=process, **values)
    return StoreBusy.of("store.run_in_use", **values)


@contextlib.contextmanager
def hold_by_file(store: Path, run_id: int) -> Iterator[None]:
    """A locked file beside the store; the system releases it with the process."""
    path = store.with_name(f"{store.name}.run-{run_id}.lock")
    descriptor = _locked(path, run_id, str(store))
    try:
        yield
    finally:
        # Removed while still locked: a process that opened it meanwhile notices and starts over.
        # Windows cannot remove open files, so there an unlocked file stays.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _locked(path: Path, run_id: int, address: str) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise StoreError.of("store.lock_file_failed", path=path, why=why) from None
        if not _try_lock(descriptor):
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
            os.close(descriptor)
            name = _name_in_file(Path(address), run_id)
            raise _busy(name, address, holder if holder.isdigit() else "")
        if _is_still_there(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())
            return descriptor
        os.close(descriptor)


def _name_in_file(store: Path, run_id: int) -> str:
    """Only for a message; the number will do if the name cannot be read."""
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)
        with contextlib.closing(connection):
            query = "SELECT name FROM runs WHERE id = ?"
            for (name,) in connection.execute(query, (run_id,)):
                return repr(unescape(name))
    return str(run_id)


def _is_still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        # Far behind the process id, which others may read: Windows locks bytes, not files.
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


# The name under which both engines of a server's store share its holds.
HOLDS = "evenhand_holds"
_LOOKED_AT_EVERY_S = 1.0


class Holds:
    """The runs held at a server. A lost connection loses its hold, and the server may give the run
    to another process, so holds are checked before a write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: list[tuple[Connection, str]] = []
        self._lost: str | None = None
        self._looked_at = time.monotonic()

    @contextlib.contextmanager
    def holding(self, connection: Connection, run: str) -> Iterator[None]:
        """`run` is for error messages."""
        held = (connection, run)
        with self._lock:
            self._held.append(held)
        try:
            yield
        finally:
            with self._lock:
                self._held.remove(held)
                self._lost = None if self._lost == run else self._lost

    def look(self, _writing: Connection) -> None:
        with self._lock:
            now = time.monotonic()
            if self._lost is None and self._held and now - self._looked_at >= _LOOKED_AT_EVERY_S:
                self._looked_at = now
                self._lost = next((run for held, run in self._held if not _answers(held)), None)
            if self._lost is not None:
                raise StoreError.of("store.hold_lost", run=self._lost)


def _answers(connection: Connection) -> bool:
    try:
        connection.execute(text("SELECT 1")).close()
    except SQLAlchemyError:
        return False
    return True


@contextlib.contextmanager
def hold_by_server(engine: Engine, run_id: int, address: str) -> Iterator[None]:
    """An advisory lock on a dedicated connection, which releases it when closed."""
    holds: Holds = engine.get_execution_options()[HOLDS]
    with _own_connection(engine) as connection:
        lock = {"place": _place(connection, "evenhand"), "run": run_id}
        known = connection.execute(select(runs.c.name).where(runs.c.id == run_id)).scalar()
        name = repr(known) if known else str(run_id)
        if not connection.execute(_IS_FREE, lock).scalar():
            raise _busy(name, address)
        try:
            with holds.holding(connection, Message("store.run_at", name=name, address=address)):
                yield
        finally:
            # Closing the connection releases it too, but with a delay, and the next holder may be
            # waiting.
            if not connection.invalidated:
                with contextlib.suppress(SQLAlchemyError):  # lost by now, and the lock with it
                    connection.execute(_UNLOCK, lock)


# Shows whether workers of the previous holder are still active. Released with the connection.

_REGISTER = text("SELECT pg_advisory_lock_shared(:place, :run)")
_IS_FREE = text("SELECT pg_try_advisory_lock(:place, :run)")
_UNLOCK = text("SELECT pg_advisory_unlock(:place, :run)")


@contextlib.contextmanager
def register_at_server(engine: Engine, run_id: int) -> Iterator[None]:
    """A shared advisory lock on a dedicated connection."""
    with _own_connection(engine) as connection:
        connection.execute(
            _REGISTER, {"place": _place(connection, "evenhand workers"), "run": run_id}
        )
        yield


def has_workers_at_server(engine: Engine, run_id: int) -> bool:
    with _own_connection(engine) as connection:
        lock = {"place": _place(connection, "evenhand workers"), "run": run_id}
        free = connection.execute(_IS_FREE, lock).scalar()
        if free:
            connection.execute(_UNLOCK, lock)
        return not free


@contextlib.contextmanager
def _own_connection(engine: Engine) -> Iterator[Connection]:
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()
    try:
        yield connection
    finally:
        connection.close()


def _place(connection: Connection, who: str) -> int:
    """Differs by schema: two stores in one database have the same run numbers."""
    schema = connection.execute(text("SELECT current_schema()")).scalar() or ""
    return zlib.crc32(f"{who} {schema}".encode()) - 2**31
