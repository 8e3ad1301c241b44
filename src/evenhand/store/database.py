"""A database as the store's subjects use it: its address, transactions with errors in one line, and
run locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine

from evenhand.store import postgres, sqlite
from evenhand.store.address import FileAddress, ServerAddress
from evenhand.store.faults import plain_errors, rows_read
from evenhand.store.locks import (
    has_workers_at_server,
    hold_by_file,
    hold_by_server,
    register_at_server,
)


class Database:
    def __init__(self, where: FileAddress | ServerAddress, reads: Engine, writes: Engine) -> None:
        self._where = where
        self._reads = reads
        self._writes = writes
        self._growth = postgres.Growth(writes) if isinstance(where, ServerAddress) else None

    @property
    def address(self) -> str:
        """As given, without a password."""
        return self._where.shown

    @property
    def address_with_secrets(self) -> str | None:
        """Only for the environment of child processes; None without secrets."""
        if isinstance(self._where, FileAddress) or not self._where.secrets:
            return None
        return self._where.url.render_as_string(hide_password=False)

    def close(self) -> None:
        self._reads.dispose()
        self._writes.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        secrets = self._where.secrets if isinstance(self._where, ServerAddress) else ()
        with plain_errors(self.address, secrets=secrets):
            yield

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with (
            self.plain_errors(),
            rows_read(self.address),
            self._reads.begin() as connection,
        ):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self.plain_errors(), self._writes.begin() as connection:
            yield connection

    def note_growth(self, tables: str, rows: int) -> None:
        if self._growth:
            self._growth.note(tables, rows)

    def shrink_log(self) -> None:
        if isinstance(self._where, FileAddress):
            with self.plain_errors():
                sqlite.shrink_log(self._writes)

    def wipe_free_space(self) -> None:
        """After deleting texts that must not be recoverable."""
        if isinstance(self._where, FileAddress):
            with self.plain_errors():
                sqlite.wipe_free_space(self._writes)

    @contextmanager
    def hold(self, run_id: int) -> Iterator[None]:
        """Keep other processes from this run; StoreBusy if one has it."""
        with ExitStack() as held:
            if isinstance(self._where, FileAddress):
                held.enter_context(hold_by_file(self._where.path, run_id))
            else:
                with self.plain_errors():
                    held.enter_context(hold_by_server(self._reads, run_id, self.address))
            yield

    @contextmanager
    def register_worker(self, run_id: int) -> Iterator[None]:
        """Work on a run that another process holds; several may. Ends with the process."""
        with ExitStack() as registered:
            if isinstance(self._where, ServerAddress):
                with self.plain_errors():
                    registered.enter_context(register_at_server(self._reads, run_id))
            yield

    def has_workers(self, run_id: int) -> bool:
        """Whether workers are on the run, perhaps of a dead driver."""
        if isinstance(self._where, FileAddress):
            return False
        with self.plain_errors():
            return has_workers_at_server(self._reads, run_id)


class Subject:
    """One subject of the store; every call is its own transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reading, self._writing = database.reading, database.writing
