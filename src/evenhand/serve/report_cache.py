"""Figures that take long are computed once, kept in the store and shared by its servers; with the
totals behind the filters of a run's table.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections import Counter as Tallied
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from evenhand import __version__
from evenhand.contract import ErrorBody
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.contract.model import Model
from evenhand.errors import EvenhandError, StoreError
from evenhand.messages import WHOLE
from evenhand.report.run import RunReport
from evenhand.serve.logs import log
from evenhand.serve.run_status import is_at_rest, needed_run, stamp_of
from evenhand.serve.values import AuditRun, RankRuns, error_body
from evenhand.store import RunRecord, Store
from evenhand.store.report_cache import LEASED_S, CachedReport, ReportKey
from evenhand.store.verdict_index import (
    ABSTAINED,
    DISAGREES,
    JUDGES_DIFFER,
    LABELLED,
    NOTED,
    UNREAD,
)

if TYPE_CHECKING:
    from evenhand.report.conclusions import Conclusions, Side, Ties
    from evenhand.report.ranking import RunRanking
    from evenhand.serve.reports import AuditReport, Report


def report_model() -> type[Report]:
    from evenhand.serve.reports import Report

    return Report


def conclusions_model() -> type[Conclusions]:
    from evenhand.report.conclusions import Conclusions

    return Conclusions


def ranking_model() -> type[RunRanking]:
    from evenhand.report.ranking import RunRanking

    return RunRanking


def audit_model() -> type[AuditReport]:
    from evenhand.serve.reports import AuditReport

    return AuditReport


# What the filters of a run's table can be set to, and how many verdicts each would show.


class JudgeTotals(Model):
    """The four outcomes are of all its verdicts; the rest are of those that are marked so far."""

    judge: str
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int
    pending: int
    abstained: int
    noted: int
    unread: int
    disagrees: int  # with labels
    labelled: int
    judges_differ: int


class Counted(Model):
    """A tag, and how many pairs have it."""

    name: str
    count: int


class CriterionTotals(Model):
    """How one criterion came out, in all judges' verdicts."""

    name: str
    count: int
    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int


class RunTotals(Model):
    """`marked` of `verdicts` are in the table so far."""

    pairs: int
    verdicts: int
    marked: int
    judges: tuple[JudgeTotals, ...]
    tags: tuple[Counted, ...]  # the most frequent first, at most 1,000
    criteria: tuple[CriterionTotals, ...]  # in the order in which they first come
    models: tuple[str, ...] = ()  # by name; of the first 1,000 that meet
    # Whether A is the same model in every pair, and B is: then labels say what models would. Not
    # known before all verdicts are marked.
    one_contest: bool = False

    @property
    def whole(self) -> bool:
        return self.marked >= self.verdicts


def read_totals(store: Store, run: RunRecord) -> RunTotals:
    counted = store.count_marked(run.id)
    pairs = store.count_items(run.id)
    job = store.jobs.find(run.id)
    offered = job.judges if job else ()
    judges = []
    for place, judge in enumerate(store.run_judges(run.id)):
        ends = counted.outcomes.get(judge.id, Tallied())
        flags: Tallied[int] = Tallied()
        for (_, each), count in counted.endings.get(judge.id, Tallied()).items():
            flags[each] += count

        def with_flag(flag: int, flags: Tallied[int] = flags) -> int:
            return sum(count for each, count in flags.items() if each & flag)

        def of(outcome: str, ends: Tallied[tuple[str, str | None]] = ends) -> int:
            return sum(count for (each, _), count in ends.items() if each == outcome)

        judges.append(
            JudgeTotals(
                judge=offered[place] if place < len(offered) else judge.name,
                wins_a=ends["win", "A"],
                wins_b=ends["win", "B"],
                ties=of("tie"),
                inconsistent=of("inconsistent"),
                invalid=of("invalid"),
                pending=pairs - ends.total(),
                abstained=with_flag(ABSTAINED),
                noted=with_flag(NOTED),
                unread=with_flag(UNREAD),
                disagrees=with_flag(DISAGREES),
                labelled=with_flag(LABELLED),
                judges_differ=with_flag(JUDGES_DIFFER),
            )
        )
    verdicts = sum(ends.total() for ends in counted.outcomes.values())
    marked = sum(ends.total() for ends in counted.endings.values())
    return RunTotals(
        pairs=pairs,
        verdicts=verdicts,
        marked=marked,
        judges=tuple(judges),
        tags=tuple(Counted(name=name, count=count) for name, count in counted.tags),
        criteria=tuple(
            _criterion(name, sum(of_judges.values(), Tallied()))
            for name, of_judges in counted.criteria.items()
        ),
        models=tuple(
            sorted({name for met in counted.contests for name in met if name is not None})
        ),
        one_contest=len(counted.contests) < 2 and marked >= verdicts,
    )


def _criterion(name: str, codes: Tallied[int]) -> CriterionTotals:
    return CriterionTotals(
        name=name,
        count=codes.total(),
        wins_a=codes[WIN_A],
        wins_b=codes[WIN_B],
        ties=codes[TIE],
        inconsistent=codes[INCONSISTENT],
        invalid=codes[INVALID],
    )


# Figures that take long are worked out once, kept in the store, and shared by its servers.

_T = TypeVar("_T", bound=Model)
_R = TypeVar("_R")
# What a figure's stamp follows: the verdicts alone, people's votes too, or how far marks are.
DependsOn = Literal["verdicts", "votes", "marks"]

_AT_ONCE = 2
# A page waits so long for a figure that is being worked out. Those of small runs come by then;
# for others it waits only in the moment after they were begun, lest every look takes as long.
_AWAITED_S = 0.15
_SMALL_AWAITED_S = 0.25
_SMALL = 2_000
# A run that goes on changes all the time; its figures are worked out again after so long, and
# never so often that they would take more than a tenth of a processor.
_AGAIN_AFTER_S = 10.0
_AT_REST_AFTER_S = 2.0
_AGAIN_AFTER_TIMES = 10.0
_CLOSED_WITHIN_S = 2.0
_READ_AT_MOST = 64


@dataclass(frozen=True, slots=True)
class CachedFigure(Generic[_T]):
    """`value` is None until it was worked out for the first time, or where that failed.

    `computing`: a newer one is being worked out; the page says so, and comes back by itself.
    `stale`: the run has changed since `at`.
    """

    value: _T | None
    computing: bool
    stale: bool
    error: ErrorBody | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class _Figure(Generic[_T]):
    key: ReportKey
    model: type[_T]
    work: Callable[[], _T]
    stamp: Callable[[], str]


class ReportCache:
    """`service.kept`, of one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owner = uuid.uuid4().hex
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._begun: dict[ReportKey, tuple[asyncio.Task[None], float]] = {}
        self._read: dict[ReportKey, tuple[float, Any]] = {}
        self._ending = False

    async def totals(self, run_id: str) -> CachedFigure[RunTotals]:
        return await self.figure(run_id, "totals", {}, RunTotals, read_totals, depends_on="marks")

    async def report(self, run_id: str) -> CachedFigure[RunReport]:
        """What the run was, took and cost (`report_run`), without addresses."""

        def work(store: Store, run: RunRecord) -> RunReport:
            from evenhand.serve.reports import read_run_report

            return read_run_report(store, run)

        return await self.figure(run_id, "report", {}, RunReport, work)

    async def conclusions(
        self, run_id: str, *, side: Side = "B", ties: Ties = "half", level: float = 0.95
    ) -> CachedFigure[Conclusions]:
        def work(store: Store, run: RunRecord) -> Conclusions:
            from evenhand.serve.reports import read_conclusions

            return read_conclusions(store, run, side=side, ties=ties, level=level)

        parameters = {"side": side, "ties": ties, "level": level}
        model = await asyncio.to_thread(conclusions_model)
        return await self.figure(run_id, "conclusions", parameters, model, work)

    async def ranking(self, request: RankRuns) -> CachedFigure[RunRanking]:
        runs = await asyncio.to_thread(self._runs, request.runs)

        def work(store: Store, _: RunRecord) -> RunRanking:
            from evenhand.serve.reports import read_ranking

            return read_ranking(store, runs, request)

        ids = [run.id for run in runs]
        parameters = {**request.model_dump(mode="json"), "runs": ids}
        first = str(ids[0])
        model = await asyncio.to_thread(ranking_model)
        return await self.figure(first, "ranking", parameters, model, work, beside=runs[1:])

    async def audit(self, request: AuditRun) -> CachedFigure[AuditReport]:
        wanted = (request.run,) if request.against is None else (request.run, request.against)
        runs = await asyncio.to_thread(self._runs, wanted)
        against = runs[1] if len(runs) > 1 else None

        def work(store: Store, run: RunRecord) -> AuditReport:
            from evenhand.serve.reports import read_audit

            return read_audit(store, run, against, request)

        ids = {"run": runs[0].id, "against": against.id if against else None}
        parameters = {**request.model_dump(mode="json"), **ids}
        return await self.figure(
            str(runs[0].id),
            "audit",
            parameters,
            await asyncio.to_thread(audit_model),
            work,
            depends_on="votes",
            beside=runs[1:],
        )

    def _runs(self, wanted: tuple[str, ...]) -> list[RunRecord]:
        return [needed_run(self._store, each) for each in wanted]

    async def figure(
        self,
        run_id: str,
        what: str,
        parameters: Mapping[str, Any],
        model: type[_T],
        work: Callable[[Store, RunRecord], _T],
        *,
        depends_on: DependsOn = "verdicts",
        beside: list[RunRecord] | None = None,
    ) -> CachedFigure[_T]:
        """Any figure: `what` and `parameters` name it, `work` makes it in a thread.

        `beside` are other runs that it is made of.
        """
        store = self._store

        def named() -> tuple[RunRecord, _Figure[_T], bool]:
            run = needed_run(store, run_id)
            runs = [run, *(beside or ())]
            key = ReportKey.of(run.id, what, dict(parameters))

            def stamp() -> str:
                stood = [store.run_at(each.id) or each for each in runs]
                told = [__version__, *(stamp_of(store, each) for each in stood)]
                if depends_on == "votes":
                    told.append(store.kept.votes_stamp())
                if depends_on == "marks":
                    told.append(str(store.index_state(run.id).marked))
                return "; ".join(told)

            small = all(store.count_items(each.id) <= _SMALL for each in runs)
            return run, _Figure(key, model, lambda: work(store, run), stamp), small

        run, figure, small = await asyncio.to_thread(named)
        stamp, found = await asyncio.to_thread(self._found, figure)
        if found is None or found.stamp != stamp:
            if self._is_due(found, at_rest=is_at_rest(run), small=small):
                self._begin(figure)
            if await self._came(figure.key, small=small):
                stamp, found = await asyncio.to_thread(self._found, figure)
        return self._kept(figure, stamp, found)

    def _found(self, figure: _Figure[Any]) -> tuple[str, CachedReport | None]:
        return figure.stamp(), self._store.kept.find(figure.key)

    @staticmethod
    def _is_due(found: CachedReport | None, *, at_rest: bool, small: bool) -> bool:
        if found is None or found.computed_at is None:
            return True
        if at_rest and small:
            return True
        least = _AT_REST_AFTER_S if at_rest else _AGAIN_AFTER_S
        age = time.time() - found.computed_at
        return age >= max(least, _AGAIN_AFTER_TIMES * (found.took_s or 0))

    def _kept(
        self, figure: _Figure[_T], stamp: str, found: CachedReport | None
    ) -> CachedFigure[_T]:
        begun = figure.key in self._begun
        if found is None or found.body is None or found.computed_at is None:
            computing = begun or (found is not None and found.leased)
            return CachedFigure(None, computing, stale=True, error=None, at=None)
        stale = found.stamp != stamp
        value, error = None, None
        if found.failed:
            error = ErrorBody.model_validate_json(found.body)
        else:
            value = self._parsed(figure, found)
        return CachedFigure(
            value,
            computing=(stale or value is None) and (begun or found.leased),
            stale=stale,
            error=error,
            at=datetime.fromtimestamp(found.computed_at, UTC),
        )

    def _parsed(self, figure: _Figure[_T], found: CachedReport) -> _T | None:
        """Read once for each version of it: a ranking of many models is a long text."""
        at, value = self._read.get(figure.key, (None, None))
        if at == found.computed_at:
            return value
        try:
            value = figure.model.model_validate_json(found.body or b"")
        except ValidationError:
            return None  # of another evenhand, whose stamp is another too
        self._read.pop(figure.key, None)
        while len(self._read) >= _READ_AT_MOST:
            del self._read[next(iter(self._read))]
        self._read[figure.key] = (found.computed_at or 0.0, value)
        return value

    # Working out

    def _begin(self, figure: _Figure[Any]) -> None:
        if figure.key not in self._begun and not self._ending:
            task = asyncio.create_task(self._make(figure))
            self._begun[figure.key] = (task, time.monotonic())
            task.add_done_callback(lambda _: self._begun.pop(figure.key, None))

    async def _came(self, key: ReportKey, *, small: bool) -> bool:
        """Whether it came while somebody might wait for it."""
        task, at = self._begun.get(key, (None, 0.0))
        left = _SMALL_AWAITED_S if small else at + _AWAITED_S - time.monotonic()
        if task is None or left <= 0:
            return False
        done, _ = await asyncio.wait([task], timeout=left)
        return bool(done)

    async def _make(self, figure: _Figure[Any]) -> None:
        kept, key = self._store.kept, figure.key
        async with self._room:
            try:
                # Before it is made: what changes meanwhile makes it old, and not new.
                stamp, found = await asyncio.to_thread(self._found, figure)
                if found is not None and found.stamp == stamp:
                    return
                if self._ending or not await asyncio.to_thread(kept.take, key, self._owner):
                    return
                renewing = asyncio.create_task(self._renew(key))
                try:
                    begun = time.monotonic()
                    body, failed = await _in_thread(lambda: _body(figure))
                finally:
                    renewing.cancel()
                took_s = time.monotonic() - begun
                if failed is not None and failed.retryable:
                    stamp = ""  # of no state at all, so that it is tried again
                await asyncio.to_thread(
                    kept.put,
                    key,
                    self._owner,
                    body,
                    stamp=stamp,
                    took_s=took_s,
                    failed=failed is not None,
                )
            except EvenhandError as error:
                log.warning("figures wait for the store: %s", error.message)
            except Exception:
                log.exception("keeping a figure failed by a mistake of ours")
                with contextlib.suppress(EvenhandError):
                    await asyncio.to_thread(kept.let_go, key, self._owner)

    async def _renew(self, key: ReportKey) -> None:
        while True:
            await asyncio.sleep(LEASED_S / 3)
            with contextlib.suppress(EvenhandError):
                await asyncio.to_thread(self._store.kept.renew, key, self._owner)

    async def make_usual(self, run: RunRecord) -> None:
        """What every run's page shows, worked out before anybody asks."""
        run_id = str(run.id)
        with contextlib.suppress(EvenhandError):
            for ask in (self.totals, self.report, self.conclusions):
                await ask(run_id)
                # One after the other: nobody waits for them.
                await asyncio.gather(
                    *(task for task, _ in self._begun.values()), return_exceptions=True
                )

    async def close(self) -> None:
        """What is small comes to its end; what is not is begun again by the next server."""
        self._ending = True
        tasks = [task for task, _ in self._begun.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSED_WITHIN_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _body(figure: _Figure[Any]) -> tuple[bytes, ErrorBody | None]:
    """The figure as JSON, or why there is none."""
    try:
        return figure.work().model_dump_json(context=WHOLE).encode(), None
    except EvenhandError as error:
        told = error_body(error)
        if isinstance(error, StoreError):
            told = told.model_copy(update={"retryable": True})
    except Exception:
        log.exception("working out a figure failed by a mistake of ours")
        told = ErrorBody(
            kind="internal", message="this figure could not be worked out", retryable=True
        )
    return told.model_dump_json(context=WHOLE).encode(), told


async def _in_thread(work: Callable[[], _R]) -> _R:
    """In a thread that nobody waits for when the process ends: it may take minutes."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[_R] = loop.create_future()

    def tell(value: _R) -> None:
        if not made.done():
            made.set_result(value)

    def run() -> None:
        value = work()
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, value)

    threading.Thread(target=run, name="evenhand-figure", daemon=True).start()
    return await made
