"""The verdict index knows ties by rule: it is filled anew from the verdicts, and figures that
counted by it are computed anew."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.execute(sa.text("DELETE FROM verdict_index"))
    op.execute(sa.text("UPDATE run_indexes SET indexed_to = 0, indexed = 0, stamp = NULL"))
    op.execute(sa.text("DELETE FROM report_cache"))
