"""A real PostgreSQL server for the tests: made in a temporary folder, thrown away afterwards.

    def test_of_both_engines(store: Store) -> None: ...

    def test_of_postgresql(fresh_database: str) -> None:
        with open_store(fresh_database) as store:
            ...

Where PostgreSQL is not installed such tests skip, and fail where CI is set.
`scripts/install_postgres.sh` installs it. `make test` takes SQLite alone.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg
import pytest

from evenhand.store import Store, open_store
from parts import missing
from stored_runs import fresh_store

_START_S = 30.0
_USER = "evenhand"
PASSWORD = "right & /secret"
_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
# What makes a server safe against a power cut makes tests slow, and this one holds nothing dear.
_CARELESS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@dataclass(frozen=True)
class PostgresServer:
    """Trusts its socket; asks for `PASSWORD` on the loopback."""

    folder: Path
    port: int

    def url(self, database: str) -> str:
        return f"postgresql://{_USER}@/{database}?host={self.folder}&port={self.port}"

    def loopback_url(self, database: str, password: str) -> str:
        return f"postgresql://{_USER}:{password}@127.0.0.1:{self.port}/{database}"

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Outside of any transaction, as databases are made and dropped."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def cut_connections(self, database: str) -> None:
        everybody = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = %s AND pid <> pg_backend_pid()"
        )
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(everybody, [database])


def find_binaries() -> Path | None:
    """The folder that has both initdb and postgres."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    for place in _PLACES:
        folders += sorted(Path("/").glob(place.lstrip("/")), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


def _other_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    import pwd  # there is none on Windows

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _start(
    binaries: Path, folder: Path, settings: Sequence[str]
) -> tuple[subprocess.Popen[bytes], PostgresServer]:
    user = _other_user()
    if user is not None:
        shutil.chown(folder, user)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    plain = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    data = folder / "data"
    initdb: list[str | Path] = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        _USER,
        "-E",
        "UTF8",
        "--locale=C",
    ]
    initdb += ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}", "--no-sync"]
    made = subprocess.run(
        initdb, user=user, cwd=folder, env=plain, capture_output=True, text=True, timeout=120
    )
    assert made.returncode == 0, made.stderr
    server = PostgresServer(folder, _free_port())
    postgres: list[str | Path] = [
        binaries / "postgres",
        "-D",
        data,
        "-k",
        folder,
        "-p",
        str(server.port),
    ]
    for setting in ("listen_addresses=127.0.0.1", "max_connections=60", *settings):
        postgres += ["-c", setting]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            postgres, user=user, cwd=folder, env=plain, stdout=log, stderr=log
        )
    deadline = time.monotonic() + _START_S
    while True:
        try:
            server.run("SELECT 1")
        except psycopg.OperationalError:
            told = (folder / "log").read_text()
            assert process.poll() is None, told
            assert time.monotonic() < deadline, told
            time.sleep(0.05)
        else:
            return process, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    binaries = find_binaries()
    if binaries is None:
        missing("PostgreSQL is not installed; run scripts/install_postgres.sh")
    with running(binaries) as server:
        yield server


@contextmanager
def running(binaries: Path, settings: Sequence[str] = _CARELESS) -> Iterator[PostgresServer]:
    """Also for measurements, which want one as careful as people's own: without settings."""
    # A socket's path may have some hundred characters: not pytest's own folders.
    folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-"))
    process = None
    try:
        process, server = _start(binaries, folder, settings)
        yield server
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # at once; nothing is to be saved
            process.wait(timeout=120)
        shutil.rmtree(folder, ignore_errors=True)


_numbers = count(1)


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a database without any table."""
    name = f"test{next(_numbers)}"
    postgres.run(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


# What a test has written goes, and ids begin at 1 again. To empty a large table row by row would
# leave its pages to the tests that follow.
_EMPTY = """
DO $$
DECLARE it record;
BEGIN
  SET LOCAL session_replication_role = replica;
  FOR it IN SELECT relname AS name, pg_relation_size(oid) AS size FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'evenhand_schema'
  LOOP
    IF it.size > 1000000 THEN EXECUTE format('TRUNCATE %I CASCADE', it.name);
    ELSIF it.size > 0 THEN EXECUTE format('DELETE FROM %I', it.name);
    END IF;
  END LOOP;
  FOR it IN SELECT sequencename AS name FROM pg_sequences
    WHERE schemaname = 'public' AND last_value IS NOT NULL
  LOOP EXECUTE format('ALTER SEQUENCE %I RESTART', it.name);
  END LOOP;
END $$
"""
_LEFT_OVER = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_SHAPE = """
SELECT md5(string_agg(part, ';' ORDER BY part)) FROM (
  SELECT format('%s %s %s %s', relname, relkind, relrowsecurity, reloptions) AS part FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT format('%s %s %s %s %s', attrelid::regclass, attname, atttypid, attnotnull,
      pg_get_expr(adbin, adrelid))
    FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL SELECT format('%s %s', conrelid::regclass, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT format('%s %s', tgrelid::regclass, tgname) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT evenhand_schema::text FROM evenhand_schema
) AS parts
"""


class Databases:
    """Stores without any run, each by a name of its own. One that was given back is emptied and
    lent again, which takes a tenth of the time of a copy; one whose tables are no longer those of
    the template is dropped."""

    def __init__(self, server: PostgresServer, connection: psycopg.Connection) -> None:
        self._server = server
        self._connection = connection
        self._spare: str | None = None
        connection.execute("CREATE DATABASE migrated")
        open_store(server.url("migrated")).close()
        self._shape = server.run(_SHAPE, "migrated")

    def lend(self) -> str:
        name = f"test{next(_numbers)}"
        how = f"CREATE DATABASE {name} TEMPLATE migrated"
        if self._spare is not None:
            how = f"ALTER DATABASE {self._spare} RENAME TO {name}"
        self._spare = None
        self._connection.execute(how.encode())
        return name

    def take_back(self, name: str) -> None:
        try:
            with psycopg.connect(self._server.url(name), autocommit=True) as connection:
                connection.execute(_LEFT_OVER)
                if connection.execute(_SHAPE).fetchall() == self._shape:
                    connection.execute(_EMPTY)
                    self._spare = name
        except psycopg.Error:
            self._spare = None
        if self._spare is None:
            self._connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


@pytest.fixture(scope="session")
def _databases(postgres: PostgresServer) -> Iterator[Databases]:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        yield Databases(postgres, connection)


@pytest.fixture
def fresh_database(postgres: PostgresServer, _databases: Databases) -> Iterator[str]:
    """The URL of a store without any run."""
    name = _databases.lend()
    yield postgres.url(name)
    _databases.take_back(name)


BOTH_ENGINES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))


@pytest.fixture(params=BOTH_ENGINES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a new store, once with each engine."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    url: str = request.getfixturevalue("fresh_database")
    return url


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    on_disk = "://" not in address
    with fresh_store(Path(address)) if on_disk else open_store(address, busy_timeout_s=5) as opened:
        yield opened
