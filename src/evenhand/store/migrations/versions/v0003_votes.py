"""Votes of people on pairs, and the votes that later ones replaced."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def _key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False)


def _text(name: str, *, null: bool = True) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _real(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=null)


def _vote_columns() -> list[sa.Column[Any]]:
    return [
        _key("pair_id"),
        _text("who", null=False),
        _text("verdict"),
        _text("origin", null=False),
        _text("draw"),
        _real("chance", null=True),
        _text("shown_order"),
        _real("voted_at"),
        _text("comment"),
    ]


def upgrade() -> None:
    op.create_table(
        "votes",
        *_vote_columns(),
        sa.ForeignKeyConstraint(["pair_id"], ["pairs.id"], name="fk_votes_pair_id"),
        sa.PrimaryKeyConstraint("pair_id", "who", name="pk_votes"),
    )
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "replaced_votes",
        sa.Column("id", identity, sa.Identity(), nullable=False),
        _real("replaced_at"),
        *_vote_columns(),
        sa.ForeignKeyConstraint(["pair_id"], ["pairs.id"], name="fk_replaced_votes_pair_id"),
        sa.PrimaryKeyConstraint("id", name="pk_replaced_votes"),
    )
    op.create_index("ix_replaced_votes_pair_id_who", "replaced_votes", ["pair_id", "who"])
