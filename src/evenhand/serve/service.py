"""Everything that a server does, once: HTTP, MCP and pages are thin edges over this object."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from evenhand.errors import EvenhandError, NotFound
from evenhand.report.records import FlaggedPair, flag_pair
from evenhand.runs import Stop
from evenhand.serve.comparisons import Admission, Comparisons, ServiceObserver
from evenhand.serve.config import ServerConfig
from evenhand.serve.figures import FigureCache
from evenhand.serve.jobs import Jobs, judge_plans, new_job, offered_names, run_options
from evenhand.serve.judges import JudgeCatalog
from evenhand.serve.run_status import needed_run
from evenhand.serve.runs import RunIntake, StoredRuns, UploadPreview
from evenhand.serve.security.limits import refuse_large_criteria, refuse_large_texts
from evenhand.serve.uploads import Upload
from evenhand.serve.values import (
    SIDE_TEXTS,
    Readiness,
    RunPage,
    RunStatus,
    StartRun,
    VerdictPage,
)
from evenhand.serve.verdicts import VerdictBrowser, VerdictQuery, read_page
from evenhand.settings import Settings, load_settings
from evenhand.store import Store, open_store
from evenhand.store.jobs import NewJob

if TYPE_CHECKING:
    from evenhand.analyses.registry import AnalysisEntry
    from evenhand.options import Options
    from evenhand.serve.voting import Voting


_T = TypeVar("_T")
# Uploads that are read at once, and reports that are worked out at once; others wait their turn.
_INTAKES = 2
# Bodies that are read at once in threads; smaller ones are read where they are.
_READERS = 2
_LARGE_BYTES = 64 * 1024
_READINGS = 2
_READINGS_WAITING = 64
_STORE_ANSWERS_WITHIN_S = 5.0


class Service:
    """Of one process and one event loop; `Service.opened` makes it and ends it."""

    def __init__(
        self,
        config: ServerConfig,
        store: Store,
        offers: JudgeCatalog,
        observer: ServiceObserver | None = None,
    ) -> None:
        observer = observer or ServiceObserver()
        limits = config.limits
        self.config = config
        self.store = store
        self.judges = offers
        self.admission = Admission(limits.compares, limits.compare_queue)
        self.jobs = Jobs(store, offers, limits, observer=observer)
        self.figures = FigureCache(store)
        self._voting: Voting | None = None
        self.verdict_browser = VerdictBrowser(store, self.figures)
        self._stored_runs = StoredRuns(store, self.jobs)
        self.comparisons = Comparisons(offers, self.admission, limits, observer=observer)
        self._intakes = ThreadPoolExecutor(_INTAKES, thread_name_prefix="evenhand-intake")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="evenhand-read")
        self._readings = Admission(_READINGS, _READINGS_WAITING)
        self._stop = Stop()  # for uploads that are being read
        self._ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        config: ServerConfig,
        settings: Settings | None = None,
        *,
        background: bool = True,
        for_operator: bool = False,
        observer: ServiceObserver | None = None,
    ) -> AsyncIterator[Self]:
        """Background runs go on, unless `background` is False; leaving saves what is in flight.
        `for_operator`: its only client is whoever started it, and may see judges' addresses."""
        settings = settings or load_settings()
        store = await asyncio.to_thread(open_store, config.store or settings.store)
        offers = JudgeCatalog(config, settings, shows_addresses=for_operator)
        service = cls(config, store, offers, observer)
        try:
            if background:
                service.jobs.start()
            yield service
        finally:
            await service._close()

    def begin_shutdown(self) -> None:
        """Take nothing new; what is in flight may end. Followers are sent away."""
        self._ending.set()
        self._stop.ask("interrupt")
        self.admission.close()
        self.jobs.end()

    async def _close(self) -> None:
        self.begin_shutdown()
        try:
            within_s = self.config.limits.shutdown_s
            await asyncio.gather(
                self.admission.drained(within_s),
                self.jobs.close(within_s),
                self.figures.close(),
                self._close_voting(),
            )
            # They were told to stop; what they have not finished is forgotten at the next start.
            await asyncio.to_thread(self._intakes.shutdown)
            await asyncio.to_thread(self._readers.shutdown)
        finally:
            await self.judges.close()
            await asyncio.to_thread(self.store.close)

    @property
    def voting(self) -> Voting:
        """Made when it is first asked for: it is for pages, and brings the statistics along."""
        if self._voting is None:
            from evenhand.serve.voting import Voting

            self._voting = Voting(self.store)
        return self._voting

    async def _close_voting(self) -> None:
        if self._voting is not None:
            await self._voting.close()

    async def read_in(self, body: bytes, read: Callable[[bytes], _T]) -> _T:
        """What a body says; a large one is read aside, or everybody would wait for it."""
        if len(body) <= _LARGE_BYTES:
            return read(body)
        return await self._loop.run_in_executor(self._readers, read, body)

    # Runs

    async def refuse_when_full(self) -> None:
        """ServerBusy where no more runs are taken: to be asked before an upload is read."""
        await asyncio.to_thread(self.jobs.refuse_when_full)

    async def start_run(
        self, upload: Upload, options: StartRun, *, token: str | None = None
    ) -> RunStatus:
        """All rows are in the store when this returns, and the upload is closed in any case.

        The same data and judges again find the same run (`found` is then True), which goes on
        where it had been stopped. `token` is the name of whoever asked.
        """
        with upload:
            starting, job = self._intake(options, token)
            await self.refuse_when_full()
            started = await self._whole(lambda: starting.take_in(upload, options))
            status = await asyncio.to_thread(self._stored_runs.take_on, started, job)
            self.jobs.wake()
            return status

    async def preview_upload(self, upload: Upload, options: StartRun) -> UploadPreview:
        """What a run of these rows would take; the upload is closed in any case."""
        with upload:
            starting, _ = self._intake(options, None)
            return await self._whole(lambda: starting.preview(upload, options))

    def _intake(self, options: StartRun, token: str | None) -> tuple[RunIntake, NewJob]:
        limits = self.config.limits
        refuse_large_criteria(options.criteria, limits)
        names = offered_names(self.judges, options)
        plans = judge_plans(self.judges, names, options)
        job = new_job(options, names, token=token)
        asked = run_options(options, limits)
        sides = None
        if options.models is not None:
            from evenhand.serve.answering import offered_sides

            refuse_large_texts(options.model_dump(include=set(SIDE_TEXTS)), limits)
            sides = offered_sides(self.judges, options)
        return RunIntake(self.store, limits, plans, asked, job, self._stop, sides), job

    async def _whole(self, work: Callable[[], _T]) -> _T:
        """In a thread, which a cancellation does not end: the upload stays open until it has."""
        loop = asyncio.get_running_loop()
        taking_in = loop.run_in_executor(self._intakes, work)
        try:
            return await asyncio.shield(taking_in)
        except asyncio.CancelledError:
            # However often it is cancelled: an upload that is closed gives its number, by which
            # the thread still reads it, to the next one.
            while not taking_in.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([taking_in])
            taking_in.exception()  # nobody is left to be told
            raise

    async def run(self, run_id: str) -> RunStatus:
        """By its id or its name; NotFound where there is none."""
        return await asyncio.to_thread(self._stored_runs.status, run_id)

    async def runs(
        self, *, after: str | None = None, limit: int = 50, state: str | None = None
    ) -> RunPage:
        """Newest first; those of the command line in the same store too."""
        limit = max(1, min(limit, self.config.limits.page_rows))
        return await asyncio.to_thread(self._stored_runs.page, after, limit=limit, state=state)

    async def runs_by_state(self) -> dict[str, int]:
        """How many there are in each state, for metrics."""
        return await asyncio.to_thread(self._stored_runs.by_state)

    async def cancel(self, run_id: str) -> RunStatus:
        """What is in flight is still stored; a run at rest stays as it is."""
        status = await asyncio.to_thread(self._stored_runs.cancel, run_id)
        if not status.at_rest:
            self.jobs.stop(int(status.id))
        return status

    async def resume(self, run_id: str) -> RunStatus:
        """A stopped or failed run goes on; any other stays as it is."""
        status = await asyncio.to_thread(self._stored_runs.resume, run_id)
        self.jobs.wake()
        return status

    async def follow(self, run_id: str, *, every_s: float = 0.5) -> AsyncIterator[RunStatus]:
        """Its status now and whenever it has changed; ends when the run is at rest, and when the
        server shuts down. NotFound comes with the first step."""
        last: RunStatus | None = None
        while True:
            try:
                status = await self.run(run_id)
            except NotFound:
                if last is None:
                    raise
                return  # somebody has deleted it
            if status != last:
                last = status
                yield status
            if status.at_rest or self._ending.is_set():
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), every_s)

    # What came of them

    async def verdicts(
        self,
        run_id: str,
        filters: VerdictQuery | None = None,
        *,
        cursor: str | None = None,
        limit: int = 100,
        full: bool = False,
    ) -> VerdictPage:
        """A page may be short before the end: `next` is null only there."""
        wanted = filters or VerdictQuery()
        await self.verdict_browser.need_words(run_id, wanted)

        def read() -> VerdictPage:
            return read_page(
                self.store,
                needed_run(self.store, run_id),
                wanted,
                cursor=cursor,
                limit=max(1, min(limit, self.config.limits.page_rows)),
                full=full,
            )

        return await asyncio.to_thread(read)

    async def analyse(self, analysis: AnalysisEntry, runs: Sequence[str], options: Options) -> Any:
        """What a registered analysis says of runs."""

        def read() -> Any:
            from evenhand.analyses.registry import check
            from evenhand.serve import reports

            check(analysis, options)
            return self.figures.now(reports.analysed(analysis, runs, options))

        return await self._read(read)

    async def flag(
        self, run_id: str, pair: str, *, comment: str | None = None, remove: bool = False
    ) -> FlaggedPair:
        """`pair` is an id or a number. A client that leaves does not take its flag along."""

        def write() -> FlaggedPair:
            run = needed_run(self.store, run_id)
            return flag_pair(self.store, run.name, pair, comment=comment, remove=remove)

        return await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(write)))

    async def _read(self, work: Callable[[], _T]) -> _T:
        """Statistics take a processor each, and there are other things to do."""
        async with self._readings.admitted():
            return await asyncio.to_thread(work)

    async def ready(self) -> Readiness:
        """Whether the store answers and a judge is configured."""
        problems: list[str] = []
        if self._ending.is_set():
            problems.append("the server is shutting down")
        if not self.judges.names:
            problems.append("no judge is configured")
        try:
            async with asyncio.timeout(_STORE_ANSWERS_WITHIN_S):
                await asyncio.to_thread(self.store.runs.page, limit=1)
        except (EvenhandError, TimeoutError):
            problems.append("the store does not answer")
        return Readiness(ready=not problems, problems=tuple(problems))
