"""Logins on pages that somebody ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "ended_sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ended_sessions"),
    )
    op.create_index("ix_ended_sessions_ends_at", "ended_sessions", ["ends_at"])
