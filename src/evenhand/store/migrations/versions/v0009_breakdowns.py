"""How verdicts came out by criterion, by an index. Marks are made anew: a server fills them behind
the runs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def _key(name: str) -> sa.Column[Any]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def _whole(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=False)


def upgrade() -> None:
    op.create_table(
        "run_breakdowns",
        *map(_key, ("run_id", "breakdown")),
        sa.Column("told", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "breakdown", name="pk_run_breakdowns"),
    )
    op.drop_table("verdict_marks")
    op.create_table(
        "verdict_marks",
        *map(_key, ("run_id", "number", "judge_id")),
        *map(_whole, ("ending", "flags")),
        sa.Column("confidence", sa.Double(), nullable=True),
        _whole("longer"),
        *map(_key, ("contest", "breakdown")),
        sa.PrimaryKeyConstraint("run_id", "number", "judge_id", name="pk_verdict_marks"),
        sqlite_with_rowid=False,
    )
    ends = ["number", "judge_id", "ending", "flags"]
    for led_by, columns in {
        "confidence": ends,
        "longer": [*ends, "confidence"],
        "contest": [*ends, "breakdown"],
        "breakdown": ends,
    }.items():
        name = f"ix_verdict_marks_{led_by}"
        op.create_index(name, "verdict_marks", ["run_id", led_by, *columns])
    op.execute("DELETE FROM kept_figures")
    op.execute("UPDATE run_indexes SET marked_to = 0, marked = 0, stamp = NULL")
