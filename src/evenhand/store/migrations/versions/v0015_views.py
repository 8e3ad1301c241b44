"""Saved views of tables; and the text of a judge's own template, to show its prompt."""

import sqlalchemy as sa
from alembic import op

from evenhand.store.schema import saved_views

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    # As it was first made; whoever changes the table writes its columns here.
    saved_views.create(op.get_bind())
    op.add_column("judges", sa.Column("template", sa.Text()))
