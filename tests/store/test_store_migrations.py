"""A new store is what `schema.py` says; an earlier one is brought up to it with what it holds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, Engine, MetaData, Text, inspect

from evenhand.errors import StoreError
from evenhand.store import Store, open_store, postgres, schema_version, sqlite
from evenhand.store.address import ServerAddress, read_address
from evenhand.store.schema import HEAD, REVISIONS, VERSION_TABLE, metadata
from evenhand.store.schema_version import SCHEMA, Schema
from postgres_server import BOTH_ENGINES
from store_values import begin, item

NEXT = '''"""A column more, as a later evenhand would add it."""

import sqlalchemy as sa
from alembic import op


revision = "next"
down_revision = "{head}"


def upgrade() -> None:
    op.add_column("runs", sa.Column("colour", sa.Text(), nullable=False, server_default="grey"))
'''


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


@pytest.fixture(params=BOTH_ENGINES)
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


def test_a_new_store_has_the_newest_schema(untouched: Engine) -> None:
    schema_version.bring_up(untouched, "x", create=True)
    with untouched.begin() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        assert context.get_current_revision() == HEAD
        assert compare_metadata(context, metadata) == []


def test_the_revisions_are_the_migrations_in_their_order() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCHEMA.migrations))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    found = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(found)) == REVISIONS
    assert scripts.get_current_head() == HEAD


def test_a_store_from_before_the_first_release_is_refused_with_a_way_out(
    address: str, store: Store
) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE evenhand_schema SET version_num = '0009'")
    with pytest.raises(StoreError) as refused:
        open_store(address)
    assert str(refused.value) == (
        f"store {store.address} has schema 0009, from before the first release; export its "
        "runs with the evenhand that wrote it, and name another store"
    )
    with store.reading() as connection:
        version = connection.exec_driver_sql("SELECT version_num FROM evenhand_schema")
        assert version.scalars().all() == ["0009"]


@pytest.fixture
def later(tmp_path: Path) -> Schema:
    """Ours, and a revision more."""
    folder = tmp_path / "later migrations, 100%"
    shutil.copytree(SCHEMA.migrations, folder)
    (folder / "versions" / "v_next.py").write_text(NEXT.format(head=HEAD))
    tables = MetaData(naming_convention=metadata.naming_convention)
    for table in metadata.sorted_tables:
        table.to_metadata(tables)
    colour = Column("colour", Text, nullable=False, server_default="grey")
    tables.tables["runs"].append_column(colour)
    return Schema(tables, (*REVISIONS, "next"), folder)


def test_a_store_that_is_brought_up_is_like_a_new_one(untouched: Engine, later: Schema) -> None:
    schema_version.bring_up(untouched, "x", create=True)
    schema_version.bring_up(untouched, "x", create=False, schema=later)
    with untouched.begin() as connection:
        migrated = catalogue(connection)
        assert "colour" in [column["name"] for column in migrated["runs"]["columns"]]
        later.tables.drop_all(connection)
        connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")
    schema_version.bring_up(untouched, "x", create=True, schema=later)
    with untouched.begin() as connection:
        assert catalogue(connection) == migrated


def test_an_earlier_store_is_brought_up_and_keeps_what_it_holds(
    store: Store, later: Schema
) -> None:
    begun = begin(store, item("x"), item("y"))
    begun.judge_all("B")
    schema_version.bring_up(store._writes, store.address, create=False, schema=later)
    with store.reading() as connection:
        assert connection.exec_driver_sql("SELECT colour FROM runs").scalars().all() == ["grey"]
    assert store.verdicts.tally(begun.run_id).wins_b == 2
    # To us it is now a newer evenhand's.
    with pytest.raises(StoreError, match=r"newer evenhand \(schema next\)"):
        schema_version.bring_up(store._writes, store.address, create=False)


def test_a_migration_that_fails_leaves_the_store_as_it_was(store: Store, later: Schema) -> None:
    begun = begin(store, item("x"))
    broken = NEXT.format(head=HEAD) + '    raise RuntimeError("in the middle")\n'
    (later.migrations / "versions" / "v_next.py").write_text(broken)
    with pytest.raises(RuntimeError, match="in the middle"):
        schema_version.bring_up(store._writes, store.address, create=False, schema=later)
    schema_version.bring_up(store._writes, store.address, create=False)
    with store.reading() as connection:
        assert "colour" not in connection.exec_driver_sql("SELECT * FROM runs").keys()  # noqa: SIM118
    assert len(begun.work()) == 1
