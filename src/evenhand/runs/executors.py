"""Which executor carries a run out, by its options. Each is imported only where it is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.runs.budget import Budget
from evenhand.runs.executor import Executor, LocalExecutor
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan
from evenhand.runs.stop import Stop
from evenhand.store import RunRecord, Store


def choose_executor(
    store: Store,
    run: RunRecord,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    budget: Budget,
    stop: Stop,
) -> Executor:
    return LocalExecutor(store, options, budget, stop)
