"""Attending to a run: several processes that work for the one that holds it.

Whoever takes a run over can see whether workers of the one before are still at it. As with a hold,
the server lets go with the connection.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator

from sqlalchemy import Connection, Engine, text

_ATTEND = text("SELECT pg_advisory_lock_shared(:place, :run)")
_IS_FREE = text("SELECT pg_try_advisory_lock(:place, :run)")
_LET_GO = text("SELECT pg_advisory_unlock(:place, :run)")


@contextlib.contextmanager
def attend_by_server(engine: Engine, run_id: int) -> Iterator[None]:
    """A shared advisory lock of a connection of its own."""
    with _own_connection(engine) as connection:
        connection.execute(_ATTEND, {"place": _place(connection), "run": run_id})
        yield


def is_attended_at_server(engine: Engine, run_id: int) -> bool:
    with _own_connection(engine) as connection:
        lock = {"place": _place(connection), "run": run_id}
        free = connection.execute(_IS_FREE, lock).scalar()
        if free:
            connection.execute(_LET_GO, lock)
        return not free


@contextlib.contextmanager
def _own_connection(engine: Engine) -> Iterator[Connection]:
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()
    try:
        yield connection
    finally:
        connection.close()


def _place(connection: Connection) -> int:
    """Another one than a hold's, and another for each schema."""
    schema = connection.execute(text("SELECT current_schema()")).scalar() or ""
    return zlib.crc32(f"evenhand workers {schema}".encode()) - 2**31
