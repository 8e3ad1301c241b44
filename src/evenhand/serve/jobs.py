"""Background runs: a client's options held to the server's limits, one run while this process
judges it, and the queue from which every server process takes runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.contract import read_criteria
from evenhand.data.options import ReadOptions
from evenhand.errors import Conflict, EvenhandError, InputError, ServerBusy, StoreBusy, StoreError
from evenhand.messages import WHOLE, Message, to_json
from evenhand.options import JudgingOptions, RunningOptions
from evenhand.runs import (
    JudgePlan,
    Observer,
    Progress,
    RankAdaptive,
    RunOptions,
    RunSummary,
    Stop,
    StoppedBy,
    UntilDecided,
    judge_stored,
)
from evenhand.serve.comparisons import ServiceObserver
from evenhand.serve.config import ServerLimits
from evenhand.serve.fields import options_of
from evenhand.serve.judges import JudgeCatalog
from evenhand.serve.logs import log
from evenhand.serve.run_status import added, progress_at_end, progress_before, progress_of
from evenhand.serve.security.limits import BoundedSources
from evenhand.serve.values import SIDE_TEXTS, RunStateView, StartRun, error_body
from evenhand.store import RunRecord, Store, Tally
from evenhand.store.answers import NOTHING_SPENT, AnswerSpending
from evenhand.store.jobs import JobRecord, NewJob

if TYPE_CHECKING:
    from evenhand.runs.generation import Generation

_N = TypeVar("_N", int, float)


def offered_names(offers: JudgeCatalog, asked: StartRun) -> tuple[str, ...]:
    names = tuple(offers.offer(name).name for name in asked.named_judges)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(Message("serve.judge_twice", name=name))
    return names


def judge_plans(offers: JudgeCatalog, names: Sequence[str], asked: StartRun) -> list[JudgePlan]:
    return [
        replace(
            offers.plan(name).choosing(options_of(asked, JudgingOptions)),
            price=offers.offer(name).price,
        )
        for name in names
    ]


def read_options(asked: StartRun, plans: Sequence[JudgePlan]) -> ReadOptions:
    return ReadOptions(
        columns=asked.columns,
        criteria=read_criteria(asked.criteria) if asked.criteria else (),
        criteria_needed=any(plan.judge.traits.needs_prompt for plan in plans),
        allow_tie=asked.allow_tie,
        swap_positions=asked.swap_positions,
        orders=asked.order_draw,
    )


def run_options(asked: StartRun, limits: ServerLimits) -> RunOptions:
    """The caps are the lower of the client's and the server's."""
    options = RunOptions(
        name=asked.name,
        bad_rows=asked.bad_rows,
        until_decided=_until_decided(asked),
        rank_adaptive=_rank_adaptive(asked),
        **options_of(asked, RunningOptions),
    )
    return replace(
        options,
        max_calls=_lower(options.max_calls, limits.run_max_calls),
        max_cost=_lower(options.max_cost, limits.run_max_cost),
    )


@dataclass(frozen=True, slots=True)
class RunSpend:
    """What a run has taken so far, as far as it is known."""

    calls: int = 0
    cost_usd: float = 0.0


def capped(
    options: RunOptions,
    asked: StartRun,
    limits: ServerLimits,
    *,
    spent: RunSpend,
    resumed_at: RunSpend,
) -> RunOptions | StoppedBy:
    """What is left of the caps, or which of them is used up: a kill does not renew them.

    The client's count from the last time that it started or resumed the run, the server's from
    the run's beginning.
    """
    own = RunningOptions(**options_of(asked, RunningOptions))
    calls = _left(own.max_calls, spent.calls - resumed_at.calls)
    calls = _lower(calls, _left(limits.run_max_calls, spent.calls))
    cost = _left(own.max_cost, spent.cost_usd - resumed_at.cost_usd)
    cost = _lower(cost, _left(limits.run_max_cost, spent.cost_usd))
    if calls is not None and calls <= 0:
        return "max-calls"
    if cost is not None and cost <= 0:
        return "max-cost"
    return replace(options, max_calls=calls, max_cost=cost)


def _left(most: _N | None, used: _N) -> _N | None:
    return None if most is None else most - used


def _lower(asked: _N | None, most: _N | None) -> _N | None:
    given = [each for each in (asked, most) if each is not None]
    return min(given) if given else None


def _until_decided(asked: StartRun) -> UntilDecided | None:
    if not asked.until_decided:
        if asked.alpha is not None:
            raise InputError(Message("serve.alpha_of_until_decided"))
        random = asked.rank_adaptive or asked.orders == "random"
        if asked.seed is not None and not random:
            raise InputError(Message("serve.seed_of_stop_rules"))
        return None
    default = UntilDecided()
    alpha = default.alpha if asked.alpha is None else asked.alpha
    return UntilDecided(alpha, asked.seed or default.seed)


def _rank_adaptive(asked: StartRun) -> RankAdaptive | None:
    if not asked.rank_adaptive:
        for name, value in (("budget", asked.budget), ("certainty", asked.certainty)):
            if value is not None:
                raise InputError(Message("serve.belongs_to_adaptive", name=name))
        return None
    if asked.budget is None:
        raise InputError(Message("serve.adaptive_needs_budget"))
    wanted = RankAdaptive(asked.budget, seed=asked.seed or 0)
    return wanted if asked.certainty is None else replace(wanted, certainty=asked.certainty)


REPORTED_EVERY_S = 1.0


def new_job(asked: StartRun, judges: tuple[str, ...], *, token: str | None) -> NewJob:
    wishes = asked.model_dump(
        mode="json", by_alias=False, exclude_unset=True, exclude=set(SIDE_TEXTS)
    )
    return NewJob(judges, {"asked": wishes, "resumed_at": asdict(RunSpend())}, token)


def resumed(store: Store, job: JobRecord) -> dict[str, Any]:
    """Its options with the client's caps counted from now on."""
    calls, cost = (job.progress.get(name) for name in ("calls", "cost_usd"))
    if calls is not None and cost is not None:
        return {**job.options, "resumed_at": asdict(RunSpend(calls, cost))}
    run = store.runs.at(job.run_id)
    spent = RunSpend() if run is None else Spendings.of(store, run).known
    return {**job.options, "resumed_at": asdict(spent)}


@dataclass(frozen=True, slots=True)
class Spendings:
    """What a run took, part by part."""

    tally: Tally
    written: AnswerSpending  # answers, and what was written beside the verdicts
    generated: AnswerSpending  # of these, answers
    calls: int

    @classmethod
    def of(cls, store: Store, run: RunRecord) -> Spendings:
        tally = store.verdicts.tally(run.id)
        written = store.answers.spent(run.id)
        generated = store.answers.spent(run.id, artefacts=False)
        beside = written.requests - generated.requests
        # A process that was killed could not say what it had made.
        calls = max(run.calls, tally.made.requests + beside) + generated.requests
        return cls(tally, written, generated, calls)

    @property
    def known(self) -> RunSpend:
        """A failed call has no known cost, and must not make the others free."""
        return RunSpend(self.calls, (self.tally.made.cost_usd or 0.0) + self.written.known_cost_usd)


class RunJob(Observer):
    """The caller holds the run. What comes of it goes to the store, and nothing is raised but what
    the store itself says."""

    def __init__(
        self,
        run: RunRecord,
        job: JobRecord,
        *,
        store: Store,
        offers: JudgeCatalog,
        limits: ServerLimits,
        observer: ServiceObserver,
    ) -> None:
        self._run = run
        self._job = job
        self._store = store
        self._offers = offers
        self._limits = limits
        self._observer = observer
        self._progress: Progress | None = None
        self._generation: Generation | None = None  # while models answer
        self._before: dict[str, Any] = {}
        self._spent = RunSpend()
        self._generated = NOTHING_SPENT
        self._trouble: str | None = None  # why no model answers
        self._answers: dict[str, int] | None = None  # where it stopped before it had all of them
        self._reported = (0, 0)  # calls and verdicts that the observer knows of
        self._cancelled = False
        self.stop = Stop()

    def progress(self, progress: Progress) -> None:
        self._progress = progress

    def cancel(self) -> None:
        self._cancelled = True
        self.stop.ask("interrupt")

    async def judge(self) -> RunStateView:
        try:
            await self._begin()
            summary = await self._judged()
        except StoreError:
            raise
        except EvenhandError as error:
            return await self._failed(error)
        except Exception as error:
            # Its message may hold texts of the data.
            log.exception("run %s failed: a bug in evenhand", self._run.id)
            what = (
                f"the run hit a bug in evenhand ({type(error).__name__}); resume it, or report it"
            )
            return await self._failed(EvenhandError(what))
        if summary is None:
            return "stopped"
        return await self._ended(summary)

    async def _begin(self) -> None:
        spent = await asyncio.to_thread(Spendings.of, self._store, self._run)
        self._spent, self._generated = spent.known, spent.generated
        self._before = progress_before(spent.tally, spent.written, calls=spent.calls)
        self._reported = (0, spent.tally.judged)
        await asyncio.to_thread(self._store.jobs.beat, self._run.id, self._before)

    async def _judged(self) -> RunSummary | None:
        """None where a cap is used up before anything was asked."""
        asked = StartRun.model_validate(self._job.options.get("asked", {}))
        plans = self._plans(asked)
        options = self._capped(asked)
        if isinstance(options, str):
            await asyncio.to_thread(
                self._store.runs.update, self._run.id, state="stopped", stopped_by=options
            )
            await self._let_go_as("stop", self._before)
            return None
        async with self._reporting():
            if not self._run.intake_done:
                return await self._answered(asked, plans, options)
            return await judge_stored(
                self._run, plans, options, store=self._store, stop=self.stop, observer=self
            )

    def _capped(self, asked: StartRun) -> RunOptions | StoppedBy:
        return capped(
            run_options(asked, self._limits),
            asked,
            self._limits,
            spent=self._spent,
            resumed_at=RunSpend(**self._job.options.get("resumed_at", {})),
        )

    async def _answered(
        self, asked: StartRun, plans: Sequence[JudgePlan], options: RunOptions
    ) -> RunSummary:
        """Both models answer what is not answered yet; then the judge compares, within what the
        answers leave of the caps."""
        from evenhand.runs.ab import notes_on_answers, stop_without_pairs
        from evenhand.serve.answering import stored_pairs

        run, store, stop = self._run, self._store, self.stop
        pairs, upload = await asyncio.to_thread(
            stored_pairs,
            run,
            asked,
            plans,
            read_options(asked, plans),
            options,
            store=store,
            offers=self._offers,
            limits=self._limits,
        )
        with upload:
            generation = self._generation = pairs.generation
            generation.prepare(run, plans[0].config.retry_policy, stop)
            await generation.run(run.id, options, report=self._hear_of_answers)
            made = await asyncio.to_thread(generation.summary)
            self._generation = None
            await self._begin()  # answers count among what was spent
            left = self._capped(asked)
            if isinstance(left, str):
                stop.ask(left)
            elif stop.by is None:
                options = left
                await stop_without_pairs(pairs, stop)
            if stop.by is not None:
                self._answers = {"done": generation.done, "total": generation.total}
            summary = await judge_stored(
                run,
                plans,
                replace(options, bad_rows="skip"),  # an answer that is none is no pair
                store=store,
                sources=BoundedSources(pairs, self._limits),
                stop=stop,
                observer=self,
            )
        if self._answers is None:
            await asyncio.to_thread(store.jobs.drop_prompts, run.id)
        notes = (*notes_on_answers(made), *summary.notes)
        return summary.model_copy(update={"notes": notes})

    def _plans(self, asked: StartRun) -> list[JudgePlan]:
        names = self._job.judges
        answering = () if self._run.intake_done else asked.models or ()
        gone = [name for name in (*names, *answering) if name not in self._offers.names]
        if gone:
            raise Conflict(
                Message("serve.judge_not_offered_any_more", gone=gone[0], name=self._run.name)
            )
        return judge_plans(self._offers, names, asked)

    @contextlib.asynccontextmanager
    async def _reporting(self) -> AsyncIterator[None]:
        async def keep_reporting() -> None:
            while True:
                await self._report()
                await asyncio.sleep(REPORTED_EVERY_S)

        reporting = asyncio.create_task(keep_reporting())
        try:
            yield
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)

    async def _report(self) -> None:
        progress = self._progress
        update = None
        if self._generation is not None:
            update = self._answering(self._generation)
        elif progress is not None:
            update = progress_of(
                progress,
                pairs=self._before["pairs"],
                skipped_rows=self._before["skipped_rows"],
                before=self._before,
            )
            self._count(progress.calls, progress.done)
        try:
            wanted = await asyncio.to_thread(self._store.jobs.beat, self._run.id, update)
        except Conflict:
            self.stop.ask("interrupt")  # somebody has deleted it
        except StoreError:
            pass  # a busy store; the next time will do, and what is judged is the writer's affair
        else:
            if wanted == "stop":
                self.cancel()

    def _hear_of_answers(self, done: int, total: int, trouble: str | None) -> None:
        self._trouble = trouble

    def _answering(self, generation: Generation) -> dict[str, Any]:
        budget, before = generation.budget, self._before
        return {
            **before,
            "answers": {"done": generation.done, "total": generation.total},
            "calls": before["calls"] + budget.calls,
            "cost_usd": added(before["cost_usd"], budget.known_cost_usd),
            "trouble": None if self._trouble is None else to_json(self._trouble),
        }

    def _count(self, calls: int, verdicts: int) -> None:
        before_calls, before_verdicts = self._reported
        self._reported = (calls, verdicts)
        self._observer.run_advanced(
            self._job.judges[0],
            calls=max(0, calls - before_calls),
            verdicts=max(0, verdicts - before_verdicts),
        )

    async def _ended(self, summary: RunSummary) -> RunStateView:
        progress = progress_at_end(summary, self._generated, self._answers)
        self._count(
            summary.calls,
            sum(progress[name] for name in ("wins_a", "wins_b", "ties", "inconsistent", "invalid")),
        )
        if summary.finished:
            await self._let_go_as("done", progress)
            return "finished"
        if summary.stopped_by == "interrupt":
            # Somebody cancelled it, and that stands in the job; or the server ends, and the next
            # one goes on.
            await asyncio.to_thread(self._store.jobs.let_go, self._run.id, progress=progress)
            return "stopped" if self._cancelled else "queued"
        if summary.stopped_by == "store":
            raise self.stop.error or StoreError(Message("serve.store_tried_again"))
        error = summary.error
        await self._let_go_as(
            "stop",
            progress,
            None if error is None else error.model_dump(mode="json", context=WHOLE),
        )
        return "stopped" if error is None else "failed"

    async def _failed(self, error: EvenhandError) -> RunStateView:
        if isinstance(error, InputError):
            judges = ", ".join(self._job.judges)
            error.message = Message("serve.judge_server", message=error.message, judges=judges)
        body = error_body(error).model_dump(mode="json", context=WHOLE)
        await self._let_go_as("stop", self._before or None, body)
        await asyncio.to_thread(self._store.runs.update, self._run.id, state="stopped")
        return "failed"

    async def _let_go_as(
        self, wanted: Any, progress: dict[str, Any] | None, error: dict[str, Any] | None = None
    ) -> None:
        await asyncio.to_thread(
            self._store.jobs.want,
            self._run.id,
            wanted,
            progress=progress,
            error=error,
            let_go=True,
        )


# Background runs: every server process takes what it has room for and nobody else holds.
#
# The store is the only state. A process that dies lets go of its runs, and another one, or the
# next to start, goes on with them.

_LOOKED_EVERY_S = 1.0
_TIDIED_EVERY_S = 60.0
# Another process has it, or the store failed: it is tried again after so long.
_TRIED_AGAIN_S = 3.0
_STORE_AWAITED_S = 10.0


class Jobs:
    def __init__(
        self,
        store: Store,
        offers: JudgeCatalog,
        limits: ServerLimits,
        *,
        observer: ServiceObserver,
    ) -> None:
        self._store = store
        self._offers = offers
        self._limits = limits
        self._observer = observer
        self._active: dict[int, asyncio.Task[None]] = {}
        self._judging: dict[int, RunJob] = {}
        self._not_before: dict[int, float] = {}
        self._tidied_at = -_TIDIED_EVERY_S
        self._awake = asyncio.Event()
        self._ending = False
        self._supervising: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._supervising = asyncio.create_task(self._supervise())

    def wake(self) -> None:
        """There may be something new: look now."""
        self._awake.set()

    def stop(self, run_id: int) -> None:
        """It was cancelled: where this process has it, at once. Others see it in the store."""
        judging = self._judging.get(run_id)
        if judging is not None:
            judging.cancel()

    def refuse_when_full(self) -> None:
        """For a thread, like everything that asks the store."""
        there = self._store.jobs.count_open()
        if there >= self._limits.queued_runs:
            raise ServerBusy(
                Message("serve.too_many_runs", there=there),
                retry_after_s=30,
            )

    def end(self) -> None:
        """Begin no more. What is in flight may come; what is pending waits for the next start."""
        self._ending = True
        self._awake.set()
        for judging in self._judging.values():
            judging.stop.ask("interrupt")

    async def close(self, timeout_s: float) -> None:
        """Until every run is let go of; those that take longer are broken off, and lose what was
        in flight."""
        self.end()
        if self._supervising is not None:
            await asyncio.gather(self._supervising, return_exceptions=True)
        if self._active:
            await asyncio.wait(self._active.values(), timeout=timeout_s)
        for task in list(self._active.values()):
            task.cancel()
        await asyncio.gather(*self._active.values(), return_exceptions=True)

    async def _supervise(self) -> None:
        while not self._ending:
            self._awake.clear()
            try:
                await self._look()
            except EvenhandError as error:
                log.warning("background runs are waiting for the store: %s", error.message)
            except Exception:
                log.exception("looking for background runs failed: a bug in evenhand")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), _LOOKED_EVERY_S)

    async def _look(self) -> None:
        now = time.monotonic()
        if now - self._tidied_at >= _TIDIED_EVERY_S:
            self._tidied_at = now
            await asyncio.to_thread(self._tidy)
        room = self._limits.background_runs - len(self._active)
        if room <= 0:
            return
        for job in await asyncio.to_thread(self._store.jobs.wanted, "run"):
            if job.run_id in self._active or self._not_before.get(job.run_id, 0) > now:
                continue
            if self._ending or not room:
                return
            room -= 1
            self._active[job.run_id] = asyncio.create_task(self._have(job.run_id))

    async def _have(self, run_id: int) -> None:
        try:
            await self._take(run_id)
        finally:
            del self._active[run_id]
            self._awake.set()

    async def _take(self, run_id: int) -> None:
        """Judge it, where nobody else does."""
        with ExitStack() as held:
            try:
                await asyncio.to_thread(held.enter_context, self._store.hold(run_id))
            except EvenhandError as error:
                self._leave(run_id, _TRIED_AGAIN_S)
                if not isinstance(error, StoreBusy):
                    log.warning("cannot lock run %s: %s", run_id, error.message)
                return
            try:
                await self._judge(run_id)
            except EvenhandError as error:
                log.warning("run %s is waiting for the store: %s", run_id, error.message)
                self._leave(run_id, _STORE_AWAITED_S)
                body = error_body(error).model_dump(mode="json", context=WHOLE)
                with contextlib.suppress(EvenhandError):
                    await asyncio.to_thread(self._store.jobs.let_go, run_id, error=body)

    def _leave(self, run_id: int, seconds: float) -> None:
        now = time.monotonic()
        kept = {each: until for each, until in self._not_before.items() if until > now}
        self._not_before = {**kept, run_id: now + seconds}

    async def _judge(self, run_id: int) -> None:
        # Read once it is held: another process may have ended it a moment ago.
        run, job = await asyncio.to_thread(self._read, run_id)
        if run is None or job is None or job.wanted != "run" or self._ending:
            return
        if run.state == "finished":
            await asyncio.to_thread(self._store.jobs.want, run_id, "done", let_go=True)
            return
        judging = RunJob(
            run,
            job,
            store=self._store,
            offers=self._offers,
            limits=self._limits,
            observer=self._observer,
        )
        self._judging[run_id] = judging
        try:
            state = await judging.judge()
        finally:
            del self._judging[run_id]
        log.info("run %s is %s", run_id, state)
        self._observer.run_ended(state)

    def _read(self, run_id: int) -> tuple[RunRecord | None, JobRecord | None]:
        return self._store.runs.at(run_id), self._store.jobs.find(run_id)

    def _tidy(self) -> None:
        """Runs whose rows stopped coming in when a process died: nobody was told of them."""
        for left in self._store.jobs.wanted("intake"):
            with contextlib.suppress(StoreBusy), self._store.hold(left.run_id):
                job = self._store.jobs.find(left.run_id)
                if job is not None and job.wanted == "intake":
                    self._store.deletion.delete_held(left.run_id)
        self._store.requests.forget_old()
