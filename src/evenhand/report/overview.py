"""The runs of a store, a line each."""

from __future__ import annotations

from datetime import datetime

from evenhand.contract.model import Model
from evenhand.store import RunRecord, RunState, Store


class RunLine(Model):
    """A run in a list. With several judges, verdicts and what is pending are theirs together."""

    run: str
    created_at: datetime
    updated_at: datetime
    state: RunState
    stopped_by: str | None
    judges: tuple[str, ...]
    pairs: int
    judged: int
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    pending: int
    skipped_rows: int


def list_runs(store: Store) -> list[RunLine]:
    """Newest first."""
    runs = sorted(store.list_runs(), key=lambda run: (run.created_at, run.id), reverse=True)
    return [_line(store, run) for run in runs]


def _line(store: Store, run: RunRecord) -> RunLine:
    tally = store.tally(run.id)
    return RunLine(
        run=run.name,
        created_at=run.created_at,
        updated_at=run.updated_at,
        state=run.state,
        stopped_by=run.stopped_by,
        judges=tuple(judge.name for judge in store.run_judges(run.id)),
        pairs=tally.pairs,
        judged=tally.judged,
        wins_a=tally.wins_a,
        wins_b=tally.wins_b,
        ties=tally.ties,
        inconsistent=tally.inconsistent,
        invalid=tally.invalid,
        pending=tally.pending,
        skipped_rows=tally.skipped_rows,
    )
