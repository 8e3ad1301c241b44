"""A run from data to summary: rows → items → estimate → verdicts → summary. The store is the only
state, so an interrupted run resumes from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from evenhand.contract import ErrorBody
from evenhand.contract.codes import OUTCOMES
from evenhand.errors import CapReached, DataUnreachable, EvenhandError, InputError
from evenhand.installation import environment
from evenhand.judges.protocol import news_lines, news_of
from evenhand.messages import Message
from evenhand.runs.budget import Budget
from evenhand.runs.estimate import NOTHING, ArtefactCounts, Estimate, estimate
from evenhand.runs.executor import (
    Executor,
    RunContext,
    RunJudge,
    choose_executor,
    refuse_executor,
)
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import AppliedPrice, JudgePlan, apply_price, find_or_create, refuse_other
from evenhand.runs.progress import JudgeCounts, Observer, PairRate, Progress
from evenhand.runs.sources import Sources, note_on_partners, note_on_repeats, take_in
from evenhand.runs.stop import Stop
from evenhand.runs.stop_rules import DecisionRule, RankingRule, StopRule
from evenhand.runs.summary import JudgeSummary, RunSummary, Spent
from evenhand.store import RunRecord, Store, Tally
from evenhand.store.records import SERVED_MODELS

_REPORTED_EVERY_S = 0.25
_LOOKED_EVERY_S = 0.05
_N = TypeVar("_N", int, float)


@contextlib.asynccontextmanager
async def reporting(progress: Callable[[], Progress], observer: Observer) -> AsyncIterator[None]:
    def report() -> None:
        # An observer may fail, e.g. on a closed pipe; the run goes on.
        with contextlib.suppress(Exception):
            observer.progress(progress())

    async def keep_reporting() -> None:
        while True:
            report()
            await asyncio.sleep(_REPORTED_EVERY_S)

    reports = asyncio.create_task(keep_reporting())
    try:
        yield
    finally:
        reports.cancel()
        await asyncio.gather(reports, return_exceptions=True)
        report()


def _sum(unknown: int, of_passes: _N | None, of_artefacts: _N | None) -> _N | None:
    """None if any part is unknown."""
    if unknown or of_artefacts is None:
        return None
    return of_artefacts if of_passes is None else of_passes + of_artefacts


def _why_capped(stop: Stop, budget: Budget) -> list[str]:
    unpriced = budget.unpriced and stop.by == "max-cost"
    return [stop.error.message] if stop.error is not None and unpriced else []


def error_of(stop: Stop) -> ErrorBody | None:
    """None for a cap, which is not an error."""
    error = stop.error
    if error is None or isinstance(error, CapReached):
        return None
    return ErrorBody(kind=error.kind, message=error.message, retryable=error.retryable)


def _judge_summary(run_judge: RunJudge, tally: Tally) -> JudgeSummary:
    judge = run_judge.judge
    reads_prompt = judge.traits.needs_prompt
    template = (
        run_judge.config.template_for(run_judge.config.mode_for(judge)) if reads_prompt else None
    )
    return JudgeSummary(
        judge=judge.name,
        prompt_version=template.version if template else None,
        **tally.outcomes,
        pending=tally.pending,
        unread_passes=tally.unread_passes,
    )


_ESTIMATED_FROM = 50


async def judge_pairs(
    sources: Sources,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    stop: Stop | None = None,
    observer: Observer | None = None,
    approved: bool = False,
) -> RunSummary:
    """Judge all pending pairs. Failures before the first call are raised; later ones are in the
    summary. `approved`: the observer has seen the estimate."""
    stop = stop or Stop()
    begun = time.monotonic()
    refuse_judges(judges, options)
    refuse_executor(store, judges, options)
    run, created = await asyncio.to_thread(find_or_create, store, sources, judges, options)
    engine = _Engine(run, judges, options, store, stop, observer or Observer())
    try:
        with store.hold(run.id):
            if await engine.take_in(sources):
                await engine.judge(approved=approved)
            return await engine.summary(time.monotonic() - begun)
    except BaseException as error:
        # A connection lost during a long intake keeps the rows read so far.
        if created and not engine.began and not isinstance(error, DataUnreachable):
            await asyncio.to_thread(store.deletion.delete, run.name)
        raise


async def judge_stored(
    run: RunRecord,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    sources: Sources | None = None,
    stop: Stop | None = None,
    observer: Observer | None = None,
) -> RunSummary:
    """The same for a run that the caller holds, with its rows stored or in `sources`. Only the
    run's own judges are accepted."""
    stop = stop or Stop()
    begun = time.monotonic()
    refuse_judges(judges, options)
    refuse_executor(store, judges, options)
    refuse_other(run, judges, options)
    engine = _Engine(run, judges, options, store, stop, observer or Observer())
    if sources is None or (stop.by is None and await engine.take_in(sources)):
        await engine.judge()
    return await engine.summary(time.monotonic() - begun)


def refuse_judges(judges: Sequence[JudgePlan], options: RunOptions) -> None:
    """Refuse duplicate judges, or several for a rule that follows one."""
    keys = [plan.record().key for plan in judges]
    for place, plan in enumerate(judges):
        if keys[place] in keys[:place]:
            raise InputError.of("runs.judge_twice", name=plan.judge.name)
    if len(judges) > 1 and options.pursued:
        option = "until-decided" if options.until_decided else "rank-adaptive"
        raise InputError.of("runs.follows_one_judge", option=option, n=len(judges))


class _Engine:
    def __init__(
        self,
        run: RunRecord,
        judges: Sequence[JudgePlan],
        options: RunOptions,
        store: Store,
        stop: Stop,
        observer: Observer,
    ) -> None:
        self._run = run
        self._judges = judges
        self._options = options
        self._store = store
        self._stop = stop
        self._observer = observer
        self._budget = Budget(stop, max_calls=options.max_calls, max_cost=options.max_cost)
        self._run_judges: tuple[RunJudge, ...] = ()
        self._stop_rule = StopRule(store, run.id)
        self._notes: list[str] = []
        self._most = 0  # judgments that there will be in all, those of earlier commands included
        self.began = False  # a call may have been made

    @property
    def pending(self) -> int:
        return sum(run_judge.count.pending for run_judge in self._run_judges)

    @property
    def to_ask(self) -> int:
        return self._stop_rule.most_pairs(self.pending)

    async def take_in(self, sources: Sources) -> bool:
        """Whether all rows are stored now."""
        store, run = self._store, self._run
        whole = run.intake_done or await self._read_rows(sources)
        models = await asyncio.to_thread(store.runs.first_models, run.id)
        if models is not None and (meaning := sources.meaning(*models)):
            self._notes.append(meaning)
        if not whole:
            self._notes.append(Message("runs.stopped_while_reading"))
        return whole

    async def _read_rows(self, sources: Sources) -> bool:
        store, run = self._store, self._run
        whole = await self._off_the_loop(
            take_in,
            store,
            run.id,
            sources,
            bad_rows=self._options.bad_rows,
            by_id=any(plan.judge.traits.by_id for plan in self._judges),
            stop=self._stop,
            report=self._observer.reading,
        )
        if whole:
            await asyncio.to_thread(store.runs.update, run.id, intake_done=True, state="judging")
        return whole

    async def judge(self, *, approved: bool = False) -> None:
        await self._prepare(approved=approved)
        if self._stop.by is None and self.to_ask:
            await self._execute()

    async def _prepare(self, *, approved: bool) -> None:
        """Everything that can be known before the first call."""
        store, run = self._store, self._run
        await asyncio.to_thread(store.runs.note_environment, run.id, environment())
        prices = [apply_price(plan, self._options) for plan in self._judges]
        self._notes += [each.note for each in prices if each.note]
        for price in prices:
            if price.unknown:
                self._budget.cap_unpriced(self._options.calls_unpriced)
                self._observer.announce(price.note or "")
        if self._options.retry:
            await asyncio.to_thread(store.work.retire, run.id, set(self._options.retry))
            await asyncio.to_thread(store.runs.update, run.id, state="stopped")
        salt = run.plan.get("fresh")
        records = [plan.record(salt=salt) for plan in self._judges]
        ids = [store.runs.add_judge(record) for record in records]
        store.runs.set_judges(run.id, ids)
        self._stop_rule = self._chosen_rule(ids[0])
        reached = await asyncio.to_thread(self._stop_rule.begin)
        self._run_judges = tuple(
            [
                RunJudge(
                    judge_id,
                    plan.judge,
                    plan.config,
                    price.price,
                    await asyncio.to_thread(self._count, plan, judge_id),
                    self._stop_rule.supply(judge_id),
                    plan.writer(salt=salt),
                    price.writing,
                )
                for judge_id, plan, price in zip(ids, self._judges, prices, strict=True)
            ]
        )
        total = sum(run_judge.count.pairs for run_judge in self._run_judges)
        self._most = total - self.pending + self.to_ask
        self._observer.began(run.name, store.address, done=total - self.pending, total=total)
        if reached is not None:
            self._stop.ask(reached)
        elif self.to_ask:
            announced = self._stop_rule.announcement()
            if announced is not None:
                self._observer.announce(announced)
        if reached is None and self.to_ask and not approved:
            estimated = await asyncio.to_thread(self._estimate, prices)
            self._observer.approve(estimated.capped(self._options.max_cost))

    def _count(self, plan: JudgePlan, judge_id: int) -> JudgeCounts:
        tally = self._store.verdicts.tally(self._run.id, judge_id)
        return JudgeCounts(plan.judge.name, tally.pairs, **tally.outcomes)

    def _chosen_rule(self, judge_id: int) -> StopRule:
        store, run_id, options = self._store, self._run.id, self._options
        if options.until_decided is not None:
            # A named concurrency is a wish for speed.
            careful = options.concurrency is None
            return DecisionRule(store, run_id, judge_id, options.until_decided, careful=careful)
        if options.rank_adaptive is not None:
            return RankingRule(store, run_id, judge_id, options.rank_adaptive)
        return self._stop_rule

    async def _off_the_loop(self, work: Callable[..., bool], *given: Any, **named: Any) -> bool:
        """In a thread, which cancellation cannot end, so it is asked to stop."""
        try:
            return await asyncio.to_thread(work, *given, **named)
        except asyncio.CancelledError:
            self._stop.ask("interrupt")
            raise

    def _estimate(self, prices: Sequence[AppliedPrice]) -> Estimate:
        whole = NOTHING
        for run_judge, applied in zip(self._run_judges, prices, strict=True):
            work = self._store.work.pending(
                self._run.id, run_judge.judge_id, after=0, limit=_ESTIMATED_FROM
            )
            counts = None
            if run_judge.config.prepares(run_judge.judge.traits):
                counted = self._store.work.count_pending_texts(self._run.id, run_judge.judge_id)
                counts = ArtefactCounts(*counted)
            expected = estimate(
                self._stop_rule.most_pairs(run_judge.count.pending),
                [item.pair for item in work],
                run_judge.judge,
                run_judge.config,
                prices=applied,
                artefacts=counts,
            )
            if self._options.batch:
                from evenhand.runs.batch.requests import still_to_submit

                expected = still_to_submit(expected, self._store, self._run.id, run_judge.judge_id)
            whole += expected
        return whole

    async def _execute(self) -> None:
        self.began = True
        news = [news_of(run_judge.judge) for run_judge in self._run_judges]
        context = RunContext(self._store, self._options, self._budget, self._stop, self._observer)
        executor = choose_executor(context, self._run, self._judges)
        await asyncio.to_thread(
            self._store.runs.update, self._run.id, state="judging", stopped_by=None
        )
        rate = PairRate(time.monotonic(), self._done)

        def progress() -> Progress:
            return self._progress(executor, rate.at(time.monotonic(), self._done))

        async with reporting(progress, self._observer), self._looking():
            await executor.execute(self._run.id, self._run_judges)
        self._notes += news_lines(news)
        self._notes += executor.account()
        # Also after an interruption: calls in flight have finished since the last look.
        await self._look()

    def _progress(self, executor: Executor, rate: float | None) -> Progress:
        counts = [run_judge.count for run_judge in self._run_judges]
        return Progress(
            run=self._run.name,
            done=self._done,
            total=self._most,
            calls=self._budget.calls,
            in_flight=executor.in_flight,
            limit=executor.limit,
            paused_s=executor.paused_s,
            trouble=executor.trouble,
            pairs_per_s=rate,
            cost_usd=self._budget.known_cost_usd,
            stopping=self._stop.by is not None,
            drawn_orders=self._run.drawn_orders is not None,
            **{
                name: sum(getattr(count, name) for count in counts)
                for name in (*OUTCOMES, "reused", "passes", "unread")
            },
        )

    @contextlib.asynccontextmanager
    async def _looking(self) -> AsyncIterator[None]:
        """Check the stop rule whenever the store has something new."""
        ended = asyncio.Event()

        async def keep_looking() -> None:
            seen = -1
            while self._stop.by is None and not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), _LOOKED_EVERY_S)
                if self._in_store != seen:
                    seen = self._in_store
                    await self._look()

        if not self._stop_rule.may_stop:
            yield
            return
        looking = asyncio.create_task(keep_looking())
        try:
            yield
        finally:
            # Asked to end, not cancelled: a look runs in a thread and must not overlap the next.
            ended.set()
            await looking

    async def _look(self) -> None:
        try:
            reason = await asyncio.to_thread(self._stop_rule.look, self._in_store)
        except EvenhandError as error:
            self._stop.ask("store", error)
            return
        except Exception:
            # A queue may be waiting for a next look, which will not come.
            self._stop.ask("store")
            raise
        if reason is not None:
            self._stop.ask(reason)

    @property
    def _done(self) -> int:
        return sum(run_judge.count.done for run_judge in self._run_judges)

    @property
    def _in_store(self) -> int:
        """The number of verdicts that a look can see."""
        return sum(run_judge.count.in_store for run_judge in self._run_judges)

    async def summary(self, seconds: float) -> RunSummary:
        return await asyncio.to_thread(self._summary, seconds)

    def _summary(self, seconds: float) -> RunSummary:
        """Turn the stored results into the run's summary and state."""
        store, run, run_judges = self._store, self._run, self._run_judges
        stop, budget, stop_rule = self._stop, self._budget, self._stop_rule
        findings, account = stop_rule.result(), stop_rule.account()
        recorded = store.runs.find(run.name)
        of_run = [note_on_repeats(recorded), note_on_partners(recorded)] if recorded else []
        of_run.append(account)
        tally = store.verdicts.tally(run.id)
        judges = [
            # With one judge its tally is the run's: counting a million passes takes seconds.
            _judge_summary(
                run_judge,
                tally if len(run_judges) == 1 else store.verdicts.tally(run.id, run_judge.judge_id),
            )
            for run_judge in run_judges
        ]
        spent, prepared = tally.made, store.answers.spent(run.id, artefacts=True)
        summary = RunSummary(
            run=run.name,
            store=store.address,
            pairs=tally.pairs,
            **tally.outcomes,
            pending=tally.pending,
            skipped_rows=tally.skipped_rows,
            calls=budget.calls,
            reused_passes=sum(run_judge.count.reused for run_judge in run_judges),
            input_tokens=budget.known_input_tokens,
            output_tokens=budget.known_output_tokens,
            cost_usd=budget.known_cost_usd,
            seconds=round(seconds, 3),
            stopped_by=stop.by,
            judges=tuple(judges),
            total=Spent(
                # A killed command could not record its calls.
                calls=max(run.calls + budget.calls, spent.requests + prepared.requests),
                input_tokens=_sum(
                    spent.uncounted_passes, spent.input_tokens, prepared.input_tokens
                ),
                output_tokens=_sum(
                    spent.uncounted_passes, spent.output_tokens, prepared.output_tokens
                ),
                cost_usd=_sum(spent.unpriced_passes, spent.cost_usd, prepared.cost_usd),
                seconds=round(run.seconds + seconds, 3),
            ),
            error=error_of(stop),
            notes=(*self._notes, *_why_capped(stop, budget), *(note for note in of_run if note)),
            decision=findings.decision,
            ranking=findings.ranking,
        )
        recorded_summary = dict(recorded.summary) if recorded else {}
        if budget.calls or summary.reused_passes or SERVED_MODELS not in recorded_summary:
            recorded_summary[SERVED_MODELS] = store.runs.served_models(run.id)
        store.runs.update(
            run.id,
            state="finished" if summary.finished else "stopped",
            summary=recorded_summary,
            stopped_by=stop.by,
            seconds=summary.total.seconds,
            calls=summary.total.calls,
            reused_passes=run.reused_passes + summary.reused_passes,
        )
        return summary
