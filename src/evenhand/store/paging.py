"""The verdicts of a run some thousand items at a time: what is in memory does not grow with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Select, bindparam

from evenhand.store.intake import count_items
from evenhand.store.schema import items, verdicts

_AT_ONCE = 5_000

of_its_item = (items.c.run_id == verdicts.c.run_id) & (items.c.number == verdicts.c.number)
# Numbers on both sides: PostgreSQL then reads a stretch of each table and joins them at once.
on_page = (
    (verdicts.c.run_id == bindparam("run"))
    & verdicts.c.number.between(bindparam("first"), bindparam("last"))
    & (items.c.run_id == bindparam("run"))
    & items.c.number.between(bindparam("first"), bindparam("last"))
)


def pages(
    connection: Connection, query: Select[Any], run_id: int, more: Mapping[str, Any]
) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """The columns of each page that is not empty. `query` is restricted by `on_page`."""
    last = count_items(connection, run_id)
    for first in range(1, last + 1, _AT_ONCE):
        reach = {"run": run_id, "first": first, "last": first + _AT_ONCE - 1}
        # Plain tuples, texts still escaped: SQLAlchemy's rows take a third longer.
        answer = connection.execute(query, {**reach, **more})
        rows = answer.cursor.fetchall() if answer.cursor else []
        answer.close()
        if rows:
            yield tuple(zip(*rows, strict=True))
