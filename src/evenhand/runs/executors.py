"""Which executor carries a run out, by its options. Each is imported only where it is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.errors import InputError
from evenhand.judges.batch import refuse_without_batches
from evenhand.runs.batch.wording import counted_requests
from evenhand.runs.budget import Budget
from evenhand.runs.executor import Executor, LocalExecutor
from evenhand.runs.observer import Observer
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
    observer: Observer,
) -> Executor:
    if options.batch:
        from evenhand.runs.batch.executor import BatchExecutor

        return BatchExecutor(store, options, budget=budget, stop=stop, observer=observer)
    _refuse_batches_elsewhere(store, run)
    if options.executor == "ray":
        from evenhand.runs.ray.executor import RayExecutor

        return RayExecutor(store, run, judges, options, budget=budget, stop=stop, observer=observer)
    return LocalExecutor(store, options, budget, stop)


def refuse_executor(store: Store, judges: Sequence[JudgePlan], options: RunOptions) -> None:
    """What the chosen one cannot do, before anything is read."""
    if options.batch:
        for plan in judges:
            refuse_without_batches(plan.judge)
    if options.executor == "ray":
        from evenhand.runs.ray.refusal import refuse_what_ray_cannot

        refuse_what_ray_cannot(store, judges, options)


def account_of_executor(executor: Executor) -> tuple[str, ...]:
    """What an executor leaves behind, where it has anything to say of that."""
    account = getattr(executor, "account", None)
    return account() if account is not None else ()


def _refuse_batches_elsewhere(store: Store, run: RunRecord) -> None:
    """Who asks one by one what is at a provider already pays for it twice."""
    there = store.batches.unfinished(run.id)
    if there:
        requests = counted_requests(sum(batch.requests for batch in there))
        raise InputError(
            f"run {run.name} has {requests} at a provider's batch API; add --batch to collect "
            "them, or --batch --cancel-batches to give them up"
        )
