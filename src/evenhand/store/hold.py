"""Holding a run, so that two processes do not judge the same pairs; let go when a process dies."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine, select, text

from evenhand.errors import StoreBusy, StoreError
from evenhand.store.schema import runs
from evenhand.store.texts import unescape


def _busy(name: str, address: str, holder: str = "") -> StoreBusy:
    return StoreBusy(
        f"run {name} of store {address} is in use by another process{holder}; "
        "wait until it is done, or stop it"
    )


@contextlib.contextmanager
def hold_by_file(store: Path, run_id: int) -> Iterator[None]:
    """A locked file beside the store; the system lets go of it with the process."""
    path = store.with_name(f"{store.name}.run-{run_id}.lock")
    descriptor = _locked(path, run_id, str(store))
    try:
        yield
    finally:
        # Removed while still locked: whoever opened it meanwhile sees that it is gone and begins
        # again. Windows removes no open file; there it stays, empty of meaning.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _locked(path: Path, run_id: int, address: str) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise StoreError(
                f"lock file {path} cannot be made: {why}; make the store's folder writable"
            ) from None
        if not _try_lock(descriptor):
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
            os.close(descriptor)
            name = _name_in_file(Path(address), run_id)
            raise _busy(name, address, f" ({holder})" if holder.isdigit() else "")
        if _is_still_there(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())
            return descriptor
        os.close(descriptor)


def _name_in_file(store: Path, run_id: int) -> str:
    """Only to be told: where it cannot be read just now, its number has to do."""
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


@contextlib.contextmanager
def hold_by_server(engine: Engine, run_id: int, address: str) -> Iterator[None]:
    """An advisory lock of a connection of its own; the server lets go of it with the connection."""
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()
    try:
        schema = connection.execute(text("SELECT current_schema()")).scalar() or ""
        # Two stores in one database lie in different schemas, and their runs have the same numbers.
        place = zlib.crc32(f"evenhand {schema}".encode()) - 2**31
        lock = text("SELECT pg_try_advisory_lock(:place, :run)")
        if not connection.execute(lock, {"place": place, "run": run_id}).scalar():
            query = select(runs.c.name).where(runs.c.id == run_id)
            name = connection.execute(query).scalar()
            raise _busy(repr(name) if name else str(run_id), address)
        yield
    finally:
        connection.close()
