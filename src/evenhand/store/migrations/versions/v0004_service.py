"""What a server keeps: its background runs and its answers; and verdicts by outcome and tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import sqlalchemy as sa
from alembic import op

from evenhand.store.schema import SafeText, shorten

revision = "0004"
down_revision = "0003"

_PAGE = 10_000

_items = sa.table(
    "items",
    sa.column("run_id", sa.BigInteger()),
    sa.column("number", sa.BigInteger()),
    sa.column("tags", sa.Text()),
)
_item_tags = sa.table(
    "item_tags",
    sa.column("run_id", sa.BigInteger()),
    sa.column("tag", SafeText()),
    sa.column("number", sa.BigInteger()),
)
_verdicts = sa.table("verdicts", sa.column("body", sa.Text()), sa.column("abstained", sa.Boolean()))


def _key(name: str) -> sa.Column[Any]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _real(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=null)


def upgrade() -> None:
    _verdicts_by_outcome()
    op.create_table(
        "item_tags",
        _key("run_id"),
        _text("tag"),
        _key("number"),
        sa.ForeignKeyConstraint(
            ["run_id", "number"], ["items.run_id", "items.number"], name="fk_item_tags_run_id"
        ),
        sa.PrimaryKeyConstraint("run_id", "tag", "number", name="pk_item_tags"),
        sqlite_with_rowid=False,
    )
    _fill_tags(op.get_bind())
    op.create_table(
        "jobs",
        _key("run_id"),
        _text("wanted"),
        _real("queued_at"),
        _real("beat_at", null=True),
        _real("created_at"),
        _real("updated_at"),
        _text("token", null=True),
        _text("judges"),
        _text("options"),
        _text("progress"),
        _text("error", null=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_jobs_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_wanted_queued_at", "jobs", ["wanted", "queued_at"])
    op.create_table(
        "idempotency",
        *(_text(name) for name in ("token", "key", "path", "digest", "owner")),
        _real("begun_at"),
        _real("leased_until"),
        sa.Column("status", sa.Integer()),
        _text("headers", null=True),
        sa.Column("body", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("token", "key", name="pk_idempotency"),
    )
    op.create_index("ix_idempotency_begun_at", "idempotency", ["begun_at"])


def _verdicts_by_outcome() -> None:
    column: sa.Column[bool] = sa.Column(
        "abstained", sa.Boolean(), nullable=False, server_default=sa.false()
    )
    op.add_column("verdicts", column)
    # A quote inside a text of the JSON has a backslash before it, so that no prose reads like this.
    has_abstained = _verdicts.c.body.contains('"abstained":true')
    op.execute(sa.update(_verdicts).where(has_abstained).values(abstained=True))
    op.drop_index("ix_verdicts_run_id_judge_id_outcome_winner", "verdicts")
    op.create_index(
        "ix_verdicts_run_id_judge_id_outcome_winner_number",
        "verdicts",
        ["run_id", "judge_id", "outcome", "winner", "number"],
    )
    op.create_index(
        "ix_verdicts_abstained",
        "verdicts",
        ["run_id", "number", "judge_id"],
        sqlite_where=sa.text("abstained = 1"),
        postgresql_where=sa.text("abstained"),
    )


def _fill_tags(connection: sa.Connection) -> None:
    for page in _tagged(connection):
        rows = [
            {"run_id": run_id, "tag": tag, "number": number}
            for run_id, number, tags in page
            for tag in {shorten(each) for each in orjson.loads(tags)}
        ]
        connection.execute(sa.insert(_item_tags), rows)


def _tagged(connection: sa.Connection) -> Iterator[list[Any]]:
    column = _items.c
    query = sa.select(column.run_id, column.number, column.tags).where(column.tags.is_not(None))
    query = query.order_by(column.run_id, column.number).limit(_PAGE)
    after = (0, 0)
    while rows := list(
        connection.execute(query.where(sa.tuple_(column.run_id, column.number) > after))
    ):
        yield rows
        after = (rows[-1].run_id, rows[-1].number)
