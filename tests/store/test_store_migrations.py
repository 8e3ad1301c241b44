"""The migrations make what `schema.py` says, and bring older stores up with what they hold."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, select

from evenhand.errors import StoreError
from evenhand.store import Store, open_store, postgres, schema_version, sqlite
from evenhand.store.address import ServerAddress, read_address
from evenhand.store.intake import prompt_key
from evenhand.store.schema import (
    HEAD,
    REVISIONS,
    VERSION_TABLE,
    item_tags,
    metadata,
    shorten,
    verdicts,
)
from evenhand.store.schema_version import MIGRATIONS, Migrations
from store_values import begin, item

NEXT = '''"""A column more, as a later evenhand would add it."""

import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{head}"


def upgrade() -> None:
    op.add_column("runs", sa.Column("colour", sa.Text(), nullable=False, server_default="grey"))
'''


@pytest.fixture
def writing(store: Store) -> Iterator[Connection]:
    with store._writing() as connection:
        yield connection


def test_migrations_and_schema_agree(writing: Connection) -> None:
    context = MigrationContext.configure(
        writing,
        opts={"version_table": VERSION_TABLE, "compare_type": True, "target_metadata": metadata},
    )
    assert compare_metadata(context, metadata) == []


def catalogue(connection: Connection) -> dict[str, Any]:
    """Everything that the database itself knows of its tables."""
    seen = inspect(connection)
    return {
        table: {
            "columns": [{**c, "type": str(c["type"])} for c in seen.get_columns(table)],
            "key": seen.get_pk_constraint(table),
            "unique": sorted(seen.get_unique_constraints(table), key=str),
            "indexes": sorted(map(told, seen.get_indexes(table)), key=str),
            "foreign": sorted(seen.get_foreign_keys(table), key=str),
            "checks": sorted(seen.get_check_constraints(table), key=str),
        }
        for table in sorted(seen.get_table_names())
    }


def told(index: Any) -> dict[str, Any]:
    """With its conditions as texts: as expressions, no two are equal."""
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return {**index, "dialect_options": options}


@pytest.fixture(params=["sqlite", "postgresql"])
def untouched(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A database that nothing was ever written to."""
    if request.param == "sqlite":
        sqlite.prepare_file(tmp_path / "empty.db", create=True)
        engines = sqlite.open_engines(tmp_path / "empty.db", busy_timeout_s=5)
    else:
        url = request.getfixturevalue("empty_database")
        where = read_address(url)
        assert isinstance(where, ServerAddress)
        engines = postgres.open_engines(where.url, busy_timeout_s=5)
    yield engines[0]
    for engine in engines:
        engine.dispose()


def test_a_new_store_is_what_the_revisions_make(untouched: Engine) -> None:
    # Any other value than MIGRATIONS itself goes by way of the revisions.
    revisions = Migrations(MIGRATIONS.folder, MIGRATIONS.revisions)
    schema_version.bring_up(untouched, "x", create=True, migrations=revisions)
    with untouched.begin() as connection:
        migrated = catalogue(connection)
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        assert context.get_current_revision() == HEAD
        assert compare_metadata(context, metadata) == []
        metadata.drop_all(connection)
        connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")
    schema_version.bring_up(untouched, "x", create=True)
    with untouched.begin() as connection:
        assert catalogue(connection) == migrated


def test_an_empty_database_is_migrated_like_a_new_file(empty_database: str) -> None:
    with open_store(empty_database) as store, store._writing() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert context.get_current_revision() == HEAD
        assert compare_metadata(context, metadata) == []


def test_the_revisions_are_the_migrations_in_their_order() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS.folder))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    found = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(found)) == REVISIONS
    assert scripts.get_current_head() == HEAD


FIRST = Migrations(MIGRATIONS.folder, ("0001",))
OLD_ROWS = (
    "INSERT INTO runs (id, name, fingerprint, state, intake_done, seconds, calls, reused_passes,"
    " created_at, updated_at, sources, plan, summary)"
    " VALUES (1, 'old', 'f', 'finished', true, 0, 0, 0, 0, 0, '[]', '{{}}', '{{}}')",
    "INSERT INTO pairs (id, digest, allow_tie, criteria, prompt, context, response_a, response_b)"
    " VALUES (1, {one}, true, '[]', 'why?', NULL, 'because', ''),"
    " (2, {two}, true, '[]', 'why?', 'a context', '\x1a0\x1a1', '响应 𝄞')",
    "INSERT INTO items (run_id, number, key, pair_id, swap_positions, row, source)"
    " VALUES (1, 1, 'x', 1, true, 1, 's'), (1, 2, 'y', 2, true, 2, 's'),"
    " (1, 3, 'z', 1, true, 3, 's')",
)


def test_a_store_of_the_first_schema_gets_keys_and_lengths_for_its_items(
    untouched: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "alembic.command.upgrade", lambda config, _, go=command.upgrade: go(config, "0001")
    )
    schema_version.bring_up(untouched, "x", create=True, migrations=FIRST)
    monkeypatch.undo()
    digests = ("X'01'", "X'02'") if untouched.dialect.name == "sqlite" else ("'\\x01'", "'\\x02'")
    with untouched.begin() as connection:
        for statement in OLD_ROWS:
            connection.exec_driver_sql(statement.format(one=digests[0], two=digests[1]))
        assert "prompt_key" not in {c["name"] for c in inspect(connection).get_columns("items")}
    schema_version.bring_up(untouched, "x", create=False)
    with untouched.begin() as connection:
        query = "SELECT number, prompt_key, length_a, length_b FROM items ORDER BY number"
        found = [tuple(row) for row in connection.exec_driver_sql(query)]
    bare, with_context = prompt_key("why?", None), prompt_key("why?", "a context")
    # U+0000 and U+001A take two characters each in the store, and are one.
    assert found == [(1, bare, 7, 0), (2, with_context, 2, 4), (3, bare, 7, 0)]


THIRD_ROWS = (
    *OLD_ROWS,
    'UPDATE items SET tags = \'["maths","a\\u0000b"]\' WHERE number = 2',
    "UPDATE items SET tags = '[\"" + "x" * 300 + "\"]' WHERE number = 3",
    "INSERT INTO verdicts (run_id, number, judge_id, outcome, winner, confidence_source, samples,"
    " passes, created_at, body) VALUES"
    " (1, 1, 1, 'win', 'A', 'calibration', 1, 2, 0, '{{\"facts\":{{\"abstained\":true}}}}'),"
    " (1, 2, 1, 'win', 'A', 'stated', 1, 2, 0, '{{\"notes\":[\"\\\"abstained\\\":true\"]}}'),"
    " (1, 3, 1, 'tie', 'TIE', 'stated', 1, 2, 0, '{{\"facts\":{{\"time_ms\":1}}}}')",
)


def test_a_store_of_the_third_schema_gets_its_tags_and_abstentions_by_index(
    untouched: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "alembic.command.upgrade", lambda config, _, go=command.upgrade: go(config, "0003")
    )
    third = Migrations(MIGRATIONS.folder, REVISIONS[:3])
    schema_version.bring_up(untouched, "x", create=True, migrations=third)
    monkeypatch.undo()
    digests = ("X'01'", "X'02'") if untouched.dialect.name == "sqlite" else ("'\\x01'", "'\\x02'")
    with untouched.begin() as connection:
        for statement in THIRD_ROWS:
            connection.exec_driver_sql(statement.format(one=digests[0], two=digests[1]))
    schema_version.bring_up(untouched, "x", create=False)
    with untouched.begin() as connection:
        tags = connection.execute(select(item_tags).order_by(item_tags.c.number, item_tags.c.tag))
        assert [tuple(row) for row in tags] == [
            (1, "a\x00b", 2),
            (1, "maths", 2),
            (1, shorten("x" * 300), 3),
        ]
        query = select(verdicts.c.number).where(verdicts.c.abstained)
        assert connection.execute(query).scalars().all() == [1]


@pytest.fixture
def later(tmp_path: Path) -> Migrations:
    folder = tmp_path / "later migrations, 100%"
    shutil.copytree(MIGRATIONS.folder, folder)
    (folder / "versions" / "v_next.py").write_text(NEXT.format(head=HEAD))
    return Migrations(folder, (*REVISIONS, "next"))


def test_an_older_store_is_brought_up_and_keeps_what_it_holds(
    store: Store, later: Migrations
) -> None:
    begun = begin(store, item("x"), item("y"))
    begun.judge_all("B")
    schema_version.bring_up(store._writes, store.address, create=False, migrations=later)
    with store._reading() as connection:
        assert connection.exec_driver_sql("SELECT colour FROM runs").scalars().all() == ["grey"]
    assert store.tally(begun.run_id).wins_b == 2
    # To us it is now a newer evenhand's.
    with pytest.raises(StoreError, match=r"newer evenhand \(schema next\)"):
        schema_version.bring_up(store._writes, store.address, create=False)


def test_a_migration_that_fails_leaves_the_store_as_it_was(store: Store, later: Migrations) -> None:
    begun = begin(store, item("x"))
    broken = NEXT.format(head=HEAD) + '    raise RuntimeError("in the middle")\n'
    (later.folder / "versions" / "v_next.py").write_text(broken)
    with pytest.raises(RuntimeError, match="in the middle"):
        schema_version.bring_up(store._writes, store.address, create=False, migrations=later)
    schema_version.bring_up(store._writes, store.address, create=False)
    with store._reading() as connection:
        assert "colour" not in connection.exec_driver_sql("SELECT * FROM runs").keys()  # noqa: SIM118
    assert len(begun.work()) == 1
