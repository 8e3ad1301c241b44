"""A foreign SQLite file may hold code in its schema: a trigger that turns each verdict into B, a
computed column, a rule that drops rows. Only evenhand's own code runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from sqlalchemy import Connection, MetaData, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from evenhand.errors import StoreError
from evenhand.store.full_text import FTS, MAKE_FTS
from evenhand.store.schema import VERSION_TABLE

_SCHEMA = text("SELECT type, name, tbl_name, sql FROM sqlite_master")
# A column without rules; upgraded tables have theirs in other places.
_PLAIN_COLUMN = re.compile(
    r'"?\w+"? (?:INTEGER|BIGINT|TEXT|VARCHAR\(\d+\)|DOUBLE|FLOAT|REAL|BLOB|BOOLEAN)(?: NOT NULL)?',
    re.IGNORECASE,
)
_PLAIN_INDEX = re.compile(r'CREATE INDEX "?\w+"? ON "?\w+"? \((?:"?\w+"?(?:, )?)+\)', re.IGNORECASE)
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)
_SEARCH = MAKE_FTS.replace("IF NOT EXISTS ", "")
_BODY = re.compile(r"[^(]*\((.*)\)([^()]*)", re.DOTALL)
# Quoted text, parentheses without nested ones, or the text between.
_WITHIN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\([^()]*\)|[^,'"()]+|[,()'"]""")
# FTS5's own tables.
_FTS_TABLES = frozenset(f"{FTS}_{part}" for part in ("data", "idx", "content", "docsize", "config"))
_FTS_DEFINITIONS = frozenset(
    (
        *("id INTEGER PRIMARY KEY", "block BLOB", "segid", "term", "pgno", "k PRIMARY KEY", "v"),
        *("PRIMARY KEY(segid, term)", "sz BLOB", "origin INTEGER"),
    )
)
_END = frozenset({"", "WITHOUT ROWID"})


def refuse_planted_code(connection: Connection, address: str) -> None:
    """Call before reading anything through the file's schema."""
    objects = connection.execute(_SCHEMA).all()
    if all(name != VERSION_TABLE for _, name, _, _ in objects):
        return  # another program's, or nobody's yet
    for kind, name, table, sql in objects:
        if kind == "table" and isinstance(sql, str):
            planted = bool(_VIRTUAL.match(sql)) and _one_line(sql) != _SEARCH
        else:
            planted = kind != "index"
        if planted:
            raise _planted(address, kind, name, table)


def refuse_planted_rules(connection: Connection, address: str, tables: MetaData) -> None:
    """For a file of known version: no table or index may do more than store values."""
    definitions, indexes = _ours(tables)
    for kind, name, table, sql in connection.execute(_SCHEMA):
        if sql is None or _VIRTUAL.match(sql):
            continue  # an index without SQL belongs to a key
        if kind == "index":
            line = _one_line(sql)
            planted = line not in indexes and not _PLAIN_INDEX.fullmatch(line)
        else:
            known = _FTS_DEFINITIONS if name in _FTS_TABLES else definitions.get(name)
            planted = known is not None and not _is_plain(sql, known)
        if planted:
            raise _planted(address, kind, name, table)


def _planted(address: str, kind: object, name: object, table: object) -> StoreError:
    on = "" if table == name else f" on {str(table)[:60]!r}"
    return StoreError.of("store.planted", address=address, what=f"{kind} {str(name)[:60]!r}{on}")


def _is_plain(sql: str, known: frozenset[str]) -> bool:
    body = _BODY.fullmatch(sql)
    if body is None or _one_line(body[2]).upper() not in _END:
        return False
    return all(each in known or _PLAIN_COLUMN.fullmatch(each) for each in _definitions(body[1]))


@cache
def _ours(tables: MetaData) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Each table's definitions and the indexes, in SQLite's notation."""
    dialect = sqlite.dialect()
    definitions, indexes = {}, set()
    for table in tables.tables.values():
        body = _BODY.fullmatch(str(CreateTable(table).compile(dialect=dialect)))
        definitions[table.name] = frozenset(_definitions(body[1])) if body else frozenset()
        indexes |= {
            _one_line(str(CreateIndex(each).compile(dialect=dialect))) for each in table.indexes
        }
    key = f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num)"
    definitions[VERSION_TABLE] = frozenset({key})
    return definitions, frozenset(indexes)


def _definitions(body: str) -> Iterator[str]:
    """Columns and constraints: the parts between commas outside parentheses."""
    parts: list[str] = []
    depth = 0
    for piece in _WITHIN.findall(body):
        depth += (piece == "(") - (piece == ")")
        if piece == "," and depth == 0:
            yield _one_line("".join(parts))
            parts = []
        else:
            parts.append(piece)
    yield _one_line("".join(parts))


def _one_line(sql: str) -> str:
    return " ".join(sql.split())
