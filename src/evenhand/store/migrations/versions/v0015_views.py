"""Saved views of tables; the text of a judge's own template, to show its prompt; and prompts that
a server's background run still has to have answered."""

import sqlalchemy as sa
from alembic import op

from evenhand.store.schema import job_prompts, saved_views

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    # As it was first made; whoever changes the table writes its columns here.
    saved_views.create(op.get_bind())
    job_prompts.create(op.get_bind())
    op.add_column("judges", sa.Column("template", sa.Text()))
