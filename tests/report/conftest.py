"""A store for each test, once in SQLite and once in a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.report import RunRow, read_run
from evenhand.store import Store, open_store
from postgres_server import _migrated_template, fresh_database, postgres
from stored_runs import ROWS, make_run

__all__ = ["_migrated_template", "fresh_database", "postgres"]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    in_file = request.param == "sqlite"
    address = tmp_path / "evenhand.db" if in_file else request.getfixturevalue("fresh_database")
    with open_store(address) as opened:
        yield opened


@pytest.fixture
def one_row(store: Store) -> RunRow:
    make_run(store, "one", ROWS[:1])
    (row,) = read_run(store, "one")
    return row
