"""The verdict index and the word index, filled in the background by whichever server process is
idle.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from evenhand.contract import Pair
from evenhand.errors import EvenhandError
from evenhand.judging.explanation import notes_on
from evenhand.serve.logs import log
from evenhand.serve.run_status import count_judged, is_at_rest, stamp_of
from evenhand.store import RunRecord, Store
from evenhand.store.report_cache import ReportKey
from evenhand.store.verdict_index import Coverage

_LOOKED_EVERY_S = 5.0
_LOOKED_AT_FOR_S = 60.0
_ITEMS_AT_ONCE = 250
_RUNS_AT_ONCE = 100
# One server of a store goes through its runs; another takes over where it is not heard of.
_SWEEP = ReportKey(0, "sweep", "")
_SWEEP_LEASED_S = 30.0
# Beside judging, so much of the time is left to it.
_SHARE_BESIDE_JUDGING = 0.1
_SHARE = 0.5


def noted(response_a: str, response_b: str) -> bool:
    """Whether there is a note on these responses."""
    pair = Pair.model_construct(
        prompt="", response_a=response_a, response_b=response_b, criteria=()
    )
    return bool(notes_on(pair, "en"))


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """How far a run's table and its words are."""

    table: Coverage
    words: Coverage


def fill_some(
    store: Store,
    run: RunRecord,
    *,
    words: bool,
    within_s: float,
    most_left: int | None = None,
) -> IndexCoverage:
    """As much as can be done in so little time, and a little in any case, for a page that waits; a
    small run is done then. Of a run with more than `most_left` verdicts to go nothing: a page that
    will not be whole need not wait either."""
    until = time.monotonic() + within_s
    stamp = stamp_of(store, run)
    far = most_left is not None and _left(store, run, stamp) > most_left
    while not far and not _is_indexed(store, run, stamp):
        indexed = store.index_verdicts(run.id, noted=noted, limit=_ITEMS_AT_ONCE, stamp=stamp)
        if not indexed or time.monotonic() > until:
            break
    state = store.index_state(run.id)
    total = state.indexed
    if state.stamp != stamp:
        total = max(total, count_judged(store, run))
    coverage = store.words_coverage(run.id)
    if most_left is not None and coverage.total - coverage.done > most_left:
        words = False
    while words and not coverage.whole:
        added = store.add_words(run.id, limit=_ITEMS_AT_ONCE)
        coverage = store.words_coverage(run.id)
        if not added or time.monotonic() > until:
            break
    return IndexCoverage(Coverage(state.indexed, total), coverage)


def _left(store: Store, run: RunRecord, stamp: str) -> int:
    state = store.index_state(run.id)
    return 0 if state.stamp == stamp else count_judged(store, run) - state.indexed


def _is_indexed(store: Store, run: RunRecord, stamp: str) -> bool:
    return store.index_state(run.id).stamp == stamp


class Indexer:
    """Of one server process. `ended` is called with a run at rest that was filled whole."""

    def __init__(
        self,
        store: Store,
        *,
        judging: Callable[[], bool],
        ended: Callable[[RunRecord], Awaitable[None]],
    ) -> None:
        self._store = store
        self._judging = judging
        self._ended = ended
        self._looked_at: dict[int, float] = {}
        self._done: dict[int, str] = {}
        self._owner = uuid.uuid4().hex
        self._awake = asyncio.Event()
        self._ending = False
        self._filling: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._filling = asyncio.create_task(self._fill())

    def look_at(self, run_id: int) -> None:
        """Somebody does, and what is missing comes first."""
        self._looked_at[run_id] = time.monotonic()
        self._awake.set()

    async def close(self) -> None:
        self._ending = True
        self._awake.set()
        if self._filling is not None:
            await asyncio.gather(self._filling, return_exceptions=True)
            with contextlib.suppress(EvenhandError):
                await asyncio.to_thread(self._store.report_cache.let_go, _SWEEP, self._owner)

    async def _fill(self) -> None:
        while not self._ending:
            self._awake.clear()
            try:
                await self._go_through()
            except EvenhandError as error:
                log.warning("indexes of runs wait for the store: %s", error.message)
            except Exception:
                log.exception("indexing runs failed by a mistake of ours")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), _LOOKED_EVERY_S)

    async def _go_through(self) -> None:
        for run_id in list(self._now_looked_at()):
            run = await asyncio.to_thread(self._store.run_at, run_id)
            if run is not None:
                await self._complete(run)
        if self._judging() or not await asyncio.to_thread(self._may_sweep):
            return
        before: int | None = None
        while runs := await asyncio.to_thread(
            self._store.run_page, before=before, limit=_RUNS_AT_ONCE
        ):
            for run in runs:
                # Whoever looks at a run comes first, also in the middle of this.
                if self._ending or self._awake.is_set() or self._judging():
                    return
                if is_at_rest(run):
                    await self._complete(run)
            before = runs[-1].id

    def _now_looked_at(self) -> Iterator[int]:
        now = time.monotonic()
        self._looked_at = {
            run_id: at for run_id, at in self._looked_at.items() if now - at < _LOOKED_AT_FOR_S
        }
        return iter(sorted(self._looked_at, key=lambda run_id: -self._looked_at[run_id]))

    def _may_sweep(self) -> bool:
        leases = self._store.report_cache
        return leases.renew(_SWEEP, self._owner, leased_s=_SWEEP_LEASED_S) or leases.take(
            _SWEEP, self._owner, leased_s=_SWEEP_LEASED_S
        )

    async def _complete(self, run: RunRecord) -> None:
        stamp = await asyncio.to_thread(stamp_of, self._store, run)
        if self._done.get(run.id) == stamp:
            return

        def index() -> int:
            if _is_indexed(self._store, run, stamp):
                return 0
            return self._store.index_verdicts(
                run.id, noted=noted, limit=_ITEMS_AT_ONCE, stamp=stamp
            )

        def add_words() -> int:
            return self._store.add_words(run.id, limit=_ITEMS_AT_ONCE)

        for work in (index, add_words):
            if not await self._all_of(work, run.id):
                return
        if is_at_rest(run):
            await self._ended(run)
        self._done[run.id] = stamp

    async def _all_of(self, work: Callable[[], int], run_id: int) -> bool:
        """In small parts, with pauses for everybody else; whether it came to its end."""
        while not self._ending:
            begun = time.monotonic()
            if not await asyncio.to_thread(work):
                return True
            took = time.monotonic() - begun
            if run_id not in self._looked_at:
                if self._awake.is_set() or self._judging():
                    return False
                await asyncio.to_thread(self._may_sweep)
            share = _SHARE_BESIDE_JUDGING if self._judging() else _SHARE
            await asyncio.sleep(min(took * (1 / share - 1), 2.0))
        return False
