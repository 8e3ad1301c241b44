"""A store in a PostgreSQL database, by psycopg 3."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Engine, create_engine

from evenhand.errors import MissingExtra
from evenhand.store.address import SECRET_OPTIONS

_DEFAULTS = {"connect_timeout": "10", "application_name": "evenhand", "client_encoding": "utf8"}


def open_engines(url: URL, *, busy_timeout_s: float) -> tuple[Engine, Engine]:
    """One engine that reads and one that writes."""
    arguments: dict[str, Any] = {k: v for k, v in _DEFAULTS.items() if k not in url.query}
    # How long a statement waits for another process's lock, as in SQLite.
    options = f"-c lock_timeout={round(busy_timeout_s * 1000)}"
    given = url.query.get("options", "")
    arguments["options"] = f"{given if isinstance(given, str) else ' '.join(given)} {options}"
    # Not in the URL, which an engine shows with all but its password.
    arguments |= {name: url.query[name] for name in SECRET_OPTIONS if name in url.query}
    url = url.difference_update_query(["options", *SECRET_OPTIONS])
    try:
        reads, writes = (
            create_engine(
                url,
                connect_args=arguments,
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
