"""What takes a run's pending pairs to verdicts: the executor protocol, and the choice between this
process, batch and Ray, each imported on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evenhand.errors import InputError
from evenhand.judges.batch import refuse_without_batches
from evenhand.judges.prepared import writer_of
from evenhand.judges.prices import Price
from evenhand.judges.protocol import Judge
from evenhand.judging.config import JudgeConfig
from evenhand.quantities import counted
from evenhand.runs.budget import Budget
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan
from evenhand.runs.progress import JudgeCounts, Observer
from evenhand.runs.stop import Stop
from evenhand.runs.supply import Supply
from evenhand.store import RunRecord, Store


@dataclass(frozen=True, slots=True)
class RunJudge:
    """A judge in a run: its configuration, prices and counts so far."""

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
    store: Store
    options: RunOptions
    budget: Budget
    stop: Stop
    observer: Observer = field(default_factory=Observer)


class Executor(Protocol):
    """Judges what is pending until done or stopped, and stores it all.

    The store is the only state, so another executor can take over.
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
        """Notes for the summary on what is left behind."""
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
    """Refuse what the chosen executor cannot do, before anything is read."""
    if options.batch:
        for plan in judges:
            writer = writer_of(plan.judge)
            if writer is not plan.judge:
                names = {"name": plan.judge.name, "writer": writer.name}
                raise InputError.of("runs.batch_one_writer", **names)
            refuse_without_batches(plan.judge)
    if options.executor == "ray":
        from evenhand.runs.ray.executor import refuse_what_ray_cannot

        refuse_what_ray_cannot(store, judges, options)


def _refuse_batches_elsewhere(store: Store, run: RunRecord) -> None:
    """Asking now for what is already in a batch would pay twice."""
    there = store.batches.unfinished(run.id)
    if there:
        requests = counted(sum(batch.requests for batch in there), "request")
        raise InputError.of("runs.batches_waiting", name=run.name, requests=requests)
