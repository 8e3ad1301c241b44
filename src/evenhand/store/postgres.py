"""A store in a PostgreSQL database, by psycopg 3."""

from __future__ import annotations

from sqlalchemy import URL, Engine, create_engine

from evenhand.errors import MissingExtra

_DEFAULTS = {"connect_timeout": "10", "application_name": "evenhand", "client_encoding": "utf8"}


def open_engines(url: URL, *, busy_timeout_s: float) -> tuple[Engine, Engine]:
    """One engine that reads and one that writes."""
    defaults = {key: value for key, value in _DEFAULTS.items() if key not in url.query}
    # How long a statement waits for another process's lock, as in SQLite.
    options = f"-c lock_timeout={round(busy_timeout_s * 1000)}"
    given = url.query.get("options", "")
    defaults["options"] = f"{given if isinstance(given, str) else ' '.join(given)} {options}"
    url = url.difference_update_query(["options"])
    try:
        reads, writes = (
            create_engine(
                url,
                connect_args=defaults,
                pool_size=size,
                max_overflow=overflow,
                pool_timeout=busy_timeout_s,
                pool_use_lifo=True,
                # A server may have been restarted since the last batch; one round trip finds out.
                pool_pre_ping=True,
            )
            for size, overflow in ((2, 30), (1, 0))
        )
    except ImportError:
        raise MissingExtra("psycopg", "postgres") from None
    return reads, writes
