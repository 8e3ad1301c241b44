"""A run from its data to its summary: rows → items → estimate → verdicts → what it came to.

The store is the only state, so a run that ends anywhere goes on from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from evenhand.errors import DataUnreachable, InputError
from evenhand.judges.protocol import account_of
from evenhand.runs.batch.submission import still_to_submit
from evenhand.runs.budget import Budget
from evenhand.runs.closing import close_run
from evenhand.runs.estimate import Estimate, Range, estimate
from evenhand.runs.executor import Seat
from evenhand.runs.executors import account_of_executor, choose_executor, refuse_executor
from evenhand.runs.intake import take_in
from evenhand.runs.looking import Looking
from evenhand.runs.naming import find_or_create, refuse_other
from evenhand.runs.observer import Observer
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan
from evenhand.runs.pricing import model_of, reckon
from evenhand.runs.progress import Count
from evenhand.runs.pursuit import EveryPair, Pursuit
from evenhand.runs.rank_adaptive import RankPursuit
from evenhand.runs.sources import Sources
from evenhand.runs.stop import Stop
from evenhand.runs.summary import RunSummary
from evenhand.runs.until_decided import DecisionPursuit
from evenhand.runs.watch import Watch
from evenhand.store import RunRecord, Store, Tally

_ESTIMATED_FROM = 50


async def judge_pairs(
    sources: Sources,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    stop: Stop | None = None,
    observer: Observer | None = None,
) -> RunSummary:
    """Judge what is not judged yet. What goes wrong before the first call is raised; what stops
    the run after it is in the summary."""
    stop = stop or Stop()
    begun = time.monotonic()
    refuse_judges(judges, options)
    refuse_executor(store, judges, options)
    run, created = await asyncio.to_thread(find_or_create, store, sources, judges, options)
    engine = _Engine(run, judges, options, store, stop, observer or Observer())
    try:
        with store.hold(run.id):
            if await engine.take_in(sources):
                await engine.judge()
            return await engine.summary(time.monotonic() - begun)
    except BaseException as error:
        # Rows that were hours on their way stay, where only the way was cut.
        if created and not engine.began and not isinstance(error, DataUnreachable):
            await asyncio.to_thread(store.delete_run, run.name)
        raise


async def judge_stored(
    run: RunRecord,
    judges: Sequence[JudgePlan],
    options: RunOptions,
    *,
    store: Store,
    stop: Stop | None = None,
    observer: Observer | None = None,
) -> RunSummary:
    """The same for a run whose rows are all in the store, without their sources.

    The caller holds the run. Judges that are not the run's own are refused.
    """
    begun = time.monotonic()
    refuse_judges(judges, options)
    refuse_executor(store, judges, options)
    refuse_other(run, judges, options)
    engine = _Engine(run, judges, options, store, stop or Stop(), observer or Observer())
    await engine.judge()
    return await engine.summary(time.monotonic() - begun)


def refuse_judges(judges: Sequence[JudgePlan], options: RunOptions) -> None:
    """One twice, or several where one is followed."""
    keys = [plan.record().key for plan in judges]
    for place, plan in enumerate(judges):
        if keys[place] in keys[:place]:
            raise InputError(f"judge {plan.judge.name} is given twice; name it once")
    if len(judges) > 1 and options.pursued:
        option = "--until-decided" if options.until_decided else "--rank-adaptive"
        raise InputError(f"{option} follows one judge, and {len(judges)} are named; name one")


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
        self._seats: tuple[Seat, ...] = ()
        self._pursuit: Pursuit = EveryPair(store, run.id)
        self._notes: list[str] = []
        self._most = 0  # judgments that there will be in all, those of earlier commands included
        self.began = False  # a call may have been made

    @property
    def pending(self) -> int:
        return sum(seat.count.pairs - seat.count.done for seat in self._seats)

    @property
    def to_ask(self) -> int:
        return self._pursuit.most_pairs(self.pending)

    async def take_in(self, sources: Sources) -> bool:
        """Whether all rows are in the store now."""
        store, run = self._store, self._run
        if sources.meaning:
            self._notes.append(sources.meaning)
        if run.intake_done:
            return True
        whole = await self._off_the_loop(
            take_in,
            store,
            run.id,
            sources,
            bad_rows=self._options.bad_rows,
            by_id=any(plan.judge.traits.by_id for plan in self._judges),
            stop=self._stop,
            told=self._observer.reading,
        )
        if whole:
            await asyncio.to_thread(store.update_run, run.id, intake_done=True, state="judging")
        else:
            self._notes.append("stopped while the data was read; not all pairs are counted")
        return whole

    async def judge(self) -> None:
        await self._prepare()
        if self._stop.by is None and self.to_ask:
            await self._execute()

    async def _prepare(self) -> None:
        """Everything that can be known before the first call."""
        store, run = self._store, self._run
        reckoned = [reckon(plan, self._options) for plan in self._judges]
        self._notes += [each.note for each in reckoned if each.note]
        if self._options.retry:
            await asyncio.to_thread(store.retire, run.id, set(self._options.retry))
            await asyncio.to_thread(store.update_run, run.id, state="stopped")
        salt = run.plan.get("fresh")
        records = [plan.record(salt=salt) for plan in self._judges]
        ids = [store.add_judge(record) for record in records]
        store.set_run_judges(run.id, ids)
        self._pursuit = self._pursued(ids[0])
        found = await asyncio.to_thread(self._pursuit.begin)
        self._seats = tuple(
            [
                Seat(
                    judge_id,
                    plan.judge,
                    plan.procedure,
                    its.price,
                    _count(plan, await asyncio.to_thread(store.tally, run.id, judge_id)),
                    self._pursuit.supply(judge_id),
                )
                for judge_id, plan, its in zip(ids, self._judges, reckoned, strict=True)
            ]
        )
        total = sum(seat.count.pairs for seat in self._seats)
        self._most = total - self.pending + self.to_ask
        self._observer.began(run.name, store.address, done=total - self.pending, total=total)
        if found is not None:
            self._stop.ask(found)
        elif self.to_ask:
            announced = self._pursuit.announcement()
            if announced is not None:
                self._observer.announce(announced)
            estimated = await asyncio.to_thread(self._estimate)
            self._observer.approve(estimated.capped(self._options.max_cost))

    def _pursued(self, judge_id: int) -> Pursuit:
        store, run_id, options = self._store, self._run.id, self._options
        if options.until_decided is not None:
            # Who names a concurrency wants the speed.
            careful = options.concurrency is None
            return DecisionPursuit(store, run_id, judge_id, options.until_decided, careful=careful)
        if options.rank_adaptive is not None:
            return RankPursuit(store, run_id, judge_id, options.rank_adaptive)
        return self._pursuit

    async def _off_the_loop(self, work: Callable[..., bool], *given: Any, **named: Any) -> bool:
        """In a thread, which a cancellation does not end: it is told to."""
        try:
            return await asyncio.to_thread(work, *given, **named)
        except asyncio.CancelledError:
            self._stop.ask("interrupt")
            raise

    def _estimate(self) -> Estimate:
        nothing = Range(0, 0)
        whole = Estimate(0, 0, nothing, nothing, nothing)
        for seat in self._seats:
            work = self._store.pending(self._run.id, seat.judge_id, after=0, limit=_ESTIMATED_FROM)
            its = estimate(
                self._pursuit.most_pairs(seat.count.pairs - seat.count.done),
                [item.pair for item in work],
                seat.judge,
                seat.procedure,
                model=model_of(seat.judge),
                price=seat.price,
            )
            if self._options.batch:
                its = still_to_submit(its, self._store, self._run.id, seat.judge_id)
            whole += its
        return whole

    async def _execute(self) -> None:
        self.began = True
        accounts = [account_of(seat.judge) for seat in self._seats]
        executor = choose_executor(
            self._store,
            self._run,
            self._judges,
            self._options,
            budget=self._budget,
            stop=self._stop,
            observer=self._observer,
        )
        await asyncio.to_thread(
            self._store.update_run, self._run.id, state="judging", stopped_by=None
        )
        watch = Watch(self._run.name, self._seats, self._budget, self._stop, total=self._most)
        looking = Looking(self._pursuit, self._seats, self._stop)
        async with watch.told(executor, self._observer), looking.kept_up():
            await executor.execute(self._run.id, self._seats)
        self._notes += [line for account in accounts for line in account()]
        self._notes += account_of_executor(executor)
        # Also where it was broken off: what was in flight has come since the last look.
        await looking.look()

    async def summary(self, seconds: float) -> RunSummary:
        return await asyncio.to_thread(
            close_run,
            self._store,
            self._run,
            self._seats,
            budget=self._budget,
            stop=self._stop,
            pursuit=self._pursuit,
            notes=self._notes,
            seconds=seconds,
        )


def _count(plan: JudgePlan, tally: Tally) -> Count:
    return Count(
        plan.judge.name,
        tally.pairs,
        wins_a=tally.wins_a,
        wins_b=tally.wins_b,
        ties=tally.ties,
        inconsistent=tally.inconsistent,
        invalid=tally.invalid,
    )
