"""Figures of stored runs: computed once, kept in the store and shared by its servers.

Measured: the conclusions of a million verdicts take seconds, and a page shows several figures; read
from the store they take a millisecond. Those of large runs are computed in processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
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
from evenhand.serve.figure_pool import FigurePool, can_start
from evenhand.serve.logs import log
from evenhand.serve.run_status import is_at_rest, needed_run, stamp_of
from evenhand.serve.values import error_body
from evenhand.store import RunRecord, Store
from evenhand.store.figures import FigureKey, StoredFigure

_T = TypeVar("_T", bound=Model)
# What a figure's stamp follows: the verdicts alone, people's votes too, or those and the judges'
# other runs.
DependsOn = Literal["verdicts", "votes", "labels"]

# A page waits so long for a figure that is being computed. Those of small runs come by then; for
# others it waits only in the moment after they were begun, lest every look takes as long.
_AWAITED_S = 0.15
_SMALL_AWAITED_S = 0.25
_SMALL = 2_000
# A process takes a second to begin. What is computed in the server's own holds up pages: of so many
# pairs, for less than that.
LARGE = 20_000
# A run that goes on changes all the time; its figures are computed again after so long, and never
# so often that they would take more than a tenth of a processor.
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
    """`value` is None until it was computed for the first time, or where that failed.

    `computing`: a newer one is being computed; the page says so, and comes back by itself.
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
    the one that it is of. `name` and `parameters` tell it from the run's other figures."""

    name: str
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


class _Subject(Generic[_T]):
    """A figure, the runs that it is of, and its place in the store; for threads, like everything
    that asks it."""

    def __init__(self, store: Store, figure: Figure[_T]) -> None:
        self._store = store
        self.figure = figure
        self._runs = [needed_run(store, each) for each in figure.runs]
        ids = [run.id for run in self._runs]
        self.key = FigureKey.of(ids[0], figure.name, {**figure.parameters, "runs": ids})
        self.at_rest = is_at_rest(self._runs[0])
        items = sum(map(store.items.count, ids))
        self.small = items <= _SMALL
        self.apart = items > LARGE and not figure.light and can_start()

    def find(self) -> tuple[str, StoredFigure | None]:
        """The stamp of the runs as they are now, and what is kept, at whatever stamp."""
        store = self._store
        now = [store.runs.at(run.id) or run for run in self._runs]
        parts = [__version__, *(stamp_of(store, run) for run in now)]
        if self.figure.depends_on in ("votes", "labels"):
            parts.append(store.figures.votes_stamp())
        if self.figure.depends_on == "labels":
            parts += [store.runs.judges_stamp(run.id) for run in now]
        return "; ".join(parts), store.figures.find(self.key)

    def parsed(self, stored: StoredFigure) -> _T | None:
        with contextlib.suppress(ValidationError):  # of another evenhand, whose stamp is another
            return self.figure.model.model_validate_json(stored.body or b"")
        return None


class FigureCache:
    """Of one server process and one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pool = FigurePool(store.address_with_secrets or store.address)
        # One at a time, so that pages get their share of two processors; and one of a small run,
        # which need not wait for a million verdicts.
        self._rooms = {small: asyncio.Semaphore(1) for small in (True, False)}
        self._begun: dict[FigureKey, tuple[asyncio.Task[None], float]] = {}
        self._read: OrderedDict[FigureKey, tuple[float, int, Any]] = OrderedDict()
        self._ending = False

    def now(self, figure: Figure[_T]) -> _T:
        """For threads: what is kept of the runs as they are, else computed and kept; raises what
        computing it raises."""
        subject = _Subject(self._store, figure)
        stamp, stored = subject.find()
        if stored is not None and stored.stamp == stamp and not stored.failed:
            value = subject.parsed(stored)
            if value is not None:
                return value
        number = self._store.figures.begin(subject.key)
        begun = time.monotonic()
        try:
            body = self._compute(subject)
        except BaseException:
            if number is not None:
                self._store.figures.let_go(number)
            raise
        if number is not None:
            took_s = time.monotonic() - begun
            self._store.figures.keep(number, body, stamp=stamp, took_s=took_s)
        return figure.model.model_validate_json(body)

    async def get(self, figure: Figure[_T]) -> CachedFigure[_T]:
        """The newest there is; a newer one is begun where that is due."""
        subject = await asyncio.to_thread(_Subject, self._store, figure)
        stamp, stored = await asyncio.to_thread(subject.find)
        if stored is None or stored.stamp != stamp:
            if self._is_due(stored, at_rest=subject.at_rest, small=subject.small):
                self._begin(subject)
            if await self._came(subject):
                stamp, stored = await asyncio.to_thread(subject.find)
        return self._as_of(subject, stamp, stored)

    @staticmethod
    def _is_due(stored: StoredFigure | None, *, at_rest: bool, small: bool) -> bool:
        if stored is None or stored.computed_at is None or (at_rest and small):
            return True
        least = _AT_REST_AFTER_S if at_rest else _AGAIN_AFTER_S
        age = time.time() - stored.computed_at
        return age >= max(least, _AGAIN_AFTER_TIMES * (stored.took_s or 0))

    def _as_of(
        self, subject: _Subject[_T], stamp: str, stored: StoredFigure | None
    ) -> CachedFigure[_T]:
        computing = subject.key in self._begun or (stored is not None and stored.computing)
        if stored is None or stored.body is None or stored.computed_at is None:
            return CachedFigure(None, computing, stale=True, error=None, at=None)
        stale = stored.stamp != stamp
        value, error = None, None
        if stored.failed:
            error = ErrorBody.model_validate_json(stored.body)
        else:
            value = self._parsed(subject, stored)
        return CachedFigure(
            value,
            computing=(stale or value is None) and computing,
            stale=stale,
            error=error,
            at=datetime.fromtimestamp(stored.computed_at, UTC),
        )

    def _parsed(self, subject: _Subject[_T], stored: StoredFigure) -> _T | None:
        """Read once for each version of it: a ranking of many models is a long text."""
        at, _, value = self._read.pop(subject.key, (None, 0, None))
        if at != stored.computed_at:
            value = subject.parsed(stored)
        self._read[subject.key] = (stored.computed_at or 0.0, len(stored.body or b""), value)
        while len(self._read) > 1 and (
            len(self._read) > _READ_AT_MOST
            or sum(size for _, size, _ in self._read.values()) > _READ_BYTES
        ):
            self._read.popitem(last=False)  # the longest unread
        return value

    def _begin(self, subject: _Subject[Any]) -> None:
        if subject.key not in self._begun and not self._ending:
            task = asyncio.create_task(self._make(subject))
            self._begun[subject.key] = (task, time.monotonic())
            task.add_done_callback(lambda _: self._begun.pop(subject.key, None))

    async def _came(self, subject: _Subject[Any]) -> bool:
        """Whether it came while somebody might wait for it."""
        task, at = self._begun.get(subject.key, (None, 0.0))
        left = _SMALL_AWAITED_S if subject.small else at + _AWAITED_S - time.monotonic()
        if task is None or left <= 0:
            return False
        done, _ = await asyncio.wait([task], timeout=left)
        return bool(done)

    async def _make(self, subject: _Subject[Any]) -> None:
        kept = self._store.figures
        number: int | None = None
        async with self._rooms[subject.small]:
            try:
                # Before it is made: what changes meanwhile makes it old, and not new.
                stamp, stored = await asyncio.to_thread(subject.find)
                if self._ending or (stored is not None and stored.stamp == stamp):
                    return
                number = await asyncio.to_thread(kept.begin, subject.key)
                if number is None:
                    return
                begun = time.monotonic()
                body, failed = await asyncio.to_thread(self._computed, subject)
                if failed is not None and failed.retryable:
                    stamp = ""  # of no state at all, so that it is tried again
                await asyncio.to_thread(
                    kept.keep,
                    number,
                    body,
                    stamp=stamp,
                    took_s=time.monotonic() - begun,
                    failed=failed is not None,
                )
            except asyncio.CancelledError:  # the server ends: the next one need not wait
                if number is not None:
                    with contextlib.suppress(EvenhandError):
                        kept.let_go(number)
                raise
            except EvenhandError as error:
                log.warning("figures are waiting for the store: %s", error.message)

    def _computed(self, subject: _Subject[Any]) -> tuple[bytes, ErrorBody | None]:
        """The figure as JSON, or why there is none."""
        try:
            return self._compute(subject), None
        except EvenhandError as error:
            body = error_body(error)
            if isinstance(error, StoreError):
                body = body.model_copy(update={"retryable": True})
        except Exception as error:  # one figure fails, and not the process that computes them all
            log.exception("computing a figure failed: a bug in evenhand")
            name = type(error).__name__
            body = ErrorBody(
                kind="internal", message=Message("serve.bug", name=name), retryable=True
            )
        return body.model_dump_json(context=WHOLE).encode(), body

    def _compute(self, subject: _Subject[Any]) -> bytes:
        if subject.apart:
            return self._pool.compute(subject.figure)
        return subject.figure.body(self._store)

    async def close(self) -> None:
        """What is small comes to its end; what is not is begun again by the next server."""
        self._ending = True
        tasks = [task for task, _ in self._begun.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSED_WITHIN_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._pool.close)
