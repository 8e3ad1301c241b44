"""Workers that judge, and one database that all of them write to: simulated event by event.

Each worker has places for calls in flight. A call takes its place, waits for the judge, then for
the worker's next write, and leaves its place when its pass is stored, as in `runs/writer.py`: a
write begins when enough has gathered or after some milliseconds, one at a time for each worker, and
whatever comes meanwhile is the next. A verdict goes with the pass that completes it. The database
does so many writes at once, the rest wait their turn. What is not here: a judge that slows down
under load, lost workers, a database whose indexes outgrow its memory.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

ENOUGH = 64  # passes: with every second a verdict, 96 rows of the writer
GATHERED_FOR_S = 0.01


@dataclass(frozen=True, slots=True)
class Setup:
    """A write of n passes takes the database `write_s + n * pass_s`."""

    workers: int
    in_flight: int  # calls of each worker
    judge_s: float  # a call's time at the judge, the mean of an exponential
    write_s: float
    pass_s: float
    slots: int  # writes that the database does at once
    enough: int = ENOUGH
    gathered_for_s: float = GATHERED_FOR_S
    random_service: bool = False  # exponential, where a formula is to be met

    @property
    def offered(self) -> float:
        """Passes a second, if the database took no time."""
        return self.workers * self.in_flight / self.judge_s

    @property
    def ceiling(self) -> float:
        """Passes a second that the database could take in endless writes."""
        return self.slots / self.pass_s if self.pass_s else float("inf")


@dataclass(frozen=True, slots=True)
class Simulated:
    per_s: float  # passes stored
    busy: float  # of the database's slots, from 0 to 1
    batch: float  # passes in a write
    stored_after_s: float  # from the judge's answer to the commit


@dataclass(slots=True)
class _Worker:
    answered: list[float] = field(default_factory=list)  # when; not yet in a write
    writing: bool = False
    due: int = 0  # number of the timer that counts


class _World:
    def __init__(self, setup: Setup, rng: random.Random) -> None:
        self.setup = setup
        self._rng = rng
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._workers = [_Worker() for _ in range(setup.workers)]
        self._queue: deque[tuple[_Worker, list[float]]] = deque()
        self._free = setup.slots
        self.now = 0.0
        self.stored = self.writes = 0
        self.busy_s = self.waited_s = 0.0
        for worker in self._workers:
            for _ in range(setup.in_flight):
                self._ask(worker)

    def run_until(self, stored: int) -> None:
        while self.stored < stored:
            self.now, _, happen = heapq.heappop(self._events)
            happen()

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), happen))

    def _ask(self, worker: _Worker) -> None:
        self._after(self._rng.expovariate(1 / self.setup.judge_s), lambda: self._answer(worker))

    def _answer(self, worker: _Worker) -> None:
        worker.answered.append(self.now)
        self._schedule(worker)

    def _schedule(self, worker: _Worker) -> None:
        if worker.writing or not worker.answered:
            return
        if len(worker.answered) >= self.setup.enough:
            self._write(worker)
        elif not worker.due:
            worker.due = due = next(self._order)
            self._after(self.setup.gathered_for_s, lambda: self._gathered(worker, due))

    def _gathered(self, worker: _Worker, due: int) -> None:
        if worker.due == due and not worker.writing and worker.answered:
            self._write(worker)

    def _write(self, worker: _Worker) -> None:
        worker.writing, worker.due = True, 0
        batch, worker.answered = worker.answered, []
        self._queue.append((worker, batch))
        self._serve()

    def _serve(self) -> None:
        while self._free and self._queue:
            worker, batch = self._queue.popleft()
            self._free -= 1
            took = self.setup.write_s + len(batch) * self.setup.pass_s
            if self.setup.random_service:
                took = self._rng.expovariate(1 / took)
            self.busy_s += took
            # mypy infers no type for a lambda that binds by its defaults
            self._after(took, lambda w=worker, b=batch: self._commit(w, b))  # type: ignore[misc]

    def _commit(self, worker: _Worker, batch: list[float]) -> None:
        self._free += 1
        self.stored += len(batch)
        self.writes += 1
        self.waited_s += sum(self.now - answered for answered in batch)
        worker.writing = False
        for _ in batch:
            self._ask(worker)
        self._schedule(worker)
        self._serve()


def simulate(setup: Setup, *, passes: int = 100_000, seed: int = 1) -> Simulated:
    """What it comes to after a beginning that is left out."""
    world = _World(setup, random.Random(seed))  # noqa: S311 - a simulation
    world.run_until(passes // 5)
    begun = (world.now, world.stored, world.writes, world.busy_s, world.waited_s)
    world.run_until(begun[1] + passes)
    seconds, stored, writes = world.now - begun[0], world.stored - begun[1], world.writes - begun[2]
    return Simulated(
        per_s=stored / seconds,
        busy=(world.busy_s - begun[3]) / seconds / setup.slots,
        batch=stored / writes,
        stored_after_s=(world.waited_s - begun[4]) / stored,
    )


def finite_source_rate(workers: int, judge_s: float, write_s: float, slots: int) -> float:
    """Passes a second of workers with one place each and exponential times, exactly: the
    machine repair model, M/M/c with a finite source (Feller, vol. I, XVII.7)."""
    weights = [1.0]
    for waiting in range(1, workers + 1):
        arriving = (workers - waiting + 1) / judge_s
        leaving = min(waiting, slots) / write_s
        weights.append(weights[-1] * arriving / leaving)
    busy = sum(weight * min(n, slots) for n, weight in enumerate(weights)) / sum(weights)
    return busy / write_s
