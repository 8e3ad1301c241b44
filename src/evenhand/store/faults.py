"""Database errors as one line with a remedy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import RowMapping, exc

from evenhand.errors import EvenhandError, InputError, StoreBusy, StoreError
from evenhand.messages import Message

P = ParamSpec("P")
T = TypeVar("T")
# Exceptions of code that reads a value evenhand never wrote.
_UNFIT = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)

# By prefix of SQLite's error name; the first match counts.
_SQLITE: tuple[tuple[str, type[StoreError], str], ...] = (
    ("SQLITE_FULL", StoreError, "store.full"),
    ("SQLITE_BUSY", StoreBusy, "store.locked"),
    ("SQLITE_LOCKED", StoreBusy, "store.in_use_by_thread"),
    ("SQLITE_READONLY", StoreError, "store.read_only"),
    ("SQLITE_CANTOPEN", StoreError, "store.not_permitted"),
    ("SQLITE_NOTADB", StoreError, "store.not_sqlite"),
    ("SQLITE_CORRUPT", StoreError, "store.damaged"),
    ("SQLITE_TOOBIG", StoreError, "store.text_too_long"),
    ("SQLITE_PERM", StoreError, "store.permission_denied"),
)

# By prefix of the SQLSTATE.
_POSTGRES: tuple[tuple[str, type[StoreError], str], ...] = (
    ("53100", StoreError, "store.full"),
    ("53300", StoreBusy, "store.too_many_connections"),
    ("55P03", StoreBusy, "store.locked"),
    ("40", StoreBusy, "store.being_changed"),
    ("57P", StoreError, "store.shut_down"),
    ("08", StoreError, "store.connection_lost"),
    ("25006", StoreError, "store.server_read_only"),
    ("42501", StoreError, "store.not_granted"),
    ("28", StoreError, "store.login_refused"),
    ("3D000", StoreError, "store.no_database"),
)

_LACKS = ("42P01", "42703")  # a table, a column
# A failed connection has no SQLSTATE, only words.
_POSTGRES_WORDS: tuple[tuple[str, str], ...] = (
    ("password", "store.login_refused"),
    ("does not exist", "store.no_database"),
)


@contextmanager
def plain_errors(address: str, *, secrets: tuple[str, ...] = ()) -> Iterator[None]:
    """Turn database errors inside the block into a StoreError."""
    try:
        yield
    except exc.TimeoutError:
        raise StoreBusy.of("store.in_use_by_thread", address=address) from None
    except exc.IntegrityError as error:
        raise StoreBusy.of(
            "store.changed_meanwhile", address=address, reason=_one_line(error.orig, secrets)
        ) from None
    except exc.DBAPIError as error:
        # Without the cause, which quotes the statement with its values.
        raise _plain(error.orig, address, secrets) from None
    except sqlite3.Error as error:
        raise _plain(error, address, secrets) from None
    except exc.SQLAlchemyError as error:
        raise StoreError.of(
            "store.failed", address=address, reason=_one_line(error, secrets)
        ) from None


def of_row(
    what: str, *columns: str
) -> Callable[[Callable[Concatenate[RowMapping, P], T]], Callable[Concatenate[RowMapping, P], T]]:
    """For functions that read a row: an unreadable row is reported by these columns as damage, not
    as a bug."""

    def named(
        read: Callable[Concatenate[RowMapping, P], T],
    ) -> Callable[Concatenate[RowMapping, P], T]:
        @wraps(read)
        def reading(row: RowMapping, /, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(row, *args, **kwargs)
            except (*_UNFIT, OSError) as error:
                place = ", ".join(f"{name} {row[name]!r:.80}" for name in columns if name in row)
                raise StoreError.of(
                    "store.row_damaged",
                    what=Message(f"record.{what}"),
                    place=place,
                    reason=_shown(error),
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
    """For functions that read a run, reported by name."""

    @wraps(read)
    def reading(store: S, name: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with rows_read(Message("store.run_of", address=store.address, run=name)):
            return read(store, name, *args, **kwargs)

    return reading


@contextmanager
def rows_read(address: str) -> Iterator[None]:
    """Reports an unreadable row that no `of_row` caught."""
    try:
        yield
    except EvenhandError:
        raise
    except UnicodeEncodeError as error:  # of what is asked for, and not of what is there
        shown = error.object[:60].encode("utf-8", "backslashreplace").decode()
        raise InputError.of("store.asked_not_utf8", shown=shown) from None
    except _UNFIT as error:
        if os.environ.get("EVENHAND_DEBUG"):
            raise
        raise StoreError.of("store.row_unreadable", address=address, reason=_shown(error)) from None


def _shown(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:120]}" if text else type(error).__name__


def _plain(error: BaseException | None, address: str, secrets: tuple[str, ...]) -> StoreError:
    sqlite_name = getattr(error, "sqlite_errorname", None)
    if isinstance(sqlite_name, str):
        for begins, kind, code in _SQLITE:
            if sqlite_name.startswith(begins):
                return kind(Message(code, address=address))
    reason = _one_line(error, secrets)
    sqlstate = getattr(error, "sqlstate", None) or ""
    if sqlstate in _LACKS or reason.startswith(("no such column", "no such table")):
        return StoreError.of("store.incomplete", address=address, reason=reason)
    if isinstance(sqlite_name, str):
        return StoreError.of("store.disk_failed", address=address, name=sqlite_name, reason=reason)
    if "Could not decode to UTF-8" in reason:
        column = reason.partition("column ")[2].partition(" ")[0] or "a column"
        return StoreError.of("store.text_not_utf8", address=address, column=column)
    for begins, kind, code in _POSTGRES:
        if sqlstate.startswith(begins):
            return kind(Message(code, address=address))
    if not sqlstate:
        for word, code in _POSTGRES_WORDS:
            if word in reason:
                refused = Message(code, address=address)
                return StoreError.of("store.server_says", refused=refused, reason=reason)
        return StoreError.of("store.unreachable", address=address, reason=reason)
    return StoreError.of("store.server_failed", address=address, sqlstate=sqlstate, reason=reason)


def _one_line(error: BaseException | None, secrets: tuple[str, ...]) -> str:
    reason = " ".join(str(error).split())
    for secret in filter(None, secrets):
        reason = reason.replace(secret, "***")
    return reason
