"""A store in a PostgreSQL database, through psycopg 3."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any
from zlib import crc32

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from evenhand.errors import MissingExtra
from evenhand.store.address import SECRET_OPTIONS
from evenhand.store.locks import HOLDS, Holds
from evenhand.store.schema import VERSION_TABLE, metadata, words_index

_DEFAULTS = {"connect_timeout": "10", "application_name": "evenhand", "client_encoding": "utf8"}


def open_engines(url: URL, *, busy_timeout_s: float) -> tuple[Engine, Engine]:
    """One engine for reading, one for writing."""
    arguments: dict[str, Any] = {k: v for k, v in _DEFAULTS.items() if k not in url.query}
    # How long a statement waits for another process's lock, as in SQLite.
    options = f"-c lock_timeout={round(busy_timeout_s * 1000)}"
    given = url.query.get("options", "")
    arguments["options"] = f"{given if isinstance(given, str) else ' '.join(given)} {options}"
    # Not in the URL, which an engine shows except for its password.
    arguments |= {name: url.query[name] for name in SECRET_OPTIONS if name in url.query}
    url = url.difference_update_query(["options", *SECRET_OPTIONS])
    holds = Holds()
    try:
        reads, writes = (
            create_engine(
                url,
                connect_args=arguments,
                execution_options={HOLDS: holds},
                pool_size=size,
                max_overflow=overflow,
                pool_timeout=busy_timeout_s,
                pool_use_lifo=True,
                # The server may have restarted since the last batch; one round trip finds out.
                pool_pre_ping=True,
            )
            for size, overflow in ((2, 30), (1, 0))
        )
    except ImportError:
        raise MissingExtra("psycopg", "postgres") from None
    event.listen(writes, "begin", holds.look)
    words_index.dialect_options["postgresql"]["using"] = "gin"
    return reads, writes


def is_without_store(url: URL) -> bool:
    """Whether the database is readable and has none of our tables; makes none."""
    reads, writes = open_engines(url, busy_timeout_s=30)
    try:
        with reads.connect() as connection:
            there = inspect(connection).get_table_names()
    except SQLAlchemyError:
        return False
    finally:
        reads.dispose()
        writes.dispose()
    return not {VERSION_TABLE, *metadata.tables}.intersection(there)


# Arbitrary, but the same in every evenhand.
_TURN = 0x65766E69
_TELLING = 0x65766E61


def take_turn(connection: Connection) -> None:
    """Serialises writers until the transaction ends, as SQLite does."""
    connection.execute(text(f"SELECT pg_advisory_xact_lock({_TURN})"))


class Growth:
    """Runs ANALYZE as tables grow.

    The server does so once a minute; until then it plans for tiny tables, and a run of fifty
    thousand pairs took ten times as long at its end as at its beginning.
    """

    _FIRST, _FACTOR = 1_000, 4

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rows: Counter[str] = Counter()
        self._analyzed: dict[str, int] = {}

    def note(self, tables: str, rows: int) -> None:
        self._rows[tables] += rows
        if self._rows[tables] < self._analyzed.get(tables, 0) * self._FACTOR + self._FIRST:
            return
        self._analyzed[tables] = self._rows[tables]
        # Best effort: it may be forbidden, or another process may do it.
        with suppress(SQLAlchemyError), self._engine.begin() as connection:
            # Workers that began together would otherwise wait for each other here.
            mine = f"SELECT pg_try_advisory_xact_lock({_TELLING}, {crc32(tables.encode()) >> 1})"
            if connection.exec_driver_sql(mine).scalar_one():
                connection.exec_driver_sql(f"ANALYZE {tables}")
