"""The runs of a store, a line each."""

from __future__ import annotations

from datetime import datetime

from evenhand.contract.model import Model
from evenhand.errors import StoreBusy, StoreError
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
    """Newest first; `look_over` tells of those that cannot be read, too."""
    return look_over(store)[0]


def look_over(store: Store) -> tuple[list[RunLine], list[StoreError]]:
    """The runs, newest first, and what is wrong with those that cannot be read."""
    lines, damaged = [], store.damaged_runs()
    for run in sorted(store.list_runs(), key=lambda run: (run.created_at, run.id), reverse=True):
        try:
            lines.append(_line(store, run))
        except StoreBusy:
            raise
        except StoreError as error:
            damaged.append(StoreError(f"run {run.name!r}: {error.message}"))
    return lines, damaged


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
