"""Which schema a database has: empty ones are created, earlier ones upgraded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    inspect,
    text,
)
from sqlalchemy.exc import DBAPIError

from evenhand.errors import StoreError
from evenhand.store import sqlite
from evenhand.store.planted_schema import refuse_planted_code, refuse_planted_rules
from evenhand.store.schema import REVISIONS, VERSION_TABLE, metadata

# "evnh", so that `file` and we can tell a store from another program's SQLite file.
_APPLICATION_ID = 0x65766E68
# Arbitrary, but the same in every evenhand.
_UPGRADE_LOCK = 0x65766E68


@dataclass(frozen=True, slots=True)
class Schema:
    tables: MetaData  # as the last revision has them
    revisions: tuple[str, ...]  # oldest first
    migrations: Path


SCHEMA = Schema(metadata, REVISIONS, Path(__file__).parent / "migrations")


def bring_up(engine: Engine, address: str, *, create: bool, schema: Schema = SCHEMA) -> None:
    """One query for a current store; Alembic is loaded only for earlier ones."""
    head = schema.revisions[-1]
    with engine.begin() as connection:
        is_file = engine.dialect.name == "sqlite"
        if is_file:
            refuse_planted_code(connection, address)
        version = _version(connection)
        if version is None:
            _refuse_others_tables(connection, address, create=create, tables=schema.tables)
        else:
            _refuse_unknown(address, version, schema.revisions)
            if is_file:
                refuse_planted_rules(connection, address, schema.tables)
        if version == head:
            return
    if version is None and is_file:
        sqlite.use_wal(engine)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})"))
        # Another process may have done it while we waited.
        version = _version(connection)
        if version is None:
            _create(connection, schema)
        elif version != head:
            _upgrade(connection, schema.migrations)


def _version(connection: Connection) -> str | None:
    query = text(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608 - a constant
    try:
        with connection.begin_nested():
            version: str | None = connection.execute(query).scalar()
    except DBAPIError as error:
        if _is_missing_table(error):
            return None
        raise
    return version


def _is_missing_table(error: DBAPIError) -> bool:
    undefined_table = getattr(error.orig, "sqlstate", None) == "42P01"
    return undefined_table or f"no such table: {VERSION_TABLE}" in str(error.orig)


def _refuse_unknown(address: str, version: str, revisions: tuple[str, ...]) -> None:
    if version in revisions:
        return
    if version < revisions[0]:
        raise StoreError.of("store.schema_older", address=address, found=version)
    raise StoreError.of("store.schema_newer", address=address, found=version)


def _refuse_others_tables(
    connection: Connection, address: str, *, create: bool, tables: MetaData
) -> None:
    there = set(inspect(connection).get_table_names())
    if connection.dialect.name == "postgresql":
        # Other programs may share the database if their tables have other names.
        there &= set(tables.tables)
        encoding = connection.execute(text("SHOW server_encoding")).scalar()
        if encoding != "UTF8":
            raise StoreError.of("store.encoding_wrong", address=address, encoding=encoding)
    if there:
        raise StoreError.of("store.others_tables", address=address, table=min(there))
    if not create:
        raise StoreError.of("store.never_used", address=address)


def _create(connection: Connection, schema: Schema) -> None:
    """Without Alembic, whose loading takes as long as judging some hundred pairs."""
    version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), nullable=False))
    version.append_constraint(
        PrimaryKeyConstraint(version.c.version_num, name=f"{VERSION_TABLE}_pkc")
    )
    version.create(connection)
    schema.tables.create_all(connection)
    connection.execute(version.insert().values(version_num=schema.revisions[-1]))
    if connection.dialect.name == "sqlite":
        connection.execute(text(f"PRAGMA application_id = {_APPLICATION_ID}"))


def _upgrade(connection: Connection, migrations: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
