"""Answers that `evenhand ab` had generated."""

from alembic import op

from evenhand.store.schema import answers

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    # As it was first made; whoever changes the table writes its columns here.
    answers.create(op.get_bind())
