"""One background run while this process has it: judged, told of once a second, let go of."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Any

from evenhand.errors import Conflict, EvenhandError, InputError, StoreError
from evenhand.runs import Observer, Progress, RunSummary, Stop, judge_stored
from evenhand.serve.config import Limits
from evenhand.serve.logs import log
from evenhand.serve.offers import Offers
from evenhand.serve.run_plans import Spent, capped, judge_plans, run_options
from evenhand.serve.statuses import progress_at_end, progress_before, progress_of
from evenhand.serve.values import RunStateView, StartRun
from evenhand.serve.watch import Watch
from evenhand.serve.wording import error_body, in_clients_words
from evenhand.store import RunRecord, Store
from evenhand.store.jobs import JobRecord, NewJob

TOLD_EVERY_S = 1.0


def new_job(asked: StartRun, judges: tuple[str, ...], *, token: str | None) -> NewJob:
    wishes = asked.model_dump(mode="json", by_alias=False, exclude_unset=True)
    return NewJob(judges, {"asked": wishes, "resumed_at": asdict(Spent())}, token)


def resumed(job: JobRecord) -> dict[str, Any]:
    """Its options with the client's caps counted from now on."""
    told = job.progress
    spent = Spent(told.get("calls", 0), told.get("cost_usd") or 0.0)
    return {**job.options, "resumed_at": asdict(spent)}


class Judging(Observer):
    """The caller holds the run. What comes of it goes to the store, and nothing is raised but what
    the store itself says."""

    def __init__(
        self,
        run: RunRecord,
        job: JobRecord,
        *,
        store: Store,
        offers: Offers,
        limits: Limits,
        watch: Callable[[], Watch],
    ) -> None:
        self._run = run
        self._job = job
        self._store = store
        self._offers = offers
        self._limits = limits
        self._watch = watch
        self._progress: Progress | None = None
        self._before: dict[str, Any] = {}
        self._told = (0, 0)  # calls and verdicts that the watch knows of
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
            log.exception("run %s failed by a mistake of ours", self._run.id)
            what = (
                f"the run met a mistake of ours ({type(error).__name__}); resume it, or report it"
            )
            return await self._failed(EvenhandError(what))
        if summary is None:
            return "stopped"
        return await self._ended(summary)

    async def _begin(self) -> None:
        tally = await asyncio.to_thread(self._store.tally, self._run.id)
        calls = max(self._run.calls, tally.made.requests)
        self._before = progress_before(tally, calls=calls)
        self._told = (0, tally.judged)
        await asyncio.to_thread(self._store.jobs.beat, self._run.id, self._before)

    async def _judged(self) -> RunSummary | None:
        """None where a cap is used up before anything was asked."""
        asked = StartRun.model_validate(self._job.options.get("asked", {}))
        plans = self._plans()
        options = capped(
            run_options(asked, self._limits),
            asked,
            self._limits,
            spent=Spent(self._before["calls"], self._before["cost_usd"] or 0.0),
            resumed_at=Spent(**self._job.options.get("resumed_at", {})),
        )
        if isinstance(options, str):
            await asyncio.to_thread(
                self._store.update_run, self._run.id, state="stopped", stopped_by=options
            )
            await self._let_go_as("stop", self._before)
            return None
        async with self._telling():
            return await judge_stored(
                self._run, plans, options, store=self._store, stop=self.stop, observer=self
            )

    def _plans(self) -> Any:
        names = self._job.judges
        gone = [name for name in names if name not in self._offers.names]
        if gone:
            raise Conflict(
                f"judge {gone[0]} of run {self._run.name!r} is not offered any more; offer it "
                "again and resume the run, or start another run with a judge that is offered"
            )
        return judge_plans(self._offers, names)

    @contextlib.asynccontextmanager
    async def _telling(self) -> AsyncIterator[None]:
        async def keep_telling() -> None:
            while True:
                await self._tell()
                await asyncio.sleep(TOLD_EVERY_S)

        telling = asyncio.create_task(keep_telling())
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self) -> None:
        progress = self._progress
        told = None
        if progress is not None:
            told = progress_of(
                progress,
                pairs=self._before["pairs"],
                skipped_rows=self._before["skipped_rows"],
                before=self._before,
            )
            self._count(progress.calls, progress.done)
        try:
            wanted = await asyncio.to_thread(self._store.jobs.beat, self._run.id, told)
        except Conflict:
            self.stop.ask("interrupt")  # somebody has deleted it
        except StoreError:
            pass  # a busy store; the next time will do, and what is judged is the writer's affair
        else:
            if wanted == "stop":
                self.cancel()

    def _count(self, calls: int, verdicts: int) -> None:
        before_calls, before_verdicts = self._told
        self._told = (calls, verdicts)
        self._watch().run_told(
            self._job.judges[0],
            calls=max(0, calls - before_calls),
            verdicts=max(0, verdicts - before_verdicts),
        )

    async def _ended(self, summary: RunSummary) -> RunStateView:
        told = progress_at_end(summary)
        told["notes"] = [in_clients_words(note) for note in told["notes"]]
        self._count(
            summary.calls,
            sum(told[name] for name in ("wins_a", "wins_b", "ties", "inconsistent", "invalid")),
        )
        if summary.finished:
            await self._let_go_as("done", told)
            return "finished"
        if summary.stopped_by == "interrupt":
            # Somebody cancelled it, and that stands in the job; or the server ends, and the next
            # one goes on.
            await asyncio.to_thread(self._store.jobs.let_go, self._run.id, progress=told)
            return "stopped" if self._cancelled else "queued"
        if summary.stopped_by == "store":
            raise self.stop.error or StoreError("the store failed; it is tried again")
        error = summary.error
        await self._let_go_as(
            "stop", told, None if error is None else error.model_dump(mode="json")
        )
        return "stopped" if error is None else "failed"

    async def _failed(self, error: EvenhandError) -> RunStateView:
        if isinstance(error, InputError):
            judges = ", ".join(self._job.judges)
            error.message = f"{error.message} (judge {judges} of this server)"
        body = error_body(error).model_dump(mode="json")
        await self._let_go_as("stop", self._before or None, body)
        await asyncio.to_thread(self._store.update_run, self._run.id, state="stopped")
        return "failed"

    async def _let_go_as(
        self, wanted: Any, told: dict[str, Any] | None, error: dict[str, Any] | None = None
    ) -> None:
        await asyncio.to_thread(
            self._store.jobs.want,
            self._run.id,
            wanted,
            progress=told,
            error=error,
            let_go=True,
        )
