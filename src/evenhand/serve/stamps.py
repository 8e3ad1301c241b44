"""How a run stood when something was worked out from it: what was made at another stamp is old."""

from __future__ import annotations

from evenhand.store import RunRecord, Store

# A run in one of these has said in its record when it came to rest.
_AT_REST = frozenset({"finished", "stopped"})


def is_at_rest(run: RunRecord) -> bool:
    return run.state in _AT_REST


def stamp_of(store: Store, run: RunRecord) -> str:
    """Changes with the run's verdicts; of one that goes on, they are counted."""
    if is_at_rest(run):
        return f"{run.state} {run.updated_at.timestamp()}"
    return f"{run.state} {store.count_verdicts(run.id).judged}"
