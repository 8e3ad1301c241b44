"""A SQLite store from elsewhere that holds code is refused in a line, and nothing of it runs."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from cases import each_case
from evenhand.errors import StoreError
from evenhand.store import open_store
from evenhand.store.schema import VERSION_TABLE
from store_values import begin, item


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "made.db"
    with open_store(path) as store:
        begin(store, item("x"))
    return path


def planted(made: Path, *statements: str, rewritten: tuple[str, str, str] | None = None) -> str:
    """What opening says of a copy with these in it; `rewritten` changes the SQL of an object."""
    path = made.with_name("planted.db")
    shutil.copy(made, path)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    if rewritten:
        name, old, new = rewritten
        connection.execute("PRAGMA writable_schema=ON")
        changed = connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ? AND instr(sql, ?)",
            (old, new, name, old),
        )
        assert changed.rowcount == 1
    connection.close()
    with pytest.raises(StoreError) as caught:
        open_store(path, create=False, busy_timeout_s=1).close()
    assert "\n" not in caught.value.message
    return caught.value.message


@each_case(
    ("statement", "what"),
    [
        (
            "CREATE TRIGGER t AFTER INSERT ON verdicts BEGIN UPDATE verdicts SET winner = 'B'; END",
            "trigger 't' on 'verdicts'",
        ),
        ("CREATE VIEW v AS SELECT 1", "view 'v'"),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "table 'f'"),
        ("CREATE INDEX i ON verdicts (abs(number))", "index 'i' on 'verdicts'"),
        ("CREATE INDEX i ON verdicts (number) WHERE number > 1", "index 'i' on 'verdicts'"),
        ("CREATE UNIQUE INDEX i ON verdicts (judge_id)", "index 'i' on 'verdicts'"),
        ("ALTER TABLE verdicts ADD COLUMN g AS ('B')", "table 'verdicts'"),
        ("ALTER TABLE verdicts ADD COLUMN d TEXT DEFAULT 'B'", "table 'verdicts'"),
        ("ALTER TABLE verdicts ADD COLUMN c TEXT COLLATE NOCASE", "table 'verdicts'"),
        ("ALTER TABLE verdicts ADD COLUMN c TEXT CHECK (number > 0)", "table 'verdicts'"),
    ],
)
def test_a_schema_that_holds_code_is_refused(made: Path, statement: str, what: str) -> None:
    message = planted(made, statement)
    assert "is damaged or was tampered with" in message
    assert f"evenhand did not create its {what};" in message


@each_case(
    ("name", "old", "new"),
    [
        ("verdicts", "winner TEXT", "winner TEXT AS ('B')"),
        ("verdicts", "winner TEXT", "winner TEXT DEFAULT 'B'"),
        ("verdicts", "PRIMARY KEY", "PRIMARY KEY ON CONFLICT IGNORE"),
        ("verdicts", "PRIMARY KEY (", "CHECK (number, (',')) PRIMARY KEY ("),
        (VERSION_TABLE, "NOT NULL", "NOT NULL DEFAULT (1)"),
        ("ix_search_docs_words", "words IS NOT NULL", "words IS NULL"),
    ],
)
def test_a_definition_that_was_rewritten_is_refused(
    made: Path, name: str, old: str, new: str
) -> None:
    assert "is damaged" in planted(made, rewritten=(name, old, new))


def test_a_schema_that_sqlite_cannot_read_is_damaged(made: Path) -> None:
    assert "is damaged" in planted(made, rewritten=("runs", "CREATE TABLE", "CREATE TRIGGER"))


def test_a_view_in_place_of_the_version_is_never_asked(made: Path) -> None:
    """It would never end."""
    endless = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT x FROM r"
    message = planted(
        made, f"DROP TABLE {VERSION_TABLE}", f"CREATE VIEW {VERSION_TABLE} AS {endless}"
    )
    assert f"view {VERSION_TABLE!r}" in message


def test_what_is_plain_or_in_no_table_of_ours_does_no_harm(made: Path) -> None:
    connection = sqlite3.connect(made)
    connection.execute("CREATE TABLE other (x INTEGER CHECK (x > 0), UNIQUE (x))")
    connection.execute("CREATE INDEX mine ON runs (name)")
    connection.execute("ALTER TABLE runs ADD COLUMN mine TEXT")
    connection.close()
    with open_store(made) as store:
        assert len(store.runs.all()) == 1


def test_a_schema_is_not_trusted(made: Path) -> None:
    with open_store(made) as store, store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0
