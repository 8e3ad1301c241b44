"""The executor of `--batch`: each judge's pending pairs through its provider's batch API."""

from __future__ import annotations

import asyncio

from evenhand.errors import EvenhandError
from evenhand.judges.batch import BatchApi, batch_api_of
from evenhand.runs.batch.allowance import Allowance
from evenhand.runs.batch.course import Course
from evenhand.runs.batch.lane import BatchLane
from evenhand.runs.batch.timing import BatchTiming
from evenhand.runs.batch.waiting import Waiting
from evenhand.runs.batch.wording import counted_batches, counted_requests
from evenhand.runs.budget import Budget
from evenhand.runs.executor import Seat
from evenhand.runs.health import UnreadWatch
from evenhand.runs.observer import Observer
from evenhand.runs.options import RunOptions
from evenhand.runs.stop import Stop
from evenhand.store import Store


class BatchExecutor:
    limit = 0  # none of ours: the provider takes what it takes
    paused_s = 0.0

    def __init__(
        self,
        store: Store,
        options: RunOptions,
        *,
        budget: Budget,
        stop: Stop,
        observer: Observer,
        timing: BatchTiming | None = None,
    ) -> None:
        self._store = store
        self._options = options
        self._budget = budget
        self._stop = stop
        self._observer = observer
        self._allowance = Allowance(options, budget)
        self._timing = timing or BatchTiming.looking_every(options.batch_poll_s)
        self._lanes: list[BatchLane] = []

    @property
    def in_flight(self) -> int:
        return sum(lane.in_flight for lane in self._lanes)

    async def execute(self, run_id: int, seats: tuple[Seat, ...]) -> None:
        apis = [batch_api_of(seat.judge) for seat in seats]
        self._lanes = [self._lane(run_id, seat, api) for seat, api in zip(seats, apis, strict=True)]
        running = [asyncio.create_task(lane.run()) for lane in self._lanes]
        try:
            await asyncio.gather(*running)
        except EvenhandError as error:
            # Providers' faults are the lanes' own; this is the store's.
            self._stop.ask("store", error)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for api in apis:
                await api.close()

    def account(self) -> tuple[str, ...]:
        """What is left behind, for the summary."""
        notes = (
            ["costs are at batch rates, half of the list price"] if self._budget.cost_usd else []
        )
        if self._options.cancel_batches:
            notes.append("nothing new was asked; without --cancel-batches the same command goes on")
        for lane in self._lanes:
            there = [batch for batch in lane.at_provider if batch.state == "open"]
            if there:
                requests = counted_requests(sum(batch.requests for batch in there))
                stay = "stays" if len(there) == 1 else "stay"
                notes.append(
                    f"{counted_batches(len(there))} with {requests} {stay} at {lane.host}; the "
                    "same command collects what it brings, also on another machine with the same "
                    "store, and --cancel-batches gives it up"
                )
            unseen = sum(b.requests for b in lane.at_provider if b.state == "intended")
            if unseen:
                notes.append(
                    f"whether {counted_requests(unseen)} arrived at {lane.host} is not known; the "
                    "same command finds out before it submits anything again"
                )
        return tuple(notes)

    def _lane(self, run_id: int, seat: Seat, api: BatchApi) -> BatchLane:
        return BatchLane(
            Course(
                run_id,
                seat,
                api,
                store=self._store,
                stop=self._stop,
                observer=self._observer,
                allowance=self._allowance,
                timing=self._timing,
                waiting=Waiting(self._timing, self._stop),
                limits=api.limits,
                giving_up=self._options.cancel_batches,
            ),
            UnreadWatch(seat.judge, self._stop, keep_going=self._options.keep_going_unread),
        )
