"""Flags on pairs. And the verdict index knows what the two orders of a pair came to: it is filled
anew from the verdicts, and figures that counted by it are computed anew."""

import sqlalchemy as sa
from alembic import op

from evenhand.store.schema import pair_flags

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    # As it was first made; whoever changes the table writes its columns here.
    pair_flags.create(op.get_bind())
    op.execute(sa.text("DELETE FROM verdict_index"))
    op.execute(sa.text("UPDATE run_indexes SET indexed_to = 0, indexed = 0, stamp = NULL"))
    op.execute(sa.text("DELETE FROM report_cache"))
