"""A run of one row."""

from __future__ import annotations

import pytest

from evenhand.report.records import RunRow, read_run
from evenhand.store import Store
from stored_runs import ROWS, make_run


@pytest.fixture
def one_row(store: Store) -> RunRow:
    make_run(store, "one", ROWS[:1])
    (row,) = read_run(store, "one")
    return row
