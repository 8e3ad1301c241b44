"""The executor of `--batch`. For each judge: poll, collect, settle, submit, and again until nothing
is wanted and nothing is at the provider.
"""

from __future__ import annotations

import asyncio

from evenhand.errors import CapReached, EvenhandError, JudgeError
from evenhand.judges.batch import BatchApi, batch_api_of
from evenhand.judges.batch.sdk import never_arrived
from evenhand.messages import Message
from evenhand.runs.batch.context import BatchBudget, BatchContext, BatchTiming, PollTimer
from evenhand.runs.batch.polling import BatchPoller
from evenhand.runs.batch.requests import (
    BatchBuilder,
    WantedRequest,
    counted_requests,
)
from evenhand.runs.batch.settlement import BatchSettler
from evenhand.runs.executor import RunContext, RunJudge
from evenhand.runs.health import UnreadMonitor
from evenhand.runs.stop import StoppedBy
from evenhand.store import WorkItem
from evenhand.store.batches import BatchRecord

_TAKEN_AT_ONCE = 256
_RequestKey = tuple[int, str, int, int]  # pair, order, sample, turn


class BatchQueue:
    """One judge's pending pairs: poll, collect, settle, submit, and again until nothing is wanted
    and nothing is at the provider. All of it is in the store: whoever takes over, on whatever
    machine, begins with the same look."""

    def __init__(self, context: BatchContext, unread: UnreadMonitor) -> None:
        self._context = context
        self._poller = BatchPoller(context)
        self._settler = BatchSettler(context, unread)
        self._builder = BatchBuilder(context.limits)
        # The same pair may be in the data again: what the builder has is not drafted twice.
        self._drafted: set[_RequestKey] = set()
        self._submitted = self._ever_submitted = False
        self._capped: tuple[StoppedBy, CapReached] | None = None  # on the last walk

    @property
    def host(self) -> str:
        return self._context.host

    @property
    def in_flight(self) -> int:
        return self._poller.in_flight

    @property
    def at_provider(self) -> tuple[BatchRecord, ...]:
        return self._poller.at_provider

    async def run(self) -> None:
        context = self._context
        for batch in await self._poller.unfinished():
            context.batch_budget.reserve(batch)
        while not context.is_stopped:
            collected = await self._poller.look()
            submitted = await self._walk(collected)
            there = await self._poller.unfinished()
            if there or context.looks_everywhere or context.crowded:
                await context.waiting.rest(at_most_s=self._poller.certain_in_s)
                if not there and context.crowded:
                    # Somebody else fills it: try again, with less.
                    context.crowded, context.looks_everywhere = False, True
            elif not submitted and not await self._walk_over():
                self._end()
                return

    async def _walk(self, collected: list[BatchRecord]) -> bool:
        """Where something may have changed; whether anything was submitted."""
        if self._context.looks_everywhere:
            self._context.looks_everywhere = False
            return await self._walk_over()
        submitted = False
        for batch in collected:
            submitted |= await self._walk_over(batch.first_number - 1, batch.last_number)
        return submitted

    def _end(self) -> None:
        """Nothing is wanted, or nothing may be asked, and nothing is at the provider."""
        context = self._context
        if self._capped is not None:
            context.stop.ask(*self._capped)
        failure = self._settler.last_failure
        if failure is not None and not self._settler.proven:
            what = f"{context.run_judge.judge.name} answered nothing, and nothing was judged"
            failure.reword(f"{what}: {failure.message}")
            context.stop.ask("judge", failure)

    async def _walk_over(self, after: int = 0, up_to: int | None = None) -> bool:
        """Over the pairs of these numbers. Whether anything was submitted."""
        self._submitted, self._capped = False, None
        unproven = not self._settler.proven
        await self._over(after, up_to)
        if unproven and self._settler.proven and self._settler.doubted:
            # What failed before the first answer was seen can be believed now.
            await self._over(after, up_to)
        return self._submitted

    async def _over(self, after: int, up_to: int | None) -> None:
        context = self._context
        self._settler.doubted = 0
        self._builder = BatchBuilder(context.limits)
        while not context.is_stopped:
            works = await asyncio.to_thread(
                context.store.pending,
                context.run_id,
                context.run_judge.judge_id,
                after=after,
                limit=_TAKEN_AT_ONCE,
                up_to=up_to,
            )
            if not works:
                break
            after = works[-1].number
            if not await self._draft(await self._settler.settle(works)):
                return
        if len(self._builder):
            await self._submit()

    async def _draft(self, lacking: list[tuple[WorkItem, list[WantedRequest]]]) -> bool:
        """Whether there is a use in going on."""
        looked_at: set[_RequestKey] = set()
        for work, wants in lacking:
            for wanted in wants:
                key = (work.pair_id, wanted.order, wanted.sample, wanted.turn)
                if key in looked_at or key in self._drafted:
                    continue
                if not self._builder.has_room(wanted) and not await self._submit():
                    return False
                allowed, expected = self._allowed(work, wanted)
                if allowed:
                    self._builder.add(work, wanted, reserved_usd=expected)
                    self._drafted.add(key)
                    looked_at.add(key)
        return True

    def _allowed(self, work: WorkItem, wanted: WantedRequest) -> tuple[bool, float | None]:
        """Whether it may be asked, and what it may cost."""
        context = self._context
        if self._capped is not None or not context.may_submit:
            return False, None
        expected = context.batch_budget.expected_usd(context.run_judge, work, wanted.input_tokens)
        self._capped = context.batch_budget.take(expected)
        return self._capped is None, expected

    async def _submit(self) -> bool:
        """Whether it went: not where the provider takes nothing now."""
        context, batches = self._context, self._context.store.batches
        builder, self._builder = self._builder, BatchBuilder(context.limits)
        self._drafted.clear()
        new, asked, draft = builder.closed(context.run_id, context.run_judge.judge_id)
        context.batch_budget.closed(len(builder), builder.reserved_usd)
        batch = await asyncio.to_thread(batches.intend, new, asked)
        context.batch_budget.submitting(batch)
        sent = False

        async def sending() -> None:
            nonlocal sent
            await asyncio.to_thread(batches.sending, batch.id)
            sent = True

        try:
            provider_id = await context.api.submit(draft, sending)
        except JudgeError as error:
            context.looks_everywhere = True
            if not sent or never_arrived(error):
                await self._poller.drop(batch)
            context.failed(error)
            return False
        context.waiting.worked()
        await self._poller.opened(batch, provider_id)
        notice = f"batch {provider_id} with {counted_requests(batch.requests)} is at {context.host}"
        if not self._ever_submitted:
            notice += (
                "; answers take minutes to a day, and Ctrl-C leaves it there to be collected later"
            )
        context.observer.announce(notice)
        self._submitted = self._ever_submitted = True
        return True


class BatchExecutor:
    limit = 0  # none of ours: the provider takes what it takes
    paused_s = 0.0

    def __init__(self, context: RunContext) -> None:
        options = context.options
        self._run = context
        self._options = options
        self._stop = context.stop
        self._batch_budget = BatchBudget(options, context.budget)
        self._timing = BatchTiming.looking_every(options.batch_poll_s)
        self._queues: list[BatchQueue] = []

    @property
    def in_flight(self) -> int:
        return sum(queue.in_flight for queue in self._queues)

    async def execute(self, run_id: int, run_judges: tuple[RunJudge, ...]) -> None:
        apis = [batch_api_of(run_judge.judge) for run_judge in run_judges]
        self._queues = [
            self._queue(run_id, run_judge, api)
            for run_judge, api in zip(run_judges, apis, strict=True)
        ]
        running = [asyncio.create_task(queue.run()) for queue in self._queues]
        try:
            await asyncio.gather(*running)
        except EvenhandError as error:
            # Providers' faults are the queues' own; this is the store's.
            self._stop.ask("store", error)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for api in apis:
                await api.close()

    def account(self) -> tuple[str, ...]:
        """What is left behind, for the summary."""
        notes = [Message("runs.batch_rates")] if self._run.budget.cost_usd else []
        if self._options.cancel_batches:
            notes.append(Message("runs.batches_cancelled"))
        for queue in self._queues:
            there = [batch for batch in queue.at_provider if batch.state == "open"]
            if there:
                requests = sum(batch.requests for batch in there)
                values = {"n": len(there), "requests": requests, "host": queue.host}
                notes.append(Message("runs.batches_stay", **values))
            unseen = sum(b.requests for b in queue.at_provider if b.state == "intended")
            if unseen:
                notes.append(Message("runs.batch_unknown", requests=unseen, host=queue.host))
        return tuple(notes)

    def _queue(self, run_id: int, run_judge: RunJudge, api: BatchApi) -> BatchQueue:
        return BatchQueue(
            BatchContext(
                run_id,
                run_judge,
                api,
                store=self._run.store,
                stop=self._stop,
                observer=self._run.observer,
                batch_budget=self._batch_budget,
                timing=self._timing,
                waiting=PollTimer(self._timing, self._stop),
                limits=api.limits,
                giving_up=self._options.cancel_batches,
            ),
            UnreadMonitor(run_judge.judge, self._stop, keep_going=self._options.keep_going_unread),
        )
