"""What carries a run's pending pairs to their verdicts: the executor protocol, the one of this
process, and the choice between local, batch and Ray.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from evenhand.errors import EvenhandError, InputError
from evenhand.judges import Judge
from evenhand.judges.batch import refuse_without_batches
from evenhand.judges.prices import Price
from evenhand.judging.config import JudgeConfig
from evenhand.runs.batch.requests import counted_requests
from evenhand.runs.budget import Budget
from evenhand.runs.health import JudgeHealth, UnreadMonitor
from evenhand.runs.local import GatedJudge, JudgeQueue, PatientJudge
from evenhand.runs.options import RunOptions
from evenhand.runs.pacing import LONGEST_PAUSE_S, AdaptiveLimit, CallGate, Pace
from evenhand.runs.plan import JudgePlan
from evenhand.runs.progress import JudgeCounts, Observer
from evenhand.runs.stop import Stop
from evenhand.runs.supply import Supply
from evenhand.runs.telemetry import Telemetry
from evenhand.runs.writer import Writer
from evenhand.store import RunRecord, Store

_START, _MOST = 8, 512
_TIMES_TOLD_TO_SLOW_DOWN = 30


@dataclass(frozen=True, slots=True)
class RunJudge:
    """A judge in a run: what it is asked and how, what its calls cost, what it has said so far."""

    judge_id: int
    judge: Judge
    config: JudgeConfig
    price: Price | None
    count: JudgeCounts
    supply: Supply


class Executor(Protocol):
    """Judges what is pending until it is done or the run is stopped; all of it ends in the store.

    The store is the only state: whoever takes over later needs nothing else.
    """

    async def execute(self, run_id: int, seats: tuple[RunJudge, ...]) -> None: ...

    @property
    def in_flight(self) -> int: ...

    @property
    def limit(self) -> int: ...

    @property
    def paused_s(self) -> float: ...


class LocalExecutor:
    def __init__(
        self,
        store: Store,
        options: RunOptions,
        budget: Budget,
        stop: Stop,
        *,
        paces: Sequence[Pace] | None = None,
    ) -> None:
        """`paces`: of each judge, where the options' are not to be kept by this process alone."""
        self._store = store
        self._options = options
        self._budget = budget
        self._stop = stop
        self._paces = paces
        self._gates: list[CallGate] = []
        self._lanes: list[JudgeQueue] = []
        self._telemetry = Telemetry.found()

    @property
    def in_flight(self) -> int:
        return sum(gate.in_flight for gate in self._gates)

    @property
    def limit(self) -> int:
        return sum(gate.limit for gate in self._gates)

    @property
    def paused_s(self) -> float:
        return max((gate.paused_s() for gate in self._gates), default=0.0)

    @property
    def waiting(self) -> list[int]:
        """Calls that wait for their turn, judge by judge."""
        return [gate.waiting for gate in self._gates]

    @property
    def pairs_open(self) -> int:
        return sum(lane.pairs_open for lane in self._lanes)

    async def execute(self, run_id: int, seats: tuple[RunJudge, ...]) -> None:
        writer = Writer(self._store, lambda error: self._stop.ask("store", error))
        paces = self._paces or [self._pace() for _ in seats]
        self._lanes = [
            self._lane(run_id, seat, pace, writer) for seat, pace in zip(seats, paces, strict=True)
        ]
        try:
            with self._telemetry.run(str(run_id)):
                await self._all(self._lanes)
        except EvenhandError as error:
            # A store that fails takes the run with it; what it holds stays.
            self._stop.ask("store", error)
        finally:
            await self._closed(writer)

    async def _all(self, lanes: list[JudgeQueue]) -> None:
        running = [asyncio.create_task(lane.run()) for lane in lanes]
        try:
            await asyncio.gather(*running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _closed(self, writer: Writer) -> None:
        try:
            await writer.close()
        except EvenhandError as error:
            self._stop.ask("store", error)

    def _lane(self, run_id: int, seat: RunJudge, pace: Pace, writer: Writer) -> JudgeQueue:
        gate = CallGate(self._adaptive(seat.judge), pace, clock=time.monotonic)
        self._gates.append(gate)
        self._stop.listen(gate.stop)
        health = JudgeHealth(seat.judge.name, self._stop, proven=seat.count.proven)
        gated = GatedJudge(seat.judge, gate, self._budget, price=seat.price)
        usual = seat.config.retry
        retry = replace(
            usual,
            patience_s=LONGEST_PAUSE_S,
            limited_attempts=max(usual.attempts, _TIMES_TOLD_TO_SLOW_DOWN),
        )
        patient = PatientJudge(gated, gate, health, retry=retry, telemetry=self._telemetry)
        return JudgeQueue(
            run_id,
            seat.judge_id,
            patient,
            config=seat.config,
            supply=seat.supply,
            store=self._store,
            writer=writer,
            gate=gate,
            health=health,
            unread=UnreadMonitor(
                seat.judge, self._stop, keep_going=self._options.keep_going_unread
            ),
            count=seat.count,
            telemetry=self._telemetry,
        )

    def _adaptive(self, judge: Judge) -> AdaptiveLimit:
        if not judge.traits.parallel:
            return AdaptiveLimit(1, 1, insist=True)
        named = self._options.concurrency
        if named is not None:
            return AdaptiveLimit(named, named, insist=True)
        return AdaptiveLimit(_START, _MOST)

    def _pace(self) -> Pace:
        return Pace(requests=self._options.rpm, tokens=self._options.tpm)


# Which executor carries a run out, by its options. Each is imported only where it is chosen.


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
        from evenhand.runs.ray.executor import refuse_what_ray_cannot

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
