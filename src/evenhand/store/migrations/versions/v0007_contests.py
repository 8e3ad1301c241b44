"""Which models a verdict is about, beside its other marks. These are made anew: a server fills
them behind the runs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def _key(name: str, *, null: bool = False) -> sa.Column[Any]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, kind, nullable=null, autoincrement=False)


def upgrade() -> None:
    op.create_table(
        "run_contests",
        *map(_key, ("run_id", "contest")),
        *(_key(name, null=True) for name in ("key_a", "key_b")),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("model_a", "model_b")),
        sa.PrimaryKeyConstraint("run_id", "contest", name="pk_run_contests"),
    )
    for side in "ab":
        columns = ["run_id", f"key_{side}"]
        op.create_index(f"ix_run_contests_run_id_key_{side}", "run_contests", columns)
    op.execute("DELETE FROM verdict_marks")
    op.execute("DELETE FROM kept_figures")
    op.execute("UPDATE run_indexes SET marked_to = 0, marked = 0, stamp = NULL")
    op.add_column(
        "verdict_marks",
        sa.Column(
            "contest",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
            server_default=sa.text("0"),
        ),
    )
    op.create_index(
        "ix_verdict_marks_contest",
        "verdict_marks",
        ["run_id", "contest", "number", "judge_id", "ending", "flags"],
    )
