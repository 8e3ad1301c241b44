"""The first schema. Makes nothing, since new stores are made from `schema.py`; later revisions
start here.
"""

revision = "0019"
down_revision = None


def upgrade() -> None:
    pass
