"""Pending pairs judged in this process: each call passes its judge's gate and is retried; passes
and verdicts go to the writer.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from evenhand.contract import Order
from evenhand.errors import (
    EvenhandError,
    JudgeError,
)
from evenhand.judges.prepared import writer_of
from evenhand.judges.prices import Price, cost_usd
from evenhand.judges.protocol import Completion, Judge, JudgeCall, Traits
from evenhand.judges.retry import RetryPolicy, ask_with_retries
from evenhand.judging.comparison import Failed, judge_pair
from evenhand.judging.decision import PassResult
from evenhand.judging.preparation import (
    Artefacts,
    ArtefactsFailed,
    GeneratedAnswer,
    obtain,
    wanted_before,
)
from evenhand.messages import Message
from evenhand.runs.budget import Budget
from evenhand.runs.estimate import tokens_of
from evenhand.runs.executor import RunContext, RunJudge
from evenhand.runs.health import JudgeHealth, UnreadMonitor
from evenhand.runs.pacing import LONGEST_PAUSE_S, AdaptiveLimit, CallGate, Pace, Stopped
from evenhand.runs.telemetry import Telemetry
from evenhand.runs.writer import AnswerWriter, Writer
from evenhand.store import FailedPass, NewPass, NewVerdict, Settled, WorkItem

_FIRST_LIMIT, _HIGHEST_LIMIT = 8, 512
_RATE_LIMITED_ATTEMPTS = 30


class WrappedJudge:
    """Delegates to another judge."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.name: str = judge.name
        self.traits: Traits = judge.traits
        self.artefact_writer = writer_of(judge)

    async def ask(self, call: JudgeCall) -> Completion:
        return await self._judge.ask(call)

    async def close(self) -> None:
        await self._judge.close()


class GatedJudge(WrappedJudge):
    """One attempt per question, when the gate and budget allow."""

    def __init__(
        self,
        judge: Judge,
        gate: CallGate,
        budget: Budget,
        *,
        price: Price | None,
        writing_price: Price | None = None,
    ) -> None:
        super().__init__(judge)
        self._gate = gate
        self._budget = budget
        self._price = price
        self._writing_price = writing_price

    async def ask(self, call: JudgeCall) -> Completion:
        tokens = 0.0
        if self._gate.counts_tokens:
            tokens = sum(tokens_of(message.text) for message in call.messages)
        turn = await self._gate.enter(tokens)
        if not self._budget.begin():
            self._gate.left(turn)
            raise Stopped
        try:
            completion = await self._judge.ask(call)
        except JudgeError as error:
            self._budget.end(requests=error.requests, answered=False)
            self._gate.failed(turn, error)
            raise
        except Stopped:  # it waited for leave to ask, and the run ended before
            self._budget.end(requests=0, answered=False)
            self._gate.left(turn)
            raise
        except BaseException:
            self._budget.end(requests=1, answered=False)
            self._gate.left(turn)
            raise
        usage = completion.usage
        cost, traits, price = None, self.traits, self._price
        if call.artefact is not None:
            # The price list's price for the writer, which knows it; else the caller's.
            cost, traits, price = usage.cost_usd, self.artefact_writer.traits, self._writing_price
        if cost is None:
            cost = cost_usd(usage, model=completion.model, traits=traits, price=price)
        if cost is not None:
            usage = usage.model_copy(update={"cost_usd": cost})
            completion = replace(completion, usage=usage)
        self._budget.end(
            # A replayed answer counts as a call, although no request was made.
            requests=max(1, usage.requests),
            cost_usd=cost,
            # A baseline uses no tokens.
            input_tokens=0 if traits.free else usage.input_tokens,
            output_tokens=0 if traits.free else usage.output_tokens,
        )
        self._gate.answered(
            turn,
            used=_both(usage.input_tokens, usage.output_tokens),
            output=usage.output_tokens,
            requests=usage.requests,
        )
        if completion.pause_s:
            self._gate.pause(completion.pause_s)
        return completion


class PatientJudge(WrappedJudge):
    """Retries what is worth retrying, longer under rate limits; a final failure counts against the
    judge's health."""

    def __init__(
        self,
        gated: GatedJudge,
        gate: CallGate,
        health: JudgeHealth,
        *,
        retry: RetryPolicy,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(gated)
        self._gate = gate
        self._health = health
        self._retry = replace(
            retry,
            patience_s=LONGEST_PAUSE_S,
            limited_attempts=max(retry.attempts, _RATE_LIMITED_ATTEMPTS),
        )
        self._telemetry = telemetry

    async def ask(self, call: JudgeCall) -> Completion:
        with self._telemetry.call(self.name, call) as span:
            try:
                completion = await ask_with_retries(
                    self._judge, call, self._retry, sleep=self._gate.rest
                )
            except JudgeError as error:
                self._health.failed(error, in_flight=self._gate.limit)
                raise
            self._health.answered()
            span.answered(completion)
            return completion

    @contextlib.contextmanager
    def storing(self) -> Iterator[None]:
        """Hold a gate slot while the answer is stored."""
        self._gate.answer_waits()
        try:
            yield
        finally:
            self._gate.answers_stored(1)


class StoredArtefacts(Artefacts):
    """Holds a gate slot while an artefact is stored, as for a pass."""

    async def _keep(self, made: GeneratedAnswer, judge: Judge) -> None:
        storing = judge.storing() if isinstance(judge, PatientJudge) else contextlib.nullcontext()
        with storing:
            await super()._keep(made, judge)


def _both(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


# Recently judged pairs: one with the same content may have been fetched before. More than can be in
# flight and fetched at any limit.
_RECENT = 16_384
_ONCE = RetryPolicy(attempts=1)
_LOOK_AWAITED_S = 0.02


class JudgeQueue:
    """One judge's pairs: taken from its supply, judged, and handed to the writer."""

    def __init__(
        self,
        run_id: int,
        run_judge: RunJudge,
        context: RunContext,
        *,
        pace: Pace,
        writer: Writer,
        artefacts: Artefacts,
        telemetry: Telemetry,
    ) -> None:
        judge, stop, options = run_judge.judge, context.stop, context.options
        self._run_id = run_id
        self._judge_id = run_judge.judge_id
        self._supply = run_judge.supply
        self._count = run_judge.count
        self._store = context.store
        self._writer = writer
        self._telemetry = telemetry
        self.gate = CallGate(adaptive_limit(judge, options.concurrency), pace, clock=time.monotonic)
        stop.listen(self.gate.stop)
        self._health = JudgeHealth(judge.name, stop, proven=run_judge.count.proven)
        self._unread = UnreadMonitor(judge, stop, keep_going=options.keep_going_unread)
        self._give_up_s = options.gives_up_after_s
        self._judge = PatientJudge(
            GatedJudge(
                judge,
                self.gate,
                context.budget,
                price=run_judge.price,
                writing_price=run_judge.writing_price,
            ),
            self.gate,
            self._health,
            retry=run_judge.config.retry_policy,
            telemetry=telemetry,
        )
        # That judge retries by itself, at its gate.
        self._config = replace(run_judge.config, retry=_ONCE)
        self._artefacts = artefacts
        self._asking: dict[int, asyncio.Event | None] = {}
        self._recent: dict[int, None] = {}  # in the order in which they were judged
        self._active: set[asyncio.Task[None]] = set()
        self._place = asyncio.Event()
        # Failures wait here until the judge answers: a dead judge fails every pair, whatever the
        # pair.
        self._doubtful: list[tuple[NewVerdict, list[NewPass]]] = []
        self._broken: BaseException | None = None

    @property
    def pairs_open(self) -> int:
        """Begun and not finished."""
        return len(self._active)

    async def run(self) -> None:
        """Until nothing is pending, or after a stop once calls in flight are done."""
        try:
            async with self._health.giving_up(self.gate, after_s=self._give_up_s):
                await self._begin_all()
                while self._active:
                    await asyncio.wait(self._active)
            if self._broken is not None:
                raise self._broken
        except BaseException:
            for task in self._active:
                task.cancel()
            await asyncio.gather(*self._active, return_exceptions=True)
            raise
        finally:
            self._supply.close()
        if not self.gate.is_stopped:
            self._end()

    async def _begin_all(self) -> None:
        drained = False
        while True:
            # Taken as late as possible, since the choice depends on what is known.
            await self._room()
            works = await self._supply.take(limit=self.gate.limit)
            if not works:
                # Calls in flight may yet show that there is more to ask.
                if drained or self.gate.is_stopped or self._broken is not None:
                    return
                await self._drain()
            drained = not works
            for work in works:
                await self._room()
                if self.gate.is_stopped or self._broken is not None:
                    return
                task = asyncio.create_task(self._judged(work))
                self._active.add(task)
                task.add_done_callback(self._finished)
                # Both its passes are queued before the next pair's.
                await asyncio.sleep(0)

    async def _drain(self) -> None:
        while self._active:
            await asyncio.wait(self._active)
        await self._writer.flush()

    async def _room(self) -> None:
        while len(self._active) >= self._most_at_once:
            self._place.clear()
            if not self._supply.awaits_looks:
                await self._place.wait()
                continue
            if self.gate.is_stopped or self._broken is not None:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._place.wait(), _LOOK_AWAITED_S)
        await self._writer.room()

    @property
    def _most_at_once(self) -> int:
        """A sequential judge gets both passes of a pair in a row."""
        if not self._judge.traits.parallel:
            return 1
        return self._supply.open_at_most(self.gate.limit, done=self._count.done)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._active.discard(task)
        self._place.set()
        if not task.cancelled() and task.exception() is not None:
            self._broken = task.exception()
            self.gate.stop()

    async def _judged(self, work: WorkItem) -> None:
        while work.pair_id in self._asking:
            await self._same_pair(work.pair_id)
        self._asking[work.pair_id] = None
        try:
            if work.pair_id in self._recent:
                await self._writer.flush()
                work = await asyncio.to_thread(self._again, work)
            await self._settled(work)
        except Stopped:
            pass  # it stays pending, and its passes so far are kept
        finally:
            self._recent[work.pair_id] = None
            if len(self._recent) > _RECENT:
                del self._recent[next(iter(self._recent))]
            waiting = self._asking.pop(work.pair_id)
            if waiting is not None:
                waiting.set()

    async def _same_pair(self, pair_id: int) -> None:
        """Few pairs repeat in their data, so only those have a lock."""
        waiting = self._asking[pair_id]
        if waiting is None:
            waiting = self._asking[pair_id] = asyncio.Event()
        await waiting.wait()

    def _again(self, work: WorkItem) -> WorkItem:
        """The same item with its current passes."""
        items = self._store.work.pending(
            self._run_id, self._judge_id, after=work.number - 1, limit=1
        )
        return items[0]

    async def _settled(self, work: WorkItem) -> None:
        keeper = _StoredPasses(self, work)
        with self._telemetry.pair(work.key) as span:
            judged = await judge_pair(
                work.pair, self._judge, self._config, keeper=keeper, artefacts=self._artefacts
            )
            if not isinstance(judged, Failed):
                span.set(**{"evenhand.outcome": judged.decision.outcome.value})
                self._write(self._verdict(work, judged))
                return
            failure, error = judged
            span.set(**{"evenhand.error": error.kind})
        if not isinstance(error, JudgeError):
            self._write(self._verdict(work, failure))
            return
        self._doubtful.append((self._verdict(work, failure), keeper.failures))
        if self._health.blames_the_pair(error):
            self._believe()

    def _believe(self) -> None:
        """The judge answers, so its earlier failures are final."""
        for verdict, passes in self._doubtful:
            for failed in passes:
                self._writer.add_pass(failed)
            self._write(verdict)
        self._doubtful.clear()

    def _end(self) -> None:
        """All pairs were tried; a judge that answered others has failed these for good."""
        if self._health.answered_here:
            self._believe()
        elif self._doubtful:
            self._health.never_answered()

    def _verdict(self, work: WorkItem, settled: Settled) -> NewVerdict:
        return NewVerdict(self._run_id, work.number, self._judge_id, settled)

    def _write(self, verdict: NewVerdict) -> None:
        self._writer.add_verdict(verdict, self._count.stored)
        self._count.settled(verdict.settled)

    def new_pass(self, work: WorkItem, made: PassResult | FailedPass) -> NewPass:
        return NewPass(work.pair_id, self._judge_id, self._run_id, made)

    def store_pass(self, work: WorkItem, made: PassResult) -> None:
        self.gate.answer_waits()
        self._writer.add_pass(self.new_pass(work, made), self.gate.answers_stored)
        self._count.made(made)
        self._unread.answered(made, in_flight=self.gate.limit)
        self._believe()

    def reused(self) -> None:
        self._count.reused += 1
        self._health.proven = True


class PreparingQueue(JudgeQueue):
    """Prepares texts and judges nothing, for executors that judge elsewhere."""

    async def _settled(self, work: WorkItem) -> None:
        pair, config = work.pair, self._config
        by_rule = config.ties_by_rule(pair, self._judge.traits)
        if by_rule or not work.lacks_passes(config.samples_per_order):
            return
        with contextlib.suppress(ArtefactsFailed):
            wanted = wanted_before(pair, config, config.prepares(self._judge.traits))
            await obtain(wanted, self._judge, config, self._artefacts)


class _StoredPasses:
    """One pair's stored passes, and where new ones go."""

    def __init__(self, queue: JudgeQueue, work: WorkItem) -> None:
        self._queue = queue
        self._work = work
        self.failures: list[NewPass] = []

    def recall(self, order: Order, sample: int) -> PassResult | None:
        made = self._work.recall(order, sample)
        if made is not None:
            self._queue.reused()
        return made

    def keep(self, made: PassResult) -> None:
        self._queue.store_pass(self._work, made)

    def failed(self, order: Order, sample: int, error: JudgeError) -> None:
        failed = FailedPass.of(order, sample, error)
        self.failures.append(self._queue.new_pass(self._work, failed))


class LocalExecutor:
    def __init__(
        self,
        context: RunContext,
        *,
        paces: Sequence[Pace] | None = None,
        queue: type[JudgeQueue] = JudgeQueue,
    ) -> None:
        """`paces` by judge, if this process does not keep the options' own."""
        self._context = context
        self._paces = paces
        self._queue = queue
        self._queues: list[JudgeQueue] = []

    @property
    def in_flight(self) -> int:
        return sum(queue.gate.in_flight for queue in self._queues)

    @property
    def limit(self) -> int:
        return sum(queue.gate.limit for queue in self._queues)

    @property
    def paused_s(self) -> float:
        return max((queue.gate.paused_s() for queue in self._queues), default=0.0)

    @property
    def trouble(self) -> str | None:
        return trouble_of(queue.gate for queue in self._queues)

    def account(self) -> tuple[str, ...]:
        return ()

    @property
    def waiting(self) -> list[int]:
        """The number of calls waiting, by judge."""
        return [queue.gate.waiting for queue in self._queues]

    @property
    def pairs_open(self) -> int:
        return sum(queue.pairs_open for queue in self._queues)

    async def execute(self, run_id: int, run_judges: tuple[RunJudge, ...]) -> None:
        context, telemetry = self._context, Telemetry.available()
        writer = Writer(context.store, lambda error: context.stop.ask("store", error))
        options = context.options
        paces = self._paces or [Pace(requests=options.rpm, tokens=options.tpm) for _ in run_judges]
        answers = AnswerWriter(context.store, run_id)
        # Judges with another model as their writer share its texts.
        shared = {judge.writer: StoredArtefacts(judge.writer, answers) for judge in run_judges}
        self._queues = [
            self._queue(
                run_id,
                run_judge,
                context,
                pace=pace,
                writer=writer,
                artefacts=shared[run_judge.writer],
                telemetry=telemetry,
            )
            for run_judge, pace in zip(run_judges, paces, strict=True)
        ]
        try:
            with telemetry.run(str(run_id)):
                running = [asyncio.create_task(queue.run()) for queue in self._queues]
                try:
                    await asyncio.gather(*running)
                finally:
                    for task in running:
                        task.cancel()
                    await asyncio.gather(*running, return_exceptions=True)
        except EvenhandError as error:
            # A failing store stops the run; what it holds stays.
            context.stop.ask("store", error)
        finally:
            try:
                await writer.close()
            except EvenhandError as error:
                context.stop.ask("store", error)


def trouble_of(gates: Iterable[CallGate]) -> Message | None:
    """That of the judge or model without an answer for longest."""
    troubles = [trouble for gate in gates if (trouble := gate.trouble()) is not None]
    return max(troubles, key=lambda each: each.since_s).line if troubles else None


def adaptive_limit(judge: Judge, concurrency: int | None) -> AdaptiveLimit:
    if not judge.traits.parallel:
        return AdaptiveLimit(1, 1, insist=True)
    if concurrency is not None:
        return AdaptiveLimit(concurrency, concurrency, insist=True)
    return AdaptiveLimit(_FIRST_LIMIT, _HIGHEST_LIMIT)
