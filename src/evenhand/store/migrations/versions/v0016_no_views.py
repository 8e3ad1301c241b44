"""Saved views are gone."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.drop_table("saved_views")
