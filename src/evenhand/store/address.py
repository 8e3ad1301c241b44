"""Where a store is: a file, or a PostgreSQL URL; never shown with its password."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy import URL

_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
_SQLITE = ("sqlite", "sqlite+pysqlite")
# libpq takes secrets in a URL's query too.
SECRET_OPTIONS = ("password", "sslpassword", "passfile", "oauth_client_secret")


@dataclass(frozen=True, slots=True)
class FileAddress:
    path: Path

    @property
    def shown(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    url: URL = field(repr=False)
    shown: str

    @property
    def secrets(self) -> tuple[str, ...]:
        """Must not appear in any message."""
        options = [self.url.query.get(name) for name in SECRET_OPTIONS]
        return tuple(each for each in (self.url.password, *options) if isinstance(each, str))


def default_address() -> str:
    """EVENHAND_STORE, or a file in the user's data directory."""
    named = os.environ.get("EVENHAND_STORE", "").strip()
    if named:
        return named
    from platformdirs import user_data_dir

    return str(Path(user_data_dir("evenhand")) / "evenhand.db")


def read_address(address: str | Path | None) -> FileAddress | ServerAddress:
    given = default_address() if address is None else address
    if isinstance(given, Path):
        return _file(given)
    if not given.strip():
        raise StoreError.of("store.address_empty")
    scheme, separator, rest = given.strip().partition("://")
    if not separator:
        return _file(Path(given))
    scheme = scheme.lower()
    if scheme in _SQLITE:
        # sqlite:///relative.db and sqlite:////absolute.db, as SQLAlchemy writes them
        if not rest.startswith("/") or not rest[1:]:
            raise StoreError.of("store.sqlite_url_without_file")
        return _file(Path(rest[1:].partition("?")[0]))
    if scheme in _POSTGRES:
        return _server(f"postgresql+psycopg://{rest}")
    raise StoreError.of("store.address_unknown", scheme=scheme)


def _file(path: Path) -> FileAddress:
    try:
        return FileAddress(Path(os.path.realpath(path.expanduser())))
    except (OSError, RuntimeError, ValueError) as error:
        raise StoreError.of("store.path_unusable", path=path, error=error) from None


def _server(text: str) -> ServerAddress:
    from sqlalchemy import URL, make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Without the cause, which may quote the whole URL.
        raise StoreError.of("store.postgres_url_unreadable") from None
    options = {key: value for key, value in url.query.items() if key not in SECRET_OPTIONS}
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database, options)
    return ServerAddress(url, shown.render_as_string())
