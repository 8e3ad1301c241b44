"""A store in one file: SQLite in WAL mode, readable by its owner only."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from evenhand.errors import StoreError

# A pass has a few kilobytes, so 4 KiB pages would be half empty; larger ones cost more in the index
# of pair digests, whose writes are random.
_PAGE_BYTES = 16 * 1024
_CACHE_KIB = 32 * 1024
# 64 MB of WAL: with many pairs, index pages are rewritten repeatedly, and most versions never need
# to reach the file.
_WAL_PAGES = 4000
_WAL_KEPT_BYTES = _WAL_PAGES * _PAGE_BYTES
_SMALLEST_BYTES = 512  # one page, the smallest


def prepare_file(path: Path, *, create: bool) -> None:
    """Make the file if needed; say why it cannot be used otherwise."""
    try:
        file = os.stat(path)
    except FileNotFoundError:
        if not create:
            raise StoreError.of("store.not_there", path=path) from None
        _make_folder(path.parent)
        _make_file(path)
        return
    except OSError as error:
        raise StoreError.of("store.open_failed", path=path, reason=_why(error)) from None
    if stat.S_ISDIR(file.st_mode):
        raise StoreError.of("store.is_directory", path=path, file=path / "evenhand.db")
    if not stat.S_ISREG(file.st_mode):
        raise StoreError.of("store.no_regular_file", path=path)
    if 0 < file.st_size < _SMALLEST_BYTES:
        # Checked here, since SQLite takes a one-byte file for an empty one and overwrites it.
        raise StoreError.of("store.not_sqlite", address=path)
    if file.st_size == 0 and create and os.access(path, os.W_OK):
        os.chmod(path, 0o600)
    # SQLite keeps its log beside the file.
    for needed in (path, path.parent):
        if not os.access(needed, os.R_OK | os.W_OK):
            raise StoreError.of("store.not_writable", path=path, needed=needed)


def _make_folder(folder: Path) -> None:
    missing = [folder]
    try:
        while not missing[-1].exists():
            missing.append(missing[-1].parent)
        for each in reversed(missing[:-1]):
            each.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError.of("store.folder_failed", folder=folder, reason=_why(error)) from None
    if not folder.is_dir():
        raise StoreError.of("store.no_folder", folder=folder)


def _make_file(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass  # another process was faster; it is as good as ours
    except OSError as error:
        raise StoreError.of("store.make_failed", path=path, reason=_why(error)) from None


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def open_engines(path: Path, *, busy_timeout_s: float) -> tuple[Engine, Engine]:
    """One engine for reading, one for writing.

    The writer keeps one connection: SQLite drops a connection's page cache when another one writes.
    """
    reads, writes = (
        create_engine(
            URL.create("sqlite", database=str(path)),
            connect_args={"timeout": busy_timeout_s},
            pool_size=size,
            max_overflow=overflow,
            pool_timeout=busy_timeout_s,
            pool_use_lifo=True,
        )
        for size, overflow in ((2, 30), (1, 0))
    )
    for engine, begin in ((reads, "BEGIN"), (writes, "BEGIN IMMEDIATE")):
        event.listen(engine, "connect", _set_up)
        event.listen(engine, "begin", _Begin(begin))
    return reads, writes


class _Begin:
    """Transactions begin when SQLAlchemy says; Python's sqlite3 would wait for the first write."""

    def __init__(self, statement: str) -> None:
        self._statement = statement

    def __call__(self, connection: Connection) -> None:
        connection.exec_driver_sql(self._statement)


def _set_up(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    if sys.version_info >= (3, 12):  # before, `planted_schema` alone keeps triggers and views out
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)
    cursor = connection.cursor()
    for setting in (
        f"page_size={_PAGE_BYTES}",  # of a new file
        "synchronous=NORMAL",
        "foreign_keys=ON",
        "trusted_schema=OFF",  # no function that acts is called from within a schema
        "cell_size_check=ON",
        f"cache_size=-{_CACHE_KIB}",
        "mmap_size=0",
        f"wal_autocheckpoint={_WAL_PAGES}",
        f"journal_size_limit={_WAL_KEPT_BYTES}",
    ):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def use_wal(engine: Engine) -> None:
    """Stored in the file once, when it is made."""
    _outside_of_transactions(engine, "PRAGMA journal_mode=WAL")


def shrink_log(engine: Engine) -> None:
    """A large deletion leaves a log of its size. Does not wait for readers."""
    _outside_of_transactions(engine, "PRAGMA wal_checkpoint(TRUNCATE)")


def wipe_free_space(engine: Engine) -> None:
    """Deleted data stays in the file's free space and log until then."""
    _outside_of_transactions(engine, "VACUUM")
    shrink_log(engine)


def _outside_of_transactions(engine: Engine, statement: str) -> None:
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        cursor.fetchall()
        cursor.close()
    finally:
        connection.close()
