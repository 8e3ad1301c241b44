"""The store by subject, over SQLite or PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from evenhand.store import postgres, schema_version, sqlite
from evenhand.store.address import FileAddress, ServerAddress, read_address
from evenhand.store.answers import AnswerStore
from evenhand.store.batches import BatchStore
from evenhand.store.columns import ColumnStore
from evenhand.store.database import Database
from evenhand.store.deletion import DeletionStore
from evenhand.store.figures import FigureStore
from evenhand.store.flags import FlagStore
from evenhand.store.full_text import WordStore
from evenhand.store.intake import IntakeStore
from evenhand.store.jobs import JobStore
from evenhand.store.requests import RequestStore
from evenhand.store.runs import RunStore
from evenhand.store.verdict_table import TableStore
from evenhand.store.verdicts import VerdictStore
from evenhand.store.votes import VoteStore
from evenhand.store.work import WorkStore


def open_store(
    address: str | Path | None = None, *, create: bool = True, busy_timeout_s: float = 30
) -> Store:
    """A file or a postgresql:// URL; by default EVENHAND_STORE, or a file of the user's.

    A missing store is made unless `create` is False; one of an earlier release is upgraded.
    """
    where = read_address(address)
    if isinstance(where, FileAddress):
        sqlite.prepare_file(where.path, create=create)
        engines = sqlite.open_engines(where.path, busy_timeout_s=busy_timeout_s)
    else:
        engines = postgres.open_engines(where.url, busy_timeout_s=busy_timeout_s)
    store = Store(where, *engines)
    try:
        with store.plain_errors():
            schema_version.bring_up(engines[1], where.shown, create=create)
    except BaseException:
        store.close()
        raise
    return store


class Store(Database):
    """Thread-safe. Writes are serialised."""

    def __init__(self, where: FileAddress | ServerAddress, reads: Engine, writes: Engine) -> None:
        super().__init__(where, reads, writes)
        self.runs = RunStore(self)
        self.items = IntakeStore(self)
        self.work = WorkStore(self)
        self.answers = AnswerStore(self)
        self.batches = BatchStore(self)
        self.jobs = JobStore(self)
        self.verdicts = VerdictStore(self)
        self.columns = ColumnStore(self)
        self.votes = VoteStore(self)
        self.flags = FlagStore(self)
        self.words = WordStore(self)
        self.table = TableStore(self)
        self.figures = FigureStore(self)
        self.requests = RequestStore(self)
        self.deletion = DeletionStore(self)
