"""The face of a store: every question that the other rooms may ask of it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from evenhand.store import postgres, schema_version, sqlite
from evenhand.store.address import FileAddress, ServerAddress, read_address
from evenhand.store.batches import BatchBook
from evenhand.store.jobs import JobBook
from evenhand.store.kept import KeptBook
from evenhand.store.result_part import ResultPart
from evenhand.store.run_part import RunPart
from evenhand.store.table_part import TablePart
from evenhand.store.vote_part import VotePart
from evenhand.store.work_part import WorkPart


def open_store(
    address: str | Path | None = None, *, create: bool = True, busy_timeout_s: float = 30
) -> Store:
    """A file or a postgresql:// URL; without one EVENHAND_STORE, or a file of the user's.

    A store that is not there is made unless `create` is False; one of an older evenhand is
    brought up to date.
    """
    where = read_address(address)
    if isinstance(where, FileAddress):
        sqlite.prepare_file(where.path, create=create)
        engines = sqlite.open_engines(where.path, busy_timeout_s=busy_timeout_s)
    else:
        engines = postgres.open_engines(where.url, busy_timeout_s=busy_timeout_s)
    store = Store(where, *engines)
    try:
        with store.faults_told():
            schema_version.bring_up(engines[1], where.shown, create=create)
    except BaseException:
        store.close()
        raise
    return store


class Store(RunPart, WorkPart, VotePart, TablePart, ResultPart):
    """Safe to use from several threads. Writes come from one at a time; others wait."""

    def __init__(self, where: FileAddress | ServerAddress, reads: Engine, writes: Engine) -> None:
        super().__init__(where, reads, writes)
        self.jobs = JobBook(self._reading, self._writing)
        self.batches = BatchBook(self._reading, self._writing)
        self.kept = KeptBook(self._reading, self._writing)
