"""What carries a run's pending pairs to their verdicts: the executor protocol, and the choice
between this process, batch and Ray. Each is imported only where it is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evenhand.errors import InputError
from evenhand.judges import Judge
from evenhand.judges.batch import refuse_without_batches
from evenhand.judges.prepared import writer_of
from evenhand.judges.prices import Price
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message
from evenhand.runs.budget import Budget
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan
from evenhand.runs.progress import JudgeCounts, Observer, counted_requests
from evenhand.runs.stop import Stop
from evenhand.runs.supply import Supply
from evenhand.store import RunRecord, Store


@dataclass(frozen=True, slots=True)
class RunJudge:
    """A judge in a run: what it is asked and how, what its calls cost, what it has said so far."""

    judge_id: int
    judge: Judge
    config: JudgeConfig
    price: Price | None
    count: JudgeCounts
    supply: Supply
    writer: str = ""  # whose artefacts it takes for its own: `JudgePlan.writer`
    writing_price: Price | None = None  # of those


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every executor works with."""

    store: Store
    options: RunOptions
    budget: Budget
    stop: Stop
    observer: Observer = field(default_factory=Observer)


class Executor(Protocol):
    """Judges what is pending until it is done or the run is stopped; all of it ends in the store.

    The store is the only state: whoever takes over later needs nothing else.
    """

    async def execute(self, run_id: int, run_judges: tuple[RunJudge, ...]) -> None: ...

    @property
    def in_flight(self) -> int: ...

    @property
    def limit(self) -> int: ...

    @property
    def paused_s(self) -> float: ...

    @property
    def trouble(self) -> str | None:
        """Why nothing is answered, and when the next call begins."""
        ...

    def account(self) -> tuple[str, ...]:
        """What it leaves behind, for the summary's notes."""
        ...


def choose_executor(context: RunContext, run: RunRecord, judges: Sequence[JudgePlan]) -> Executor:
    if context.options.batch:
        from evenhand.runs.batch.executor import BatchExecutor

        return BatchExecutor(context)
    _refuse_batches_elsewhere(context.store, run)
    if context.options.executor == "ray":
        from evenhand.runs.ray.executor import RayExecutor

        return RayExecutor(context, run, judges)
    from evenhand.runs.local import LocalExecutor

    return LocalExecutor(context)


def refuse_executor(store: Store, judges: Sequence[JudgePlan], options: RunOptions) -> None:
    """What the chosen one cannot do, before anything is read."""
    if options.batch:
        for plan in judges:
            writer = writer_of(plan.judge)
            if writer is not plan.judge:
                names = {"name": plan.judge.name, "writer": writer.name}
                raise InputError(Message("runs.batch_one_writer", **names))
            refuse_without_batches(plan.judge)
    if options.executor == "ray":
        from evenhand.runs.ray.executor import refuse_what_ray_cannot

        refuse_what_ray_cannot(store, judges, options)


def _refuse_batches_elsewhere(store: Store, run: RunRecord) -> None:
    """Who asks one by one what is at a provider already pays for it twice."""
    there = store.batches.unfinished(run.id)
    if there:
        requests = counted_requests(sum(batch.requests for batch in there))
        raise InputError(Message("runs.batches_waiting", name=run.name, requests=requests))
