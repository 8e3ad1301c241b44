"""Every test that takes `address` or `store` runs against both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.store import Store, open_store
from postgres_server import _migrated_template, empty_database, fresh_database, postgres

__all__ = ["_migrated_template", "empty_database", "fresh_database", "postgres"]


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    url: str = request.getfixturevalue("fresh_database")
    return url


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address, busy_timeout_s=5) as opened:
        yield opened
