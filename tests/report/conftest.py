"""A store for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.report import RunRow, read_run
from evenhand.store import Store
from stored_runs import ROWS, make_run, opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path) as opened_store:
        yield opened_store


@pytest.fixture
def one_row(store: Store) -> RunRow:
    make_run(store, "one", ROWS[:1])
    (row,) = read_run(store, "one")
    return row
