"""The first schema: runs, judges, pairs, items, passes, verdicts, skipped rows."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _key(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=null)


def _identity() -> sa.Column[Any]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("id", kind, sa.Identity(), nullable=False)


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _real(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=null)


def _count(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=null)


def _small(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _digest(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.LargeBinary(16), nullable=False)


def _pass_columns() -> list[sa.Column[Any]]:
    return [
        _key("pair_id"),
        _key("judge_id"),
        _text("shown_order"),
        _small("sample"),
        _text("status"),
        _text("reason", null=True),
        _text("winner", null=True),
        _real("confidence", null=True),
        _count("requests"),
        _count("input_tokens", null=True),
        _count("output_tokens", null=True),
        _count("cached_input_tokens", null=True),
        _real("cost_usd", null=True),
        _real("time_ms"),
        _key("run_id", null=True),
        _real("created_at"),
        _text("model", null=True),
        _text("raw"),
        _text("body"),
    ]


def upgrade() -> None:
    op.create_table(
        "runs",
        _identity(),
        _text("name"),
        _text("fingerprint"),
        _text("state"),
        _flag("intake_done"),
        _text("stopped_by", null=True),
        _real("seconds"),
        _count("calls"),
        _count("reused_passes"),
        _real("created_at"),
        _real("updated_at"),
        _text("sources"),
        _text("plan"),
        _text("summary"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("name", name="uq_runs_name"),
    )
    op.create_index("ix_runs_fingerprint", "runs", ["fingerprint"])
    op.create_table(
        "judges",
        _identity(),
        _text("key"),
        _text("name"),
        _text("prompt_version", null=True),
        _text("locale", null=True),
        _text("mode", null=True),
        _text("settings"),
        _real("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_judges"),
        sa.UniqueConstraint("key", name="uq_judges_key"),
    )
    op.create_table(
        "run_judges",
        _key("run_id"),
        _key("judge_id"),
        _small("place"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_judges_run_id"),
        sa.ForeignKeyConstraint(["judge_id"], ["judges.id"], name="fk_run_judges_judge_id"),
        sa.PrimaryKeyConstraint("run_id", "judge_id", name="pk_run_judges"),
    )
    op.create_index("ix_run_judges_judge_id", "run_judges", ["judge_id"])
    op.create_table(
        "pairs",
        _identity(),
        _digest("digest"),
        _flag("allow_tie"),
        _text("criteria"),
        _text("prompt"),
        _text("context", null=True),
        _text("reference", null=True),
        _text("response_a"),
        _text("response_b"),
        sa.PrimaryKeyConstraint("id", name="pk_pairs"),
        sa.UniqueConstraint("digest", name="uq_pairs_digest"),
    )
    op.create_table(
        "items",
        _key("run_id"),
        _key("number"),
        _text("key"),
        _text("full_key", null=True),
        _key("pair_id"),
        _flag("swap_positions"),
        _count("row"),
        _text("label", null=True),
        _text("source"),
        _text("model_a", null=True),
        _text("model_b", null=True),
        _text("tags", null=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_items_run_id"),
        sa.ForeignKeyConstraint(["pair_id"], ["pairs.id"], name="fk_items_pair_id"),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_items"),
        sa.UniqueConstraint("run_id", "key", name="uq_items_run_id_key"),
    )
    op.create_index("ix_items_pair_id", "items", ["pair_id"])
    op.create_table(
        "skipped_rows",
        _key("run_id"),
        _digest("digest"),
        _count("row"),
        _text("source"),
        _text("reason"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_skipped_rows_run_id"),
        sa.PrimaryKeyConstraint("run_id", "digest", name="pk_skipped_rows"),
    )
    op.create_table(
        "passes",
        *_pass_columns(),
        sa.ForeignKeyConstraint(["pair_id"], ["pairs.id"], name="fk_passes_pair_id"),
        sa.PrimaryKeyConstraint("pair_id", "judge_id", "shown_order", "sample", name="pk_passes"),
    )
    op.create_table(
        "replaced_passes",
        _identity(),
        _real("replaced_at"),
        *_pass_columns(),
        sa.ForeignKeyConstraint(["pair_id"], ["pairs.id"], name="fk_replaced_passes_pair_id"),
        sa.PrimaryKeyConstraint("id", name="pk_replaced_passes"),
    )
    op.create_index(
        "ix_replaced_passes_pair_id_judge_id", "replaced_passes", ["pair_id", "judge_id"]
    )
    op.create_table(
        "verdicts",
        _key("run_id"),
        _key("number"),
        _key("judge_id"),
        _text("outcome"),
        _text("winner", null=True),
        _real("confidence", null=True),
        _text("confidence_source"),
        _text("first_pass_winner", null=True),
        _text("second_pass_winner", null=True),
        _text("error_kind", null=True),
        _text("error_message", null=True),
        _small("samples"),
        _small("passes"),
        _real("created_at"),
        _text("body"),
        sa.ForeignKeyConstraint(
            ["run_id", "number"], ["items.run_id", "items.number"], name="fk_verdicts_run_id"
        ),
        sa.PrimaryKeyConstraint("run_id", "number", "judge_id", name="pk_verdicts"),
    )
    op.create_index(
        "ix_verdicts_run_id_judge_id_outcome_winner",
        "verdicts",
        ["run_id", "judge_id", "outcome", "winner"],
    )
