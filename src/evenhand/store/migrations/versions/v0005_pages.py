"""What pages need: verdicts by what they are sorted and searched by, words, and kept figures."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from evenhand.store.schema import WordPositions

revision = "0005"
down_revision = "0004"


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
    """All of it is empty: a server fills it behind the runs."""
    op.create_table(
        "verdict_marks",
        *map(_key, ("run_id", "number", "judge_id")),
        _whole("ending"),
        _whole("flags"),
        _real("confidence", null=True),
        _whole("longer"),
        _text("criteria"),
        sa.PrimaryKeyConstraint("run_id", "number", "judge_id", name="pk_verdict_marks"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_verdict_marks_confidence",
        "verdict_marks",
        ["run_id", "confidence", "number", "judge_id", "ending", "flags"],
    )
    op.create_index(
        "ix_verdict_marks_longer",
        "verdict_marks",
        ["run_id", "longer", "number", "judge_id", "ending", "flags", "confidence"],
    )
    op.create_table(
        "run_criteria",
        _key("run_id"),
        _whole("place"),
        _text("name"),
        sa.PrimaryKeyConstraint("run_id", "place", name="pk_run_criteria"),
    )
    op.create_table(
        "run_indexes",
        *map(_key, ("run_id", "marked_to", "marked")),
        _text("stamp", null=True),
        _key("worded_to"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_indexes"),
    )
    _search_docs()
    op.create_table(
        "kept_figures",
        _key("run_id"),
        *map(_text, ("what", "parameters")),
        _text("stamp", null=True),
        _real("computed_at", null=True),
        _real("took_s", null=True),
        _text("owner", null=True),
        _real("leased_until"),
        _real("asked_at"),
        sa.Column("failed", sa.Boolean(), nullable=False),
        _text("body", null=True),
        sa.PrimaryKeyConstraint("run_id", "what", "parameters", name="pk_kept_figures"),
    )


def _search_docs() -> None:
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "search_docs",
        sa.Column("doc_id", identity, sa.Identity(), nullable=False),
        _key("pair_id"),
        sa.Column("words", sa.Text().with_variant(WordPositions(), "postgresql")),
        sa.PrimaryKeyConstraint("doc_id", name="pk_search_docs"),
        sa.UniqueConstraint("pair_id", name="uq_search_docs_pair_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_search_docs_words",
        "search_docs",
        ["words"],
        postgresql_using="gin",
        sqlite_where=sa.text("words IS NOT NULL"),
    )
