"""The executor of `--executor ray`, and what it refuses up front."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from yarl import URL

from evenhand.errors import EvenhandError, InputError, MissingExtra, StoreError
from evenhand.judges.prepared import writer_of
from evenhand.judges.redaction import shown_url
from evenhand.judges.registry import JudgeName
from evenhand.judging.config import JudgeConfig
from evenhand.messages import Message, chained
from evenhand.runs.executor import RunContext, RunJudge
from evenhand.runs.local import LocalExecutor, PreparingQueue
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan
from evenhand.runs.ray.cluster import Cluster, joined
from evenhand.runs.ray.messages import Assignment, JudgeTask
from evenhand.runs.ray.pool import LEASED_S, WorkerPool
from evenhand.store import RunRecord, Store

_SECRET_PARTS = ("key", "token", "secret", "sig", "password")


def refuse_what_ray_cannot(store: Store, judges: Sequence[JudgePlan], options: RunOptions) -> None:
    if not store.address.startswith("postgresql://"):
        raise InputError.of("runs.ray_needs_postgres", address=store.address)
    address = options.ray_address or ""
    if address.startswith("ray://"):
        raise InputError.of("runs.ray_client_address", address=address)
    for plan in judges:
        _refuse_judge(plan)
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra("ray", "ray")


def _refuse_judge(plan: JudgePlan) -> None:
    if plan.config.judge is None:
        raise InputError.of("runs.ray_judge_of_process", name=plan.judge.name)
    _refuse_model(plan.judge.name, plan.config)
    writer = writer_of(plan.judge)
    if writer is not plan.judge:
        named = plan.config.writer or replace(plan.config, judge=plan.config.prepare_with)
        _refuse_model(writer.name, named)


def _refuse_model(name: str, config: JudgeConfig) -> None:
    kind = JudgeName.read(config.judge or "").kind
    if kind in ("local", "replay"):
        why = Message("runs.ray_one_at_a_time") if kind == "local" else Message("runs.ray_own_file")
        raise InputError.of("runs.ray_judge_unfit", name=name, why=why)
    for address in config.base_urls:
        if _has_secrets(address):
            raise InputError.of("runs.ray_base_url_credentials", address=shown_url(address))


def _has_secrets(address: str) -> bool:
    try:
        url = URL(address.strip())
    except ValueError:
        return "@" in address
    named = " ".join(url.query).lower()
    return bool(url.user or url.password) or any(part in named for part in _SECRET_PARTS)


_SPENT = ("requests", "input_tokens", "output_tokens", "cost_usd")
_NEWS_AT_MOST = 8
_MOST_WORKERS = 16  # by default: each takes a core and some connections to the database
_PAIRS_EACH = 16  # fewer are not worth another process
_LOOKED_EVERY_S = 0.2
_GRACE_S = 10.0


class RayExecutor:
    def __init__(self, context: RunContext, run: RunRecord, judges: Sequence[JudgePlan]) -> None:
        options = context.options
        self._context = context
        self._store = context.store
        self._run = run
        self._judges = judges
        self._options = options
        self._stop = context.stop
        self._announce = context.observer.announce
        self._notes: list[str] = []
        # As for Ray's own commands: in a submitted job, the job's cluster.
        self._address = options.ray_address or os.environ.get("RAY_ADDRESS", "").strip() or None
        self._preparing: LocalExecutor | None = None
        self._pool: WorkerPool | None = None
        self._limit = options.concurrency or 1

    @property
    def in_flight(self) -> int:
        return self._now.in_flight if self._now else 0

    @property
    def limit(self) -> int:
        now = self._now.limit if self._now else 0
        self._limit = now or self._limit  # at the end there is nobody left to tell it
        return self._limit

    @property
    def paused_s(self) -> float:
        return self._now.paused_s if self._now else 0.0

    @property
    def trouble(self) -> str | None:
        return self._now.trouble if self._now else None

    @property
    def _now(self) -> WorkerPool | LocalExecutor | None:
        return self._pool or self._preparing

    def account(self) -> tuple[str, ...]:
        return tuple(self._notes)

    async def execute(self, run_id: int, run_judges: tuple[RunJudge, ...]) -> None:
        pending = sum(run_judge.count.pending for run_judge in run_judges)
        wanted = self._options.ray_workers or min(_own_cpus(), _MOST_WORKERS)
        self._announce(
            Message("runs.ray_joining", address=self._address)
            if self._address
            else Message("runs.ray_starting")
        )
        try:
            async with joined(
                self._address,
                cpus=wanted,
                environment=self._environment(),
                stop=self._stop,
            ) as cluster:
                if cluster is None:
                    return
                await self._await_earlier_workers()
                before = await asyncio.to_thread(self._spent, run_id)
                await self._prepare(run_id, run_judges)
                if self._stop.by is not None:
                    return
                count = self._workers(cluster, pending)
                self._announce_workers(cluster, count)
                await self._work(run_id, run_judges, count, before)
        except EvenhandError as error:
            self._stop.ask("store" if isinstance(error, StoreError) else "cluster", error)

    async def _prepare(self, run_id: int, run_judges: tuple[RunJudge, ...]) -> None:
        """Workers may have pairs of the same prompt: shared texts are written here first, and found
        in the store there."""
        preparing = tuple(each for each in run_judges if each.config.prepares(each.judge.traits))
        if preparing:
            self._announce(Message("runs.ray_prepares_first"))
            self._preparing = LocalExecutor(self._context, queue=PreparingQueue)
            await self._preparing.execute(run_id, preparing)

    async def _work(
        self,
        run_id: int,
        run_judges: tuple[RunJudge, ...],
        count: int,
        before: Mapping[str, float],
    ) -> None:
        from evenhand.runs.ray.actors import ActorHandle

        pool = self._pool = WorkerPool(
            partial(ActorHandle, self._announce),
            [self._assignment(run_id, run_judges, place, count) for place in range(count)],
            run_judges,
            self._context,
        )
        try:
            await pool.work()
        finally:
            self._note_server_news(pool)
            if pool.lost:
                self._note_lost_workers(pool)
                await self._count_anew(run_id, run_judges, before)

    def _environment(self) -> dict[str, str]:
        """For a Ray started here: its workers need the store's password."""
        whole = self._store.address_with_secrets
        return {} if whole is None else {"EVENHAND_STORE": whole}

    async def _await_earlier_workers(self) -> None:
        """The previous driver may just have died, and its workers not yet: their calls in flight
        would be made twice. None outlives its lease."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LEASED_S + _GRACE_S
        announced = False
        while self._stop.by is None and loop.time() < until:
            if not await asyncio.to_thread(self._store.has_workers, self._run.id):
                return
            if not announced:
                self._announce(Message("runs.ray_others_leave"))
            announced = True
            await asyncio.sleep(_LOOKED_EVERY_S)

    def _workers(self, cluster: Cluster, pending: int) -> int:
        named = self._options.ray_workers
        count = named or min(cluster.cpus, _MOST_WORKERS, -(-pending // _PAIRS_EACH))
        return max(1, min(count, self._options.concurrency or count))

    def _announce_workers(self, cluster: Cluster, count: int) -> None:
        self._announce(
            Message("runs.ray_workers_here", n=count)
            if self._address is None
            else Message("runs.ray_workers_on", n=count, nodes=cluster.nodes)
        )
        if len(cluster.hosts) > 1 and any(_is_here(plan) for plan in self._judges):
            self._notes.append(Message("runs.ray_localhost"))

    def _assignment(
        self, run_id: int, run_judges: tuple[RunJudge, ...], place: int, count: int
    ) -> Assignment:
        options, salt = self._options, self._run.plan.get("fresh")
        most = options.concurrency
        return Assignment(
            run_id=run_id,
            store=self._store.address,
            salt=salt,
            tasks=tuple(self._tasks(run_judges, salt)),
            # In all as many in flight as on one machine; the first workers take the remainder.
            concurrency=None if most is None else most // count + (place < most % count),
            paced_by_requests=options.rpm is not None,
            paced_by_tokens=options.tpm is not None,
            capped_calls=options.max_calls is not None,
            capped_cost=options.max_cost is not None,
            keep_going_unread=options.keep_going_unread,
            give_up_after_s=options.gives_up_after_s,
        )

    def _tasks(self, run_judges: tuple[RunJudge, ...], salt: str | None) -> Iterator[JudgeTask]:
        for run_judge, plan in zip(run_judges, self._judges, strict=True):
            yield JudgeTask(
                judge_id=run_judge.judge_id,
                config=_without_keys(plan.config),
                price=run_judge.price,
                writing_price=run_judge.writing_price,
                key=plan.record(salt=salt).key,
                name=plan.judge.name,
                proven=run_judge.count.proven,
            )

    def _note_server_news(self, pool: WorkerPool) -> None:
        """E.g. a fleet's server that is skipped; each worker has its own view."""
        for line, workers in pool.server_news.most_common(_NEWS_AT_MOST):
            self._notes.append(Message("runs.ray_reported_by", line=line, n=workers))

    def _note_lost_workers(self, pool: WorkerPool) -> None:
        notes = [Message("runs.ray_lost", n=pool.lost)]
        if pool.lost_calls:
            notes.append(Message("runs.ray_lost_calls", n=pool.lost_calls))
        self._notes.append(chained(notes))

    def _spent(self, run_id: int) -> dict[str, float]:
        """By all commands of the run, as far as known, on passes and prepared texts."""
        made = self._store.verdicts.tally(run_id).made
        prepared = self._store.answers.spent(run_id, artefacts=True)
        return {
            name: (getattr(made, name) or 0) + (getattr(prepared, name) or 0) for name in _SPENT
        }

    async def _count_anew(
        self, run_id: int, run_judges: tuple[RunJudge, ...], before: Mapping[str, float]
    ) -> None:
        """The store has what a lost worker could not report."""
        for run_judge in run_judges:
            tally = await asyncio.to_thread(self._store.verdicts.tally, run_id, run_judge.judge_id)
            for name, count in tally.outcomes.items():
                setattr(run_judge.count, name, count)
        spent, budget = await asyncio.to_thread(self._spent, run_id), self._context.budget
        for name, amount in spent.items():
            counted = "calls" if name == "requests" else name
            setattr(budget, counted, max(getattr(budget, counted), amount - before[name]))


def _without_keys(config: JudgeConfig) -> JudgeConfig:
    writer = None if config.writer is None else _without_keys(config.writer)
    return replace(config, api_key=None, cache_dir=None, writer=writer)


def _own_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_here(plan: JudgePlan) -> bool:
    return any("//localhost" in each or "//127." in each for each in plan.config.base_urls)
