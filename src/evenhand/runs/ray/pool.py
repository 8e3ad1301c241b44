"""The driver's side of its workers: starts them, grants work and budget, processes reports, and
replaces lost ones.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from evenhand.errors import ClusterError, EvenhandError, StoreError
from evenhand.messages import Message
from evenhand.runs.executor import RunContext, RunJudge
from evenhand.runs.ray.ledger import BudgetLedger, PermitIssuer
from evenhand.runs.ray.messages import (
    WORKER_COUNTED,
    Assignment,
    Grant,
    Permits,
    Shard,
    WorkerHandle,
    WorkerLost,
    WorkerReport,
    error_of,
)
from evenhand.runs.ray.shards import ShardQueue

# A worker without messages for this long ends itself.
LEASED_S = 15.0
# A worker silent for this long is given up; its lease has expired by then.
_LOST_AFTER_S = 25.0
_DEATHS_IN_A_ROW = 3
# If all workers were lost and none restarts within this time, the nodes are gone. Ray would wait a
# minute, then end this process.
_REPLACED_WITHIN_S = 20.0


@dataclass(slots=True)
class _Member:
    number: int
    shards: dict[int, Shard] = field(default_factory=dict)
    report: WorkerReport | None = None
    idle: bool = False
    heard_at: float = 0.0


class WorkerPool:
    def __init__(
        self,
        start: Callable[[], WorkerHandle],
        assignments: Sequence[Assignment],
        run_judges: Sequence[RunJudge],
        context: RunContext,
    ) -> None:
        """One worker for each assignment, until nothing is pending."""
        options, stop = context.options, context.stop
        self._start = start
        self._assignments = assignments
        self._run_judges = run_judges
        self._budget = context.budget
        self._stop = stop
        self._announce = context.observer.announce
        self._over = asyncio.Event()  # the run is stopped, or nothing is left to do
        stop.listen(self._over.set)
        # The caps less what the driver has spent on preparation.
        most_calls, most_cost = options.max_calls, options.max_cost
        self._ledger = BudgetLedger(
            max_calls=None if most_calls is None else max(0, most_calls - self._budget.calls),
            max_cost=None if most_cost is None else max(0.0, most_cost - self._budget.cost_usd),
        )
        paced = options.rpm is not None or options.tpm is not None
        self._issuers = [
            PermitIssuer(requests=options.rpm, tokens=options.tpm) for _ in run_judges if paced
        ]
        numbers = count(1)
        self._queues = [
            ShardQueue(
                context.store,
                assignments[0].run_id,
                run_judge.judge_id,
                judge_index=place,
                workers=len(assignments),
                pending=partial(getattr, run_judge.count, "pending"),
                numbers=numbers,
            )
            for place, run_judge in enumerate(run_judges)
        ]
        self._members: dict[int, _Member] = {}
        self._started = 0
        self._deaths = 0
        self._cutting = asyncio.Lock()
        self.lost = 0
        self.server_news: Counter[str] = Counter()  # by how many workers it was told

    @property
    def in_flight(self) -> int:
        return sum(each.report.in_flight for each in self._members.values() if each.report)

    @property
    def limit(self) -> int:
        return sum(each.report.limit for each in self._members.values() if each.report)

    @property
    def paused_s(self) -> float:
        reports = [each.report for each in self._members.values() if each.report]
        return max((report.paused_s for report in reports), default=0.0)

    @property
    def trouble(self) -> str | None:
        """If no worker gets an answer."""
        reports = [each.report for each in self._members.values() if each.report]
        failing = [report.failing for report in reports]
        return failing[0] if failing and all(failing) else None

    @property
    def lost_calls(self) -> int:
        return self._ledger.lost_calls

    async def work(self) -> None:
        """Until nothing is pending, or after a stop once calls in flight are done."""
        workers = [asyncio.create_task(self._run_worker(each)) for each in self._assignments]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _run_worker(self, assignment: Assignment) -> None:
        """One slot of the pool: a worker, and its replacement if lost."""
        while not self._over.is_set():
            handle = self._start()
            try:
                await self._run_once(handle, assignment)
            except EvenhandError as error:
                self._stop.ask("store" if isinstance(error, StoreError) else "cluster", error)
            finally:
                handle.kill()

    async def _run_once(self, handle: WorkerHandle, assignment: Assignment) -> None:
        member: _Member | None = None
        try:
            if not await self._has_started(handle, assignment):
                return
            self._started += 1
            member = self._members[self._started] = _Member(
                self._started, heard_at=time.monotonic()
            )
            self._ledger.open(member.number)
            await self._exchange_messages(handle, member)
        except WorkerLost as lost:
            handle.kill()
            if not lost.confirmed and member is not None and self._stop.by is None:
                # It may still be working until its lease expires.
                await asyncio.sleep(max(0.0, member.heard_at + LEASED_S - time.monotonic()))
            self._handle_loss(member, f"{lost.why} ({handle.place})")
        except BaseException:
            if member is not None:
                self._members.pop(member.number, None)
            raise

    async def _has_started(self, handle: WorkerHandle, assignment: Assignment) -> bool:
        """Does not wait for a worker to be placed once everything is over."""
        beginning = asyncio.create_task(handle.begin(assignment))
        ending = asyncio.create_task(self._over.wait())
        try:
            while not (beginning.done() or ending.done()):
                within_s = _REPLACED_WITHIN_S if self.lost else None
                await asyncio.wait(
                    [beginning, ending], timeout=within_s, return_when=asyncio.FIRST_COMPLETED
                )
                if not (beginning.done() or ending.done() or self._members):
                    raise ClusterError.of(
                        "runs.ray_nodes_lost", within_s=within_s, place=handle.place
                    )
            if not beginning.done():
                return False
            trouble = beginning.result()
        finally:
            for task in (beginning, ending):
                task.cancel()
            await asyncio.gather(beginning, ending, return_exceptions=True)
        if trouble is not None:
            self._stop.ask(trouble.by, error_of(trouble, handle.place))
        return trouble is None

    async def _exchange_messages(self, handle: WorkerHandle, member: _Member) -> None:
        grant = await self._grant(member)
        while True:
            report = await handle.exchange(grant, within_s=_LOST_AFTER_S)
            member.heard_at = time.monotonic()
            self._enter(member, report)
            if report.trouble is not None:
                self._stop.ask(report.trouble.by, error_of(report.trouble, handle.place))
            if report.ended:
                if not self._over.is_set():
                    raise WorkerLost(Message("runs.ray_unheard"), confirmed=True)
                self._ledger.close(member.number)
                del self._members[member.number]
                self.server_news.update(set(report.server_news))
                return
            grant = await self._grant(member)

    def _enter(self, member: _Member, report: WorkerReport) -> None:
        before, member.report = member.report, report
        new = self._ledger.enter(member.number, report)
        self._budget.add(new)
        self._budget.stop_where_unpriced()
        earlier = before.judges if before else (None,) * len(report.judges)
        for run_judge, now, then in zip(self._run_judges, report.judges, earlier, strict=True):
            for name in WORKER_COUNTED:
                new_count = now.counted[name] - (then.counted[name] if then else 0)
                setattr(run_judge.count, name, getattr(run_judge.count, name) + new_count)
        if new.calls:
            self._deaths = 0
        member.idle = report.idle
        for number in report.finished:
            member.shards.pop(number, None)

    async def _grant(self, member: _Member) -> Grant:
        report = member.report
        if self._stop.by is not None:
            return Grant(LEASED_S, stop=True)
        if report is None:
            wanting = range(len(self._run_judges))
            return Grant(LEASED_S, shards=await self._shards(member, wanting))
        loan = self._ledger.lease(member.number, report)
        if report.starving and not loan.calls and not loan.cost_usd:
            self._end_at_cap()
        wanting_now = [place for place, counts in enumerate(report.judges) if counts.wants_shard]
        shards = await self._shards(member, wanting_now)
        return Grant(
            LEASED_S,
            shards=shards,
            calls=loan.calls,
            cost_usd=loan.cost_usd,
            mean_cost_usd=self._ledger.mean_cost_usd,
            permits=tuple(self._permits(report)),
            done=self._is_done(),
            stop=self._stop.by is not None,
        )

    def _permits(self, report: WorkerReport) -> list[Permits]:
        now = time.monotonic()
        given = []
        for issuer, counts in zip(self._issuers, report.judges, strict=False):
            issuer.take_back(counts.unused)
            given.append(issuer.give(counts.wants, now))
        return given

    async def _shards(self, member: _Member, places: Sequence[int]) -> tuple[Shard, ...]:
        cut = []
        async with self._cutting:
            for place in places:
                if self._queues[place].is_empty:
                    continue
                shard = await asyncio.to_thread(self._queues[place].next)
                if shard is not None:
                    member.shards[shard.number] = shard
                    member.idle = False
                    cut.append(shard)
        return tuple(cut)

    def _is_done(self) -> bool:
        """Nothing is queued, and every worker is idle."""
        if self._over.is_set():
            return True
        if not all(queue.is_empty for queue in self._queues):
            return False
        # A shard is being cut for someone.
        if self._cutting.locked() or not all(each.idle for each in self._members.values()):
            return False
        repeating = [queue.begin_repeats() for queue in self._queues]
        if any(repeating):
            return False
        self._over.set()
        return True

    def _end_at_cap(self) -> None:
        reached = self._ledger.reached()
        if reached == "max-calls":
            self._budget.stop_at_calls()
        elif reached == "max-cost":
            self._budget.stop_at_cost()

    def _handle_loss(self, member: _Member | None, why: str) -> None:
        self._deaths += 1
        if member is not None:
            self.lost += 1
            self._ledger.handle_loss(member.number)
            del self._members[member.number]
            self._give_back(member)
        if self._stop.by is not None:
            return
        if self._deaths >= _DEATHS_IN_A_ROW * len(self._assignments):
            raise ClusterError.of("runs.ray_workers_lost", deaths=self._deaths, why=why)
        self._announce(Message("runs.ray_worker_lost", why=why))

    def _give_back(self, member: _Member) -> None:
        for shard in member.shards.values():
            self._queues[shard.judge_index].give_back(shard)
        if member.shards and self._stop.by is None:
            self._over.clear()
