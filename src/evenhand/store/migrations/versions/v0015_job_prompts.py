"""Prompts that a server's background run still has to have answered."""

from alembic import op

from evenhand.store.schema import job_prompts

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    # As it was first made; whoever changes the table writes its columns here.
    job_prompts.create(op.get_bind())
