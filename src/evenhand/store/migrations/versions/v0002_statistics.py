"""What statistics need of the texts, beside the items; and the order in which a run asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from evenhand.store.intake import prompt_key
from evenhand.store.schema import SafeText

revision = "0002"
down_revision = "0001"

# A page is in memory whole, and a response may have 50 million characters.
_LARGEST_PAGE = 256
_PAGE_CHARACTERS = 8_000_000

_pairs = sa.table(
    "pairs",
    sa.column("id", sa.BigInteger()),
    *(sa.column(name, SafeText()) for name in ("prompt", "context", "response_a", "response_b")),
)
_items = sa.table(
    "items",
    *(sa.column(name, sa.BigInteger()) for name in ("pair_id", "prompt_key", "length_a")),
    sa.column("length_b", sa.BigInteger()),
)


def _key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False)


def upgrade() -> None:
    for name, kind in (
        ("prompt_key", sa.BigInteger()),
        ("length_a", sa.Integer()),
        ("length_b", sa.Integer()),
    ):
        column = sa.Column(name, kind, nullable=False, server_default=sa.text("0"))
        op.add_column("items", column)
    op.create_table(
        "queue",
        _key("run_id"),
        sa.Column("contest", sa.Integer(), nullable=False),
        _key("place"),
        _key("number"),
        sa.ForeignKeyConstraint(
            ["run_id", "number"], ["items.run_id", "items.number"], name="fk_queue_run_id"
        ),
        sa.PrimaryKeyConstraint("run_id", "contest", "place", "number", name="pk_queue"),
    )
    _fill(op.get_bind())


def _fill(connection: sa.Connection) -> None:
    """By way of Python: SQL counts the characters of an escaped text, and has no such digest."""
    fill = (
        sa.update(_items)
        .where(_items.c.pair_id == sa.bindparam("pair"))
        .values(prompt_key=sa.bindparam("key"), length_a=sa.bindparam("a"))
        .values(length_b=sa.bindparam("b"))
    )
    for some in _pages(connection):
        values = [
            {
                "pair": pair_id,
                "key": prompt_key(prompt, context),
                "a": len(response_a),
                "b": len(response_b),
            }
            for pair_id, prompt, context, response_a, response_b in some
        ]
        connection.execute(fill, values)


def _pages(connection: sa.Connection) -> Iterator[list[Any]]:
    column = _pairs.c
    query = sa.select(
        column.id, column.prompt, column.context, column.response_a, column.response_b
    )
    after, limit = 0, 1
    while rows := list(
        connection.execute(query.where(column.id > after).order_by(column.id).limit(limit))
    ):
        yield rows
        after = rows[-1].id
        # As many as will fit, if the next ones are as long as these.
        characters = sum(len(text or "") for row in rows for text in row[1:])
        fitting = _PAGE_CHARACTERS * len(rows) // (characters + 1)
        limit = max(1, min(_LARGEST_PAGE, 2 * len(rows), fitting))
