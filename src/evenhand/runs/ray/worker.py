"""A worker: the local executor, with work and budget from a remote driver."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from evenhand.errors import EvenhandError, StoreError
from evenhand.judge_kinds import takes_address
from evenhand.judges.protocol import Judge, News, news_lines, news_of
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message
from evenhand.runs.executor import RunContext, RunJudge
from evenhand.runs.local import LocalExecutor
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan
from evenhand.runs.progress import JudgeCounts
from evenhand.runs.ray.lease import Lease, LeasedBudget, LeasedJudge, LeasedPace
from evenhand.runs.ray.messages import (
    WORKER_COUNTED,
    Assignment,
    Grant,
    JudgeTask,
    WorkerCounts,
    WorkerFailure,
    WorkerReport,
    WorkerSpending,
)
from evenhand.runs.ray.shards import ShardSupply
from evenhand.runs.stop import Stop, StoppedBy
from evenhand.settings import load_settings
from evenhand.store import Settled, Store, open_store
from evenhand.store.address import SECRET_OPTIONS, ServerAddress, read_address


def open_with_own_key(config: JudgeConfig) -> Judge:
    """The driver's judge with this process's key: keys do not travel."""
    writer = None if config.writer is None else _with_own_key(config.writer)
    return replace(_with_own_key(config), writer=writer).open_judge()


def _with_own_key(config: JudgeConfig) -> JudgeConfig:
    if not takes_address(config.judge):
        return config
    return replace(config, api_key=load_settings().api_key)


def with_own_secrets(shown: str) -> str:
    """With the password of this process's EVENHAND_STORE, if that is the same store; else libpq
    looks for one (PGPASSWORD, PGPASSFILE, ~/.pgpass)."""
    own = os.environ.get("EVENHAND_STORE", "").strip()
    if not own:
        return shown
    mine, wanted = read_address(own), read_address(shown)
    if not isinstance(mine, ServerAddress) or not isinstance(wanted, ServerAddress):
        return shown
    same = ("username", "host", "port", "database")
    if any(getattr(mine.url, name) != getattr(wanted.url, name) for name in same):
        return shown
    query = dict(wanted.url.query)
    query |= {name: mine.url.query[name] for name in SECRET_OPTIONS if name in mine.url.query}
    whole = wanted.url.set(password=mine.url.password, query=query)
    return whole.render_as_string(hide_password=False)


class StoredCount(JudgeCounts):
    """Counts only what is stored, which a kill cannot undo. Verdicts are stored in the order they
    are settled."""

    def __init__(self, judge: str, *, known: bool) -> None:
        super().__init__(judge, 0)
        self._known = known
        self._unstored: deque[Settled] = deque()

    @property
    def proven(self) -> bool:
        return self._known

    def settled(self, settled: Settled) -> None:
        self.waiting += 1
        self._unstored.append(settled)

    def stored(self, count: int) -> None:
        for _ in range(count):
            super().settled(self._unstored.popleft())
            self.waiting -= 1
        super().stored(count)


_TOLD_EVERY_S = 0.25
_LOOKED_EVERY_S = 0.05
_SOONEST_S = 0.01
_SIFTED_EVERY_S = 1.0
_FIRST_GRANT_WITHIN_S = 60.0
# How long a delayed driver has to learn that its worker ended.
_ASKED_FOR_LAST_S = 5.0


class Worker:
    """Begun once, then driven by `exchange` until it reports its end.

    Ends by itself if it hears nothing for longer than its lease.
    """

    def __init__(self) -> None:
        self._stop = Stop()
        self._news = asyncio.Event()
        self._resources = contextlib.ExitStack()
        self._judges: list[Judge] = []
        self._counts: list[StoredCount] = []
        self._supplies: list[ShardSupply] = []
        self._paces: list[LeasedPace] = []
        self._broken: Exception | None = None
        self._working: asyncio.Task[None] | None = None
        self._sifted_at = 0.0
        self._sifting = asyncio.Lock()
        self._over: list[int] = []
        self._server_news: list[News] = []

    async def begin(self, assignment: Assignment) -> WorkerFailure | None:
        """Returns what prevents it from beginning."""
        try:
            await self._prepare(assignment)
        except EvenhandError as error:
            await self._close()
            by: StoppedBy = "store" if isinstance(error, StoreError) else "cluster"
            return WorkerFailure(by, error.kind, error.message)
        except Exception as error:  # the driver is to hear of it, whatever it is
            await self._close()
            return WorkerFailure("cluster", "cluster", _failure_message(error))
        self._lease.accept(Grant(_FIRST_GRANT_WITHIN_S))
        self._working = asyncio.create_task(self._work(assignment.run_id))
        self._watching = asyncio.create_task(self._watch())
        return None

    async def where(self) -> str:
        return f"process {os.getpid()} on {socket.gethostname()}"

    async def exchange(self, grant: Grant) -> WorkerReport:
        self._accept(grant)
        await self._something_new()
        await self._sift()
        return self._report()

    async def _prepare(self, assignment: Assignment) -> None:
        address = with_own_secrets(assignment.store)
        self._store = await asyncio.to_thread(open_store, address, create=False)
        self._resources.callback(self._store.close)
        await asyncio.to_thread(
            self._resources.enter_context, self._store.register_worker(assignment.run_id)
        )
        self._lease = Lease(
            capped_calls=assignment.capped_calls,
            capped_cost=assignment.capped_cost,
            clock=time.monotonic,
        )
        self._stop.listen(self._wind_up)
        run_judges = [self._run_judge(assignment, task, self._store) for task in assignment.tasks]
        self._run_judges = tuple(run_judges)
        self._paces = [
            LeasedPace(
                by_requests=assignment.paced_by_requests, by_tokens=assignment.paced_by_tokens
            )
            for _ in run_judges
        ]
        self._budget = LeasedBudget(self._stop, self._lease)
        options = RunOptions(
            concurrency=assignment.concurrency,
            keep_going_unread=assignment.keep_going_unread,
            give_up_after_s=assignment.give_up_after_s,
        )
        context = RunContext(self._store, options, self._budget, self._stop)
        self._executor = LocalExecutor(context, paces=self._paces)

    def _run_judge(self, assignment: Assignment, task: JudgeTask, store: Store) -> RunJudge:
        judge = open_with_own_key(task.config)
        self._judges.append(judge)
        self._server_news.append(news_of(judge))
        plan = JudgePlan(judge, task.config)
        if plan.record(salt=assignment.salt).key != task.key:
            raise EvenhandError.of("runs.ray_asked_differently", name=task.name)
        count = StoredCount(judge.name, known=task.proven)
        supply = ShardSupply(store, assignment.run_id, task.judge_id, hungry=self._news.set)
        self._counts.append(count)
        self._supplies.append(supply)
        leased = LeasedJudge(judge, self._lease)
        return RunJudge(
            task.judge_id,
            leased,
            task.config,
            task.price,
            count,
            supply,
            plan.writer(salt=assignment.salt),
            task.writing_price,
        )

    async def _work(self, run_id: int) -> None:
        try:
            await self._executor.execute(run_id, self._run_judges)
        except Exception as error:  # whatever it is, the driver is to hear of it
            self._broken = error
        finally:
            await self._close()
            self._news.set()

    async def _close(self) -> None:
        for judge in self._judges:
            with contextlib.suppress(Exception):
                await judge.close()
        self._judges = []
        for supply in self._supplies:
            await supply.closed()
        async with self._sifting:
            with contextlib.suppress(Exception):
                await asyncio.to_thread(self._resources.close)

    async def _watch(self) -> None:
        """The driver may have died or be unreachable: nothing is spent beyond the lease."""
        while self._working is not None and not self._working.done():
            if self._lease.is_expired:
                self._stop.ask("interrupt")
                await asyncio.wait([self._working])
                await asyncio.sleep(_ASKED_FOR_LAST_S)
                self.leave()
                return
            await asyncio.sleep(_TOLD_EVERY_S)

    def leave(self) -> None:
        """For a process of its own, which is no longer needed."""

    def _accept(self, grant: Grant) -> None:
        self._news.clear()
        now = time.monotonic()
        for pace, permits in zip(self._paces, grant.permits, strict=False):
            pace.accept(permits, now)
        self._lease.accept(grant)
        for shard in grant.shards:
            self._supplies[shard.judge_index].give(shard)
        if grant.stop:
            self._stop.ask("interrupt")
        if grant.done:
            for supply in self._supplies:
                supply.end()

    def _wind_up(self) -> None:
        self._lease.close()
        for supply in self._supplies:
            supply.end()
        self._news.set()

    async def _something_new(self) -> None:
        """Returns soon if something is wanted, after a moment in any case."""
        until = time.monotonic() + _TOLD_EVERY_S
        await asyncio.sleep(_SOONEST_S)
        if self._wants_leave:  # it was refused just now, or the end of the cap is near
            await asyncio.sleep(_LOOKED_EVERY_S)
        was_idle = self._is_idle
        while (left := until - time.monotonic()) > 0:
            if self._ended or self._wants_leave or self._is_idle != was_idle:
                return
            if self._news.is_set():
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), min(left, _LOOKED_EVERY_S))

    @property
    def _wants_leave(self) -> bool:
        executor, lease = self._executor, self._lease
        if lease.starves or (executor.pairs_open and lease.is_low(max(1, executor.limit))):
            return True
        return any(
            calls and pace.wait_s(time.monotonic()) > 0
            for calls, pace in zip(executor.waiting, self._paces, strict=False)
        )

    @property
    def _ended(self) -> bool:
        return self._working is not None and self._working.done()

    @property
    def _is_idle(self) -> bool:
        return (
            all(supply.is_empty for supply in self._supplies)
            and not self._executor.pairs_open
            and not any(count.waiting for count in self._counts)
        )

    async def _sift(self) -> None:
        """Which shards are finished; infrequent, since it queries the store."""
        now = time.monotonic()
        if not self._is_idle and now - self._sifted_at < _SIFTED_EVERY_S:
            return
        self._sifted_at = now
        async with self._sifting:
            if self._stop.by is not None or not self._judges:  # all is over
                return
            try:
                for supply in self._supplies:
                    over = await asyncio.to_thread(supply.finished)
                    self._over += [shard.number for shard in over]
            except EvenhandError as error:
                self._stop.ask("store", error)

    def _report(self) -> WorkerReport:
        lease, executor, ended = self._lease, self._executor, self._ended
        lease.look_at_clock()
        starving, idle = lease.starves, self._is_idle
        if starving or idle or ended:
            lease.give_back()
        limit = max(1, executor.limit)
        over, self._over = self._over, []
        return WorkerReport(
            judges=tuple(self._judge_reports()),
            spending=self._spending(),
            returned_calls=lease.returned_calls,
            returned_cost_usd=lease.returned_cost_usd,
            wants_calls=0 if idle or ended else lease.wanted_calls(limit),
            wants_cost=not idle and not ended and lease.wants_cost and lease.is_low(limit),
            starving=starving,
            idle=idle,
            in_flight=max(0, executor.in_flight - lease.waiting),
            limit=executor.limit,
            paused_s=executor.paused_s,
            failing=executor.trouble,
            finished=tuple(over),
            ended=ended,
            trouble=self._trouble() if ended or self._stop.by else None,
            server_news=news_lines(self._server_news) if ended else (),
        )

    def _judge_reports(self) -> Iterator[WorkerCounts]:
        waiting = self._executor.waiting or [0] * len(self._run_judges)
        each = zip(self._counts, self._supplies, self._paces, waiting, strict=True)
        for count, supply, pace, calls in each:
            yield WorkerCounts(
                {name: getattr(count, name) for name in WORKER_COUNTED},
                wants_shard=supply.wants_shard,
                wants=pace.wanted(calls),
                unused=pace.give_back(),
            )

    def _spending(self) -> WorkerSpending:
        budget, lease = self._budget, self._lease
        return WorkerSpending(
            calls=lease.calls,
            cost_usd=lease.cost_usd,
            priced=lease.priced,
            unpriced=budget.unpriced,
            uncounted=budget.uncounted,
            input_tokens=budget.input_tokens,
            output_tokens=budget.output_tokens,
        )

    def _trouble(self) -> WorkerFailure | None:
        if self._broken is not None:
            return WorkerFailure("cluster", "cluster", _failure_message(self._broken))
        by, error = self._stop.by, self._stop.error
        if by in ("judge", "store") and error is not None:
            return WorkerFailure(by, error.kind, error.message)
        return None


def _failure_message(error: Exception) -> str:
    reason = " ".join(str(error).split())[:200]
    return Message("runs.ray_worker_failed", kind=type(error).__name__, reason=reason)
