"""The executor of `--batch`."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.contract import Order
from evenhand.errors import (
    CapReached,
    EvenhandError,
    JudgeAuthentication,
    JudgeError,
    JudgeQuotaExceeded,
)
from evenhand.judges.batch import BatchApi, batch_api_of
from evenhand.judges.batch.sdk import never_arrived
from evenhand.judges.retry import RetryPolicy
from evenhand.judging.comparison import Failed, judge_pair
from evenhand.judging.decision import PassResult
from evenhand.judging.preparation import Artefacts
from evenhand.messages import Message, chained
from evenhand.runs.batch.context import BatchBudget, BatchContext, BatchTiming, PollTimer
from evenhand.runs.batch.polling import BatchPoller
from evenhand.runs.batch.requests import (
    AnswerPending,
    BatchBuilder,
    CollectingJudge,
    PageArtefacts,
    WantedRequest,
)
from evenhand.runs.executor import RunContext, RunJudge
from evenhand.runs.health import UnreadMonitor, example_of
from evenhand.runs.stop import StoppedBy
from evenhand.store import FailedPass, NewPass, NewVerdict, Settled, WorkItem
from evenhand.store.answers import NewAnswer
from evenhand.store.batches import BatchRecord, PassAsked

_TAKEN_AT_ONCE = 256
_RequestKey = tuple[int, str, int, int]  # pair or artefact, order or key, sample, turn
_ONCE = RetryPolicy(attempts=1)
_OF_THE_ACCOUNT = (JudgeAuthentication, JudgeQuotaExceeded)
_PassKey = tuple[int, str, int]  # pair, order, sample


@dataclass(slots=True)
class _Written:
    """What one transaction stores."""

    passes: list[NewPass]
    verdicts: list[NewVerdict]
    settled: list[PassAsked]


class BatchSettler:
    """Settles one judge's pending pairs as far as their answers have arrived."""

    def __init__(self, context: BatchContext, unread: UnreadMonitor) -> None:
        run_judge = context.run_judge
        self._run_id = context.run_id
        self._run_judge = run_judge
        self._api = context.api
        self._store = context.store
        self._stop = context.stop
        self._unread = unread
        self._attempts = run_judge.config.retry_policy.attempts
        self._config = replace(run_judge.config, retry=_ONCE)
        # Whether the judge has answered; until then its failures are not blamed on pairs.
        self.proven = run_judge.count.proven
        self.doubted = 0  # pairs that wait for that
        self.last_failure: JudgeError | None = None
        # Passes stored by this command, of pairs without a verdict.
        self._own: set[_PassKey] = set()
        self._unread_once: set[_PassKey] = set()  # and told to the watch

    async def settle(self, works: Sequence[WorkItem]) -> list[tuple[WorkItem, list[WantedRequest]]]:
        """Store these pairs' results in one transaction; returns what they still need."""
        judge_id = self._run_judge.judge_id
        pair_ids = {work.pair_id for work in works}
        open_requests = await asyncio.to_thread(
            self._store.batches.open_requests, self._run_id, judge_id, pair_ids
        )
        page = PageArtefacts(
            self._store,
            self._run_id,
            judge_id,
            config=self._config,
            writer=self._run_judge.writer,
        )
        await page.look_up(works, self._run_judge.judge.traits)
        artefacts = Artefacts(self._run_judge.writer, page)
        written = _Written([], [], [])
        lacking: list[tuple[WorkItem, list[WantedRequest]]] = []
        for work in works:
            judge = CollectingJudge(
                self._run_judge.judge,
                self._api,
                open_requests.get(work.pair_id, ()),
                page,
                attempts=self._attempts,
                price=self._run_judge.price,
            )
            await self._decide(work, judge, artefacts, written)
            self._watch(work, judge)
            if judge.wanted:
                lacking.append((work, judge.wanted))
        answers = [NewAnswer(self._run_id, made) for made in page.made]
        written.settled += [page.settled(made.key) for made in page.made]
        if written.passes or written.verdicts or answers:
            await asyncio.to_thread(
                self._store.work.write,
                written.passes,
                written.verdicts,
                answers=answers,
                settled=written.settled,
            )
            for verdict in written.verdicts:
                self._run_judge.count.settled(verdict.settled)
            self._run_judge.count.stored(len(written.verdicts))
        return lacking

    async def _decide(
        self, work: WorkItem, judge: CollectingJudge, artefacts: Artefacts, written: _Written
    ) -> None:
        keeper = _StoredPasses(work)
        settled: Settled | None = None
        error: Exception | None = None
        try:
            judged = await judge_pair(
                work.pair, judge, self._config, keeper=keeper, artefacts=artefacts
            )
        except AnswerPending:
            pass
        else:
            settled, error = judged if isinstance(judged, Failed) else (judged, None)
        self.proven = self.proven or judge.answered or bool(keeper.recalled)
        failed = keeper.failed_passes
        if isinstance(error, JudgeError):
            self.last_failure = error
            if isinstance(error, _OF_THE_ACCOUNT):
                self._stop.ask("judge", error)
                settled = None
            elif not self.proven:
                self.doubted += 1
                settled = None
        if settled is None:
            failed = []  # nothing is settled by them yet
        else:
            written.verdicts.append(
                NewVerdict(self._run_id, work.number, self._run_judge.judge_id, settled)
            )
            self._count_reused(work, keeper)
            # Asked anew when the pair is retried.
            written.settled += judge.failed_artefacts
        for made in keeper.made:
            self._file(work, made, written)
        for without in failed:
            self._file(work, without, written)
        if settled is None:
            self._own.update((work.pair_id, made.order, made.sample) for made in keeper.made)

    def _file(self, work: WorkItem, made: PassResult | FailedPass, written: _Written) -> None:
        judge_id = self._run_judge.judge_id
        written.passes.append(NewPass(work.pair_id, judge_id, self._run_id, made))
        written.settled.append(
            PassAsked(self._run_id, judge_id, work.pair_id, made.order, made.sample)
        )
        if not isinstance(made, FailedPass):
            self._run_judge.count.made(made)
            key = (work.pair_id, made.order, made.sample)
            if key not in self._unread_once or made.unread is None:
                self._unread.answered(made)

    def _watch(self, work: WorkItem, judge: CollectingJudge) -> None:
        """An answer counts as unread before its repair: a batch's repairs are all asked at once,
        and would double the cost before the first is seen."""
        for wanted in judge.wanted:
            key = (work.pair_id, wanted.order, wanted.sample)
            if wanted.repairs is not None and key not in self._unread_once:
                self._unread_once.add(key)
                self._unread.record(
                    Message(
                        "runs.unread_example",
                        answer=example_of(wanted.repairs),
                        reason=Message("runs.before_repair"),
                    )
                )

    def _count_reused(self, work: WorkItem, keeper: _StoredPasses) -> None:
        for order, sample in keeper.recalled:
            key = (work.pair_id, order, sample)
            if key in self._own:
                self._own.discard(key)
            else:
                self._run_judge.count.reused += 1


class _StoredPasses:
    """One pair's passes: those in the store, and new ones."""

    def __init__(self, work: WorkItem) -> None:
        self._work = work
        self.made: list[PassResult] = []
        self.recalled: list[tuple[Order, int]] = []
        self.failed_passes: list[FailedPass] = []

    def recall(self, order: Order, sample: int) -> PassResult | None:
        made = self._work.recall(order, sample)
        if made is not None:
            self.recalled.append((order, sample))
        return made

    def keep(self, made: PassResult) -> None:
        self.made.append(made)

    def failed(self, order: Order, sample: int, error: JudgeError) -> None:
        self.failed_passes.append(FailedPass.of(order, sample, error))


class BatchQueue:
    """One judge's pending pairs: poll, collect, settle, submit, until nothing is wanted and nothing
    is at the provider. All state is in the store, so any process can take over."""

    def __init__(self, context: BatchContext, unread: UnreadMonitor) -> None:
        self._context = context
        self._poller = BatchPoller(context)
        self._settler = BatchSettler(context, unread)
        self._builder = BatchBuilder(context.limits)
        # Repeated pairs must not draft a request twice.
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
                    # Another process is filling the provider: try again with less.
                    context.crowded, context.looks_everywhere = False, True
            elif not submitted and not await self._walk_over():
                self._end()
                return

    async def _walk(self, collected: list[BatchRecord]) -> bool:
        """Go through pairs that may have changed; whether anything was submitted."""
        if self._context.looks_everywhere:
            self._context.looks_everywhere = False
            return await self._walk_over()
        submitted = False
        for batch in collected:
            submitted |= await self._walk_over(batch.first_number - 1, batch.last_number)
        return submitted

    def _end(self) -> None:
        """Nothing is at the provider, and nothing is wanted or may be asked."""
        context = self._context
        if self._capped is not None:
            context.stop.ask(*self._capped)
        failure = self._settler.last_failure
        if failure is not None and not self._settler.proven:
            judge = context.run_judge.judge.name
            failure.reword(Message("runs.batch_never_answered", judge=judge, error=failure.message))
            context.stop.ask("judge", failure)

    async def _walk_over(self, after: int = 0, up_to: int | None = None) -> bool:
        """Over these pairs by number. Whether anything was submitted."""
        self._submitted, self._capped = False, None
        unproven = not self._settler.proven
        await self._over(after, up_to)
        if unproven and self._settler.proven and self._settler.doubted:
            # Failures before the first answer can be trusted now.
            await self._over(after, up_to)
        return self._submitted

    async def _over(self, after: int, up_to: int | None) -> None:
        context = self._context
        self._settler.doubted = 0
        self._builder = BatchBuilder(context.limits)
        while not context.is_stopped:
            works = await asyncio.to_thread(
                context.store.work.pending,
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
        """Whether to go on."""
        looked_at: set[_RequestKey] = set()
        for work, wants in lacking:
            for wanted in wants:
                key = (wanted.filed_under(work), wanted.order, wanted.sample, wanted.turn)
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
        """Whether it may be asked, and its maximum cost."""
        context = self._context
        if self._capped is not None or not context.may_submit:
            return False, None
        expected = context.batch_budget.expected_usd(
            context.run_judge, work, wanted.input_tokens, wanted.artefact
        )
        self._capped = context.batch_budget.take(expected)
        return self._capped is None, expected

    async def _submit(self) -> bool:
        """Whether it was sent; not if the provider takes nothing now."""
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
        values = {"batch": provider_id, "n": batch.requests, "host": context.host}
        notices = [Message("runs.batch_submitted", **values)]
        if not self._ever_submitted:
            notices.append(Message("runs.batch_takes_time"))
        context.observer.announce(chained(notices))
        self._submitted = self._ever_submitted = True
        return True


async def _run_each(queues: Sequence[BatchQueue]) -> None:
    for queue in queues:
        await queue.run()


class BatchExecutor:
    limit = 0  # none of ours: the provider takes what it takes
    paused_s = 0.0
    trouble = None

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
        # Judges that share prepared texts take turns, so that each text is requested once.
        in_turn: defaultdict[str, list[BatchQueue]] = defaultdict(list)
        for place, (run_judge, queue) in enumerate(zip(run_judges, self._queues, strict=True)):
            writes = run_judge.config.prepares(run_judge.judge.traits)
            shares = run_judge.writer if writes else f"{place}"
            in_turn[shares].append(queue)
        running = [asyncio.create_task(_run_each(queues)) for queues in in_turn.values()]
        try:
            await asyncio.gather(*running)
        except EvenhandError as error:
            # Queues handle the provider's faults; this one is the store's.
            self._stop.ask("store", error)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for api in apis:
                await api.close()

    def account(self) -> tuple[str, ...]:
        """Notes on what is left behind."""
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
