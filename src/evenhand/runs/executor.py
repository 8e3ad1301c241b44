"""Who carries a run's pending pairs to their verdicts. Here: this process, and its event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from evenhand.errors import EvenhandError
from evenhand.judges import Judge
from evenhand.judges.prices import Price
from evenhand.procedure import Procedure
from evenhand.runs.budget import Budget
from evenhand.runs.gate import LONGEST_PAUSE_S, Gate
from evenhand.runs.health import Health, UnreadWatch
from evenhand.runs.lane import Lane
from evenhand.runs.limit import AdaptiveLimit
from evenhand.runs.options import RunOptions
from evenhand.runs.pace import Pace
from evenhand.runs.progress import Count
from evenhand.runs.stop import Stop
from evenhand.runs.supply import Supply
from evenhand.runs.telemetry import Telemetry
from evenhand.runs.turns import GatedJudge, PatientJudge
from evenhand.runs.writer import Writer
from evenhand.store import Store

_START, _MOST = 8, 512
_TIMES_TOLD_TO_SLOW_DOWN = 30


@dataclass(frozen=True, slots=True)
class Seat:
    """A judge in a run: what it is asked and how, what its calls cost, what it has said so far."""

    judge_id: int
    judge: Judge
    procedure: Procedure
    price: Price | None
    count: Count
    supply: Supply


class Executor(Protocol):
    """Judges what is pending until it is done or the run is stopped; all of it ends in the store.

    The store is the only state: whoever takes over later needs nothing else.
    """

    async def execute(self, run_id: int, seats: tuple[Seat, ...]) -> None: ...

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
        self._gates: list[Gate] = []
        self._lanes: list[Lane] = []
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

    async def execute(self, run_id: int, seats: tuple[Seat, ...]) -> None:
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

    async def _all(self, lanes: list[Lane]) -> None:
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

    def _lane(self, run_id: int, seat: Seat, pace: Pace, writer: Writer) -> Lane:
        gate = Gate(self._adaptive(seat.judge), pace, clock=time.monotonic)
        self._gates.append(gate)
        self._stop.listen(gate.stop)
        health = Health(seat.judge.name, self._stop, proven=seat.count.proven)
        gated = GatedJudge(seat.judge, gate, self._budget, price=seat.price)
        usual = seat.procedure.retry
        retry = replace(
            usual,
            patience_s=LONGEST_PAUSE_S,
            limited_attempts=max(usual.attempts, _TIMES_TOLD_TO_SLOW_DOWN),
        )
        patient = PatientJudge(gated, gate, health, retry=retry, telemetry=self._telemetry)
        return Lane(
            run_id,
            seat.judge_id,
            patient,
            procedure=seat.procedure,
            supply=seat.supply,
            store=self._store,
            writer=writer,
            gate=gate,
            health=health,
            unread=UnreadWatch(seat.judge, self._stop, keep_going=self._options.keep_going_unread),
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
