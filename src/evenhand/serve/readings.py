"""Stored runs, and their judges, by what clients call them."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.errors import NotFound
from evenhand.report.lookup import nearest
from evenhand.store import RunRecord, Store

MOST_DIGITS = 18


def needed_run(store: Store, wanted: str) -> RunRecord:
    """By its id, or by its name; a name of digits alone is taken for an id."""
    if wanted.isascii() and wanted.isdigit():
        run = store.run_at(int(wanted)) if len(wanted) <= MOST_DIGITS else None
    else:
        run = store.find_run(wanted)
    if run is not None:
        return run
    names = [each.name for each in store.run_page(limit=1000)]
    near = nearest(wanted, names)
    hint = f"; the nearest is {near[0]!r}" if near else "; list them at /v1/runs"
    raise NotFound(f"there is no run {wanted[:80]!r}{hint}")


def recorded_judge(store: Store, runs: Sequence[RunRecord], judge: str | None) -> str | None:
    """What the runs call a judge that clients know by its offer's name."""
    for run in runs if judge is not None else ():
        job = store.jobs.find(run.id)
        if job is not None and judge in job.judges:
            return store.run_judges(run.id)[job.judges.index(judge)].name
    return judge
