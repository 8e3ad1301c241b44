"""Saved views of tables; the text of a judge's own template, to show its prompt; and prompts that
a server's background run still has to have answered."""

import sqlalchemy as sa
from alembic import op

from evenhand.store.schema import job_prompts

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "saved_views",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("saved_at", sa.Double(), nullable=False),
        sa.Column("run_id", sa.BigInteger()),
        sa.Column("filters", sa.Text(), nullable=False),
    )
    # As it was first made; whoever changes the table writes its columns here.
    job_prompts.create(op.get_bind())
    op.add_column("judges", sa.Column("template", sa.Text()))
