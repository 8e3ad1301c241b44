"""Background runs: every server process takes what it has room for and nobody else holds.

The store is the only state. A process that dies lets go of its runs, and another one, or the next
to start, goes on with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextlib import ExitStack

from evenhand.errors import EvenhandError, ServerBusy, StoreBusy
from evenhand.serve.config import Limits
from evenhand.serve.judging import Judging
from evenhand.serve.logs import log
from evenhand.serve.offers import Offers
from evenhand.serve.watch import Watch
from evenhand.serve.wording import error_body
from evenhand.store import RunRecord, Store
from evenhand.store.jobs import JobRecord

_LOOKED_EVERY_S = 1.0
_TIDIED_EVERY_S = 60.0
# Another process has it, or the store failed: it is tried again after so long.
_TRIED_AGAIN_S = 3.0
_STORE_AWAITED_S = 10.0


class Jobs:
    def __init__(
        self, store: Store, offers: Offers, limits: Limits, *, watch: Callable[[], Watch]
    ) -> None:
        self._store = store
        self._offers = offers
        self._limits = limits
        self._watch = watch
        self._active: dict[int, asyncio.Task[None]] = {}
        self._judging: dict[int, Judging] = {}
        self._not_before: dict[int, float] = {}
        self._tidied_at = -_TIDIED_EVERY_S
        self._awake = asyncio.Event()
        self._ending = False
        self._supervising: asyncio.Task[None] | None = None

    @property
    def active(self) -> int:
        """Runs that this process has."""
        return len(self._active)

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
                f"{there} runs wait or are being judged, and no more are taken; try again later, "
                "or cancel one",
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
                log.warning("background runs wait for the store: %s", error.message)
            except Exception:
                log.exception("looking for background runs failed by a mistake of ours")
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
                    log.warning("run %s cannot be held: %s", run_id, error.message)
                return
            try:
                await self._judge(run_id)
            except EvenhandError as error:
                log.warning("run %s waits for the store: %s", run_id, error.message)
                self._leave(run_id, _STORE_AWAITED_S)
                body = error_body(error).model_dump(mode="json")
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
        judging = Judging(
            run,
            job,
            store=self._store,
            offers=self._offers,
            limits=self._limits,
            watch=self._watch,
        )
        self._judging[run_id] = judging
        try:
            state = await judging.judge()
        finally:
            del self._judging[run_id]
        log.info("run %s is %s", run_id, state)
        self._watch().run_ended(state)

    def _read(self, run_id: int) -> tuple[RunRecord | None, JobRecord | None]:
        return self._store.run_at(run_id), self._store.jobs.find(run_id)

    def _tidy(self) -> None:
        """Runs whose rows stopped coming in when a process died: nobody was told of them."""
        for left in self._store.jobs.wanted("intake"):
            with contextlib.suppress(StoreBusy), self._store.hold(left.run_id):
                job = self._store.jobs.find(left.run_id)
                if job is not None and job.wanted == "intake":
                    self._store.delete_held(left.run_id)
        self._store.forget_old_requests()
