"""What a database says went wrong, as one line with a remedy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import RowMapping, exc

from evenhand.errors import EvenhandError, InputError, StoreBusy, StoreError

P = ParamSpec("P")
T = TypeVar("T")
_REMEDY = "restore the store from a backup, or delete the run"
# What a value that evenhand never wrote makes of the code that reads it.
_UNFIT = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)

_KEPT = "what was stored before is intact"

# By the beginning of SQLite's own name for the error; the first that fits.
_SQLITE: tuple[tuple[str, type[StoreError], str], ...] = (
    ("SQLITE_FULL", StoreError, f"is full: no room on its disk; make room ({_KEPT})"),
    (
        "SQLITE_BUSY",
        StoreBusy,
        "is locked by another process; wait until that is done, or name another store",
    ),
    ("SQLITE_LOCKED", StoreBusy, "is locked by another thread; wait until that is done"),
    (
        "SQLITE_READONLY",
        StoreError,
        "cannot be written: it is read-only; make it and its folder writable, "
        "or name another store",
    ),
    (
        "SQLITE_CANTOPEN",
        StoreError,
        "cannot be opened; look at the permissions of the file and its folder",
    ),
    ("SQLITE_NOTADB", StoreError, "is not an SQLite file; name another store"),
    (
        "SQLITE_CORRUPT",
        StoreError,
        "is damaged; restore it from a backup, or save what can be read with "
        "sqlite3's .recover command",
    ),
    ("SQLITE_TOOBIG", StoreError, "cannot hold a text of that length (its limit is 1 GB)"),
    ("SQLITE_PERM", StoreError, "cannot be used: permission denied; make it readable for you"),
)

# By the beginning of the SQLSTATE.
_POSTGRES: tuple[tuple[str, type[StoreError], str], ...] = (
    ("53100", StoreError, f"is full: no room on the server's disk; make room ({_KEPT})"),
    ("53300", StoreBusy, "has too many connections; close some, or raise max_connections"),
    ("55P03", StoreBusy, "is locked by another process; wait until that is done"),
    ("40", StoreBusy, "was being changed by another process; run the command again"),
    ("57P", StoreError, "was shut down by its server; start it and run the command again"),
    ("08", StoreError, "lost its connection; check the server and run the command again"),
    ("25006", StoreError, "cannot be written: the server is read-only; name its primary"),
    ("42501", StoreError, "may not be used by this user; grant it CREATE, SELECT, INSERT, …"),
    ("28", StoreError, "refused the user or the password; correct them (PGPASSWORD, ~/.pgpass)"),
    ("3D000", StoreError, "is a database that does not exist; create it (createdb)"),
)

# A connection that was never made has no SQLSTATE, only words.
_POSTGRES_WORDS: tuple[tuple[str, str], ...] = (
    ("password", "refused the user or the password; correct them (PGPASSWORD, ~/.pgpass)"),
    ("does not exist", "is not there; create the database and the user, or correct the URL"),
)


@contextmanager
def plain_errors(address: str, *, secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """Turn the database's errors inside the block into a StoreError."""
    try:
        yield
    except exc.TimeoutError:
        raise StoreBusy(
            f"store {address} is in use by another thread; wait until that is done"
        ) from None
    except exc.IntegrityError as error:
        raise StoreBusy(
            f"store {address} was changed by another process "
            f"({_one_line(error.orig, secrets)}); run the command again"
        ) from None
    except exc.DBAPIError as error:
        # The cause is dropped: it quotes the statement with its values.
        raise _plain(error.orig, address, secrets) from None
    except sqlite3.Error as error:
        raise _plain(error, address, secrets) from None
    except exc.SQLAlchemyError as error:
        raise StoreError(
            f"store {address} failed: {_one_line(error, secrets)}; report this"
        ) from None


def of_row(
    what: str, *columns: str
) -> Callable[[Callable[Concatenate[RowMapping, P], T]], Callable[Concatenate[RowMapping, P], T]]:
    """Of a function that reads a row of the store: one that it cannot read is named, by these of
    its columns, and is no bug."""

    def named(
        read: Callable[Concatenate[RowMapping, P], T],
    ) -> Callable[Concatenate[RowMapping, P], T]:
        @wraps(read)
        def reading(row: RowMapping, /, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(row, *args, **kwargs)
            except (*_UNFIT, OSError) as error:
                place = ", ".join(f"{name} {row[name]!r:.80}" for name in columns if name in row)
                raise StoreError(
                    f"the store's {what} ({place}) is damaged: {_shown(error)}; {_REMEDY}"
                ) from None

        return reading

    return named


class _Addressed(Protocol):
    @property
    def address(self) -> str: ...


S = TypeVar("S", bound=_Addressed)


def of_run(
    read: Callable[Concatenate[S, str, P], T],
) -> Callable[Concatenate[S, str, P], T]:
    """Of a function that reads a run of a store, by its name."""

    @wraps(read)
    def reading(store: S, name: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with rows_read(f"{store.address}, run {name!r},"):
            return read(store, name, *args, **kwargs)

    return reading


@contextmanager
def rows_read(address: str) -> Iterator[None]:
    """A row inside the block that no `of_row` has named."""
    try:
        yield
    except EvenhandError:
        raise
    except UnicodeEncodeError as error:  # of what is asked for, and not of what is there
        shown = error.object[:60].encode("utf-8", "backslashreplace").decode()
        raise InputError(f"{shown!r} is not UTF-8; give it in UTF-8") from None
    except _UNFIT as error:
        if os.environ.get("EVENHAND_DEBUG"):
            raise
        raise StoreError(
            f"store {address} holds a row that cannot be read: {_shown(error)}; {_REMEDY}"
        ) from None


def _shown(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:120]}" if said else type(error).__name__


def _plain(error: BaseException | None, address: str, secrets: tuple[str, ...]) -> StoreError:
    sqlite_name = getattr(error, "sqlite_errorname", None)
    if isinstance(sqlite_name, str):
        for begins, kind, rest in _SQLITE:
            if sqlite_name.startswith(begins):
                return kind(f"store {address} {rest}")
        return StoreError(
            f"store {address} cannot be read or written "
            f"({sqlite_name}: {_one_line(error, secrets)}); check its disk ({_KEPT})"
        )
    told = _one_line(error, secrets)
    if "Could not decode to UTF-8" in told:
        column = told.partition("column ")[2].partition(" ")[0] or "a column"
        return StoreError(
            f"store {address} holds a text that is not UTF-8 (column {column}); {_REMEDY}"
        )
    sqlstate = getattr(error, "sqlstate", None) or ""
    for begins, kind, rest in _POSTGRES:
        if sqlstate.startswith(begins):
            return kind(f"store {address} {rest}")
    if not sqlstate:
        for word, rest in _POSTGRES_WORDS:
            if word in told:
                return StoreError(f"store {address} {rest}: {told}")
        return StoreError(
            f"store {address} cannot be reached: {told}; start the server, or correct the URL"
        )
    return StoreError(f"store {address} failed ({sqlstate}: {told}); look at the server's log")


def _one_line(error: BaseException | None, secrets: tuple[str, ...]) -> str:
    told = " ".join(str(error).split())
    for secret in filter(None, secrets):
        told = told.replace(secret, "***")
    return told
