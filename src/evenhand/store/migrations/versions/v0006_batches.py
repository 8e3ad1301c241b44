"""Batches at a provider, and the requests in them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def _key(name: str) -> sa.Column[Any]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _whole(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _real(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=null)


def upgrade() -> None:
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "batches",
        sa.Column("id", identity, sa.Identity(), nullable=False),
        *map(_key, ("run_id", "judge_id")),
        *map(_text, ("nonce", "state")),
        _whole("requests"),
        *map(_key, ("first_number", "last_number")),
        _real("created_at"),
        _real("sent_at", null=True),
        _real("reserved_usd", null=True),
        _text("provider_id", null=True),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
        sa.UniqueConstraint("nonce", name="uq_batches_nonce"),
    )
    op.create_index("ix_batches_run_id_state", "batches", ["run_id", "state"])
    op.create_table(
        "batch_requests",
        _key("batch_id"),
        _whole("place"),
        *map(_key, ("run_id", "judge_id", "pair_id")),
        _text("shown_order"),
        *map(_whole, ("sample", "turn")),
        *(_text(name, null=True) for name in ("form", "answer")),
        sa.PrimaryKeyConstraint("batch_id", "place", name="pk_batch_requests"),
    )
    op.create_index(
        "ix_batch_requests_run_id_judge_id_pair_id",
        "batch_requests",
        ["run_id", "judge_id", "pair_id"],
    )
