"""Figures that take long are computed once, kept in the store and shared by its servers.

Measured: the conclusions of a million verdicts take seconds, and a page shows several figures; read
from the store they take a millisecond. Those of large runs are computed in a process of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from evenhand import __version__
from evenhand.contract import ErrorBody
from evenhand.contract.model import Model
from evenhand.errors import EvenhandError, StoreError
from evenhand.messages import WHOLE, Message
from evenhand.serve.figure_process import can_start, compute_apart, end_processes
from evenhand.serve.logs import log
from evenhand.serve.run_status import is_at_rest, needed_run, stamp_of
from evenhand.serve.values import error_body
from evenhand.store import RunRecord, Store
from evenhand.store.report_cache import LEASED_S, CachedReport, ReportKey

_T = TypeVar("_T", bound=Model)
_R = TypeVar("_R")
# What a figure's stamp follows: the verdicts alone, people's votes too, those and the judges' other
# runs, or how far the index is.
DependsOn = Literal["verdicts", "votes", "labels", "index"]

# A page waits so long for a figure that is being worked out. Those of small runs come by then;
# for others it waits only in the moment after they were begun, lest every look takes as long.
_AWAITED_S = 0.15
_SMALL_AWAITED_S = 0.25
_SMALL = 2_000
# A process takes a second to begin. What is computed in the server's own holds up pages: of so many
# pairs, for up to two seconds.
LARGE = 100_000
# A run that goes on changes all the time; its figures are worked out again after so long, and
# never so often that they would take more than a tenth of a processor.
_AGAIN_AFTER_S = 10.0
_AT_REST_AFTER_S = 2.0
_AGAIN_AFTER_TIMES = 10.0
_CLOSED_WITHIN_S = 2.0
# Figures that stay in memory as objects, by their size as JSON, of which they take about twelve
# times as much: those of a run with many models have megabytes.
_READ_BYTES = 16_000_000
_READ_AT_MOST = 128


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

    @property
    def waiting(self) -> bool:
        """A newer one is on its way, or will be when it is due: somebody has to ask again."""
        return self.computing or self.stale


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Generic[_T]):
    """Something that is computed from stored runs. `runs` are their ids or names: the first is
    the one that it is of. `what` and `parameters` tell it from the run's other figures."""

    what: str
    runs: tuple[str, ...]
    model: type[_T]
    compute: Callable[[Store, Sequence[RunRecord]], _T]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    depends_on: DependsOn = "verdicts"
    light: bool = False  # the database does nearly all of it

    def now(self, store: Store) -> _T:
        """Computed in this process."""
        return self.compute(store, [needed_run(store, each) for each in self.runs])

    def body(self, store: Store) -> bytes:
        """As JSON, messages with their codes."""
        return self.now(store).model_dump_json(context=WHOLE).encode()


class _Cached(Generic[_T]):
    """A figure and its place in the store's cache; for threads, like everything that asks it."""

    def __init__(self, store: Store, figure: Figure[_T]) -> None:
        self._store = store
        self._figure = figure
        self._runs = [needed_run(store, each) for each in figure.runs]
        ids = [run.id for run in self._runs]
        self.key = ReportKey.of(ids[0], figure.what, {**figure.parameters, "runs": ids})
        self.model = figure.model
        self.at_rest = is_at_rest(self._runs[0])
        items = sum(map(store.count_items, ids))
        self.small = items <= _SMALL
        self._apart = items > LARGE and not figure.light and can_start()

    def find(self) -> tuple[str, CachedReport | None]:
        """The stamp of the runs as they are now, and what is cached, at whatever stamp."""
        store = self._store
        now = [store.run_at(run.id) or run for run in self._runs]
        parts = [__version__, *(stamp_of(store, run) for run in now)]
        if self._figure.depends_on in ("votes", "labels"):
            parts.append(store.report_cache.votes_stamp())
        if self._figure.depends_on == "labels":
            parts += [store.judges_runs_stamp(run.id) for run in now]
        if self._figure.depends_on == "index":
            parts.append(str(store.index_state(self._runs[0].id).indexed))
        return "; ".join(parts), store.report_cache.find(self.key)

    def now(self) -> _T:
        if self._apart:
            return self.model.model_validate_json(compute_apart(self._store, self._figure))
        return self._figure.now(self._store)

    def compute(self) -> tuple[bytes, ErrorBody | None]:
        """The figure as JSON, or why there is none."""
        try:
            if self._apart:
                return compute_apart(self._store, self._figure), None
            return self._figure.body(self._store), None
        except EvenhandError as error:
            body = error_body(error)
            if isinstance(error, StoreError):
                body = body.model_copy(update={"retryable": True})
        except Exception as error:  # one figure fails, and not the process that computes them all
            log.exception("computing a figure failed by a mistake of ours")
            name = type(error).__name__
            body = ErrorBody(
                kind="internal", message=Message("serve.bug", name=name), retryable=True
            )
        return body.model_dump_json(context=WHOLE).encode(), body


def cached_or_now(store: Store, figure: Figure[_T]) -> _T:
    """For threads: what is cached of the runs as they are, else computed and not kept."""
    cached = _Cached(store, figure)
    found = _current(cached)
    return cached.now() if found is None else found


def if_cached(store: Store, figure: Figure[_T]) -> _T | None:
    """For threads that should not wait."""
    return _current(_Cached(store, figure))


def _current(cached: _Cached[_T]) -> _T | None:
    stamp, report = cached.find()
    if report is not None and report.stamp == stamp and report.body and not report.failed:
        with contextlib.suppress(ValidationError):
            return cached.model.model_validate_json(report.body)
    return None


class ReportCache:
    """Of one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owner = uuid.uuid4().hex
        # One at a time, so that pages get their share of two processors; and one of a small run,
        # which need not wait for a million verdicts.
        self._rooms = {small: asyncio.Semaphore(1) for small in (True, False)}
        self._begun: dict[ReportKey, tuple[asyncio.Task[None], float]] = {}
        self._read: dict[ReportKey, tuple[float, int, Any]] = {}
        self._ending = False

    async def get(self, figure: Figure[_T]) -> CachedFigure[_T]:
        """The newest there is; a newer one is begun where that is due."""
        return self._as_of(*await self._newest(figure))

    async def _newest(self, figure: Figure[_T]) -> tuple[_Cached[_T], str, CachedReport | None]:
        cached = await asyncio.to_thread(_Cached, self._store, figure)
        stamp, report = await asyncio.to_thread(cached.find)
        if report is None or report.stamp != stamp:
            if self._is_due(report, at_rest=cached.at_rest, small=cached.small):
                self._begin(cached)
            if await self._came(cached.key, small=cached.small):
                stamp, report = await asyncio.to_thread(cached.find)
        return cached, stamp, report

    @staticmethod
    def _is_due(report: CachedReport | None, *, at_rest: bool, small: bool) -> bool:
        if report is None or report.computed_at is None or (at_rest and small):
            return True
        least = _AT_REST_AFTER_S if at_rest else _AGAIN_AFTER_S
        age = time.time() - report.computed_at
        return age >= max(least, _AGAIN_AFTER_TIMES * (report.took_s or 0))

    def _as_of(
        self, cached: _Cached[_T], stamp: str, report: CachedReport | None
    ) -> CachedFigure[_T]:
        begun = cached.key in self._begun
        if report is None or report.body is None or report.computed_at is None:
            computing = begun or (report is not None and report.leased)
            return CachedFigure(None, computing, stale=True, error=None, at=None)
        stale = report.stamp != stamp
        value, error = None, None
        if report.failed:
            error = ErrorBody.model_validate_json(report.body)
        else:
            value = self._parsed(cached, report)
        return CachedFigure(
            value,
            computing=(stale or value is None) and (begun or report.leased),
            stale=stale,
            error=error,
            at=datetime.fromtimestamp(report.computed_at, UTC),
        )

    def _parsed(self, cached: _Cached[_T], report: CachedReport) -> _T | None:
        """Read once for each version of it: a ranking of many models is a long text."""
        at, _, value = self._read.pop(cached.key, (None, 0, None))
        body = report.body or b""
        if at != report.computed_at:
            try:
                value = cached.model.model_validate_json(body)
            except ValidationError:
                return None  # of another evenhand, whose stamp is another too
        self._read[cached.key] = (report.computed_at or 0.0, len(body), value)
        if len(self._read) > _READ_AT_MOST:
            del self._read[next(iter(self._read))]  # the longest unread
        # One of megabytes makes room for another, and not forty that are read all the time.
        while sum(size for _, size, _ in self._read.values()) > _READ_BYTES and len(self._read) > 1:
            *others, _ = self._read
            del self._read[max(others, key=lambda key: self._read[key][1])]
        return value

    def _begin(self, cached: _Cached[Any]) -> None:
        if cached.key not in self._begun and not self._ending:
            task = asyncio.create_task(self._make(cached))
            self._begun[cached.key] = (task, time.monotonic())
            task.add_done_callback(lambda _: self._begun.pop(cached.key, None))

    async def _came(self, key: ReportKey, *, small: bool) -> bool:
        """Whether it came while somebody might wait for it."""
        task, at = self._begun.get(key, (None, 0.0))
        left = _SMALL_AWAITED_S if small else at + _AWAITED_S - time.monotonic()
        if task is None or left <= 0:
            return False
        done, _ = await asyncio.wait([task], timeout=left)
        return bool(done)

    async def _make(self, cached: _Cached[Any]) -> None:
        kept, key = self._store.report_cache, cached.key
        async with self._rooms[cached.small]:
            try:
                # Before it is made: what changes meanwhile makes it old, and not new.
                stamp, report = await asyncio.to_thread(cached.find)
                if report is not None and report.stamp == stamp:
                    return
                if self._ending or not await asyncio.to_thread(kept.take, key, self._owner):
                    return
                renewing = asyncio.create_task(self._renew(key))
                try:
                    begun = time.monotonic()
                    body, failed = await _in_thread(cached.compute)
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
            except asyncio.CancelledError:  # the server ends: the next one need not wait
                with contextlib.suppress(EvenhandError):
                    kept.let_go(key, self._owner)
                raise
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
                await asyncio.to_thread(self._store.report_cache.renew, key, self._owner)

    async def prepare(self, figures: Sequence[Figure[Any]]) -> None:
        """Compute them before anybody asks, one after the other."""
        for figure in figures:
            with contextlib.suppress(EvenhandError):
                await self._newest(figure)  # and nothing is read: nobody may ever ask
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
        await asyncio.to_thread(end_processes, self._store)


async def _in_thread(work: Callable[[], _R]) -> _R:
    """In a thread that nobody waits for when the process ends: it may take minutes."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[_R] = loop.create_future()

    def settle(value: _R) -> None:
        if not made.done():
            made.set_result(value)

    def run() -> None:
        value = work()
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, value)

    threading.Thread(target=run, name="evenhand-figure", daemon=True).start()
    return await made
