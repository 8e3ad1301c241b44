"""The first schema. It makes nothing: a new store is made from `schema.py` at its newest revision.
This is where the revisions of later versions begin."""

revision = "0019"
down_revision = None


def upgrade() -> None:
    pass
