"""Many rows at once: INSERT … ON CONFLICT with plain tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, literal_column

from evenhand.store.schema import passes


def insert_new(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert the rows whose key is not there yet. The values are the database's own already.
    A pass that failed gives way to one that came.

    Core would look at each value of each row again: 22 against 16 µs for a pass in SQLite.
    """
    if rows:
        connection.exec_driver_sql(_statement(connection.dialect.name, table, columns), list(rows))


@cache
def _statement(dialect: str, table: Table, columns: tuple[str, ...]) -> str:
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        statement: Any = sqlite_insert(table)
        style: Any = sqlite_dialect(paramstyle="qmark")
    else:
        from sqlalchemy.dialects.postgresql import insert as postgres_insert
        from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

        statement = postgres_insert(table)
        style = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
    if table is passes:
        statement = statement.on_conflict_do_update(
            index_elements=list(passes.primary_key),
            set_={name: statement.excluded[name] for name in columns},
            where=passes.c.status == literal_column("'failed'"),
        )
    else:
        statement = statement.on_conflict_do_nothing()
    compiled = statement.compile(dialect=style, column_keys=list(columns))
    if tuple(compiled.positiontup) != columns:
        raise AssertionError(f"columns of {table.name} are not in the table's order")
    return str(compiled)


def insert_where_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """One row, unless its key is there; whether it was put in. Atomic among processes."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        statement: Any = sqlite_insert(table)
    else:
        from sqlalchemy.dialects.postgresql import insert as postgres_insert

        statement = postgres_insert(table)
    # Of insertions SQLAlchemy tells the count only where it is asked to keep it; else -1.
    kept = {"preserve_rowcount": True}
    statement = statement.values(values).on_conflict_do_nothing()
    return connection.execute(statement, execution_options=kept).rowcount > 0
