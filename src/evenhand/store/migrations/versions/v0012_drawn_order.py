"""The one order that was drawn at random for an item."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("items", sa.Column("drawn_order", sa.Text()))
