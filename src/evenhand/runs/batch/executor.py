"""The executor of `--batch`. For each judge: poll, collect, settle, submit, and again until nothing
is wanted and nothing is at the provider.
"""

from __future__ import annotations

import asyncio

from evenhand.errors import EvenhandError
from evenhand.judges.batch import BatchApi, batch_api_of
from evenhand.runs.batch.context import BatchBudget, BatchContext, BatchTiming, PollTimer
from evenhand.runs.batch.polling import BatchPoller
from evenhand.runs.batch.requests import counted_batches, counted_requests
from evenhand.runs.batch.settlement import BatchSettler
from evenhand.runs.batch.submitting import BatchSubmitter
from evenhand.runs.budget import Budget
from evenhand.runs.executor import RunJudge
from evenhand.runs.health import UnreadMonitor
from evenhand.runs.options import RunOptions
from evenhand.runs.progress import Observer
from evenhand.runs.stop import Stop
from evenhand.store import Store
from evenhand.store.batches import BatchRecord

# One judge's way through a run by the batch.
#
# Look at what is at the provider, collect what has ended, settle what that allows, submit what is
# wanted next; and again, until nothing is wanted and nothing is there. All of it is in the store:
# whoever takes over, on whatever machine, begins with the same look.


class BatchQueue:
    def __init__(self, course: BatchContext, unread: UnreadMonitor) -> None:
        self._course = course
        self._tending = BatchPoller(course)
        self._settling = BatchSettler(
            course.run_id,
            course.seat,
            course.api,
            store=course.store,
            stop=course.stop,
            unread=unread,
        )
        self._walking = BatchSubmitter(course, self._tending, self._settling)

    @property
    def host(self) -> str:
        return self._course.host

    @property
    def in_flight(self) -> int:
        return self._tending.in_flight

    @property
    def at_provider(self) -> tuple[BatchRecord, ...]:
        return self._tending.at_provider

    async def run(self) -> None:
        course = self._course
        for batch in await self._tending.unfinished():
            course.allowance.found(batch)
        while not course.is_stopped:
            collected = await self._tending.look()
            submitted = await self._walk(collected)
            there = await self._tending.unfinished()
            if there or course.looks_everywhere or course.crowded:
                await course.waiting.rest(at_most_s=self._tending.certain_in_s)
                if not there and course.crowded:
                    # Somebody else fills it: try again, with less.
                    course.crowded, course.looks_everywhere = False, True
            elif not submitted and not await self._walking.walk():
                self._end()
                return

    async def _walk(self, collected: list[BatchRecord]) -> bool:
        """Where something may have changed; whether anything was submitted."""
        if self._course.looks_everywhere:
            self._course.looks_everywhere = False
            return await self._walking.walk()
        submitted = False
        for batch in collected:
            submitted |= await self._walking.walk(batch.first_number - 1, batch.last_number)
        return submitted

    def _end(self) -> None:
        """Nothing is wanted, or nothing may be asked, and nothing is at the provider."""
        course = self._course
        if self._walking.capped is not None:
            course.allowance.stop(course.stop, self._walking.capped)
        failure = self._settling.last_failure
        if failure is not None and not self._settling.proven:
            what = f"{course.seat.judge.name} answered nothing, and nothing was judged"
            failure.message = f"{what}: {failure.message}"
            failure.args = (failure.message,)
            course.stop.ask("judge", failure)


# The executor of `--batch`: each judge's pending pairs through its provider's batch API.


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
        self._allowance = BatchBudget(options, budget)
        self._timing = timing or BatchTiming.looking_every(options.batch_poll_s)
        self._lanes: list[BatchQueue] = []

    @property
    def in_flight(self) -> int:
        return sum(lane.in_flight for lane in self._lanes)

    async def execute(self, run_id: int, seats: tuple[RunJudge, ...]) -> None:
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

    def _lane(self, run_id: int, seat: RunJudge, api: BatchApi) -> BatchQueue:
        return BatchQueue(
            BatchContext(
                run_id,
                seat,
                api,
                store=self._store,
                stop=self._stop,
                observer=self._observer,
                allowance=self._allowance,
                timing=self._timing,
                waiting=PollTimer(self._timing, self._stop),
                limits=api.limits,
                giving_up=self._options.cancel_batches,
            ),
            UnreadMonitor(seat.judge, self._stop, keep_going=self._options.keep_going_unread),
        )
