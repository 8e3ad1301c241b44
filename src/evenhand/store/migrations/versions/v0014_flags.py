"""The verdict index knows what the two orders of a pair came to. It is filled anew from the
verdicts, and figures that counted by it are computed anew."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.execute(sa.text("DELETE FROM verdict_index"))
    op.execute(sa.text("UPDATE run_indexes SET indexed_to = 0, indexed = 0, stamp = NULL"))
    op.execute(sa.text("DELETE FROM report_cache"))
