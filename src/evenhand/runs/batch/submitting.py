"""Walks over the pending pairs: settles what has come in and submits what is wanted next."""

from __future__ import annotations

import asyncio

from evenhand.errors import CapReached, JudgeError
from evenhand.judges.batch.sdk import never_arrived
from evenhand.runs.batch.context import BatchContext
from evenhand.runs.batch.polling import BatchPoller
from evenhand.runs.batch.requests import BatchBuilder, WantedRequest, counted_requests
from evenhand.runs.batch.settlement import BatchSettler
from evenhand.store import WorkItem

_TAKEN_AT_ONCE = 256
_Key = tuple[int, str, int, int]  # pair, order, sample, turn


class BatchSubmitter:
    def __init__(self, course: BatchContext, tending: BatchPoller, settling: BatchSettler) -> None:
        self._course = course
        self._tending = tending
        self._settling = settling
        self._drafting = BatchBuilder(course.limits)
        # The same pair may be in the data again: what the draft has is not drafted twice.
        self._drafted: set[_Key] = set()
        self._submitted = self._ever_submitted = False
        self.capped: CapReached | None = None  # on the last walk

    async def walk(self, after: int = 0, up_to: int | None = None) -> bool:
        """Over the pairs of these numbers. Whether anything was submitted."""
        self._submitted, self.capped = False, None
        unproven = not self._settling.proven
        await self._over(after, up_to)
        if unproven and self._settling.proven and self._settling.doubted:
            # What failed before the first answer was seen can be believed now.
            await self._over(after, up_to)
        return self._submitted

    async def _over(self, after: int, up_to: int | None) -> None:
        course = self._course
        self._settling.doubted = 0
        self._drafting = BatchBuilder(course.limits)
        while not course.is_stopped:
            works = await asyncio.to_thread(
                course.store.pending,
                course.run_id,
                course.seat.judge_id,
                after=after,
                limit=_TAKEN_AT_ONCE,
                up_to=up_to,
            )
            if not works:
                break
            after = works[-1].number
            if not await self._draft(await self._settling.settle(works)):
                return
        if len(self._drafting):
            await self._submit()

    async def _draft(self, lacking: list[tuple[WorkItem, list[WantedRequest]]]) -> bool:
        """Whether there is a use in going on."""
        looked_at: set[_Key] = set()
        for work, wants in lacking:
            for wanted in wants:
                key = (work.pair_id, wanted.order, wanted.sample, wanted.turn)
                if key in looked_at or key in self._drafted:
                    continue
                if not self._drafting.has_room(wanted) and not await self._submit():
                    return False
                allowed, expected = self._allowed(work, wanted)
                if allowed:
                    self._drafting.add(work, wanted, reserved_usd=expected)
                    self._drafted.add(key)
                    looked_at.add(key)
        return True

    def _allowed(self, work: WorkItem, wanted: WantedRequest) -> tuple[bool, float | None]:
        """Whether it may be asked, and what it may cost."""
        course = self._course
        if self.capped is not None or not course.may_submit:
            return False, None
        expected = course.allowance.expected_usd(course.seat, work, wanted.input_tokens)
        self.capped = course.allowance.take(expected)
        return self.capped is None, expected

    async def _submit(self) -> bool:
        """Whether it went: not where the provider takes nothing now."""
        course, batches = self._course, self._course.store.batches
        drafting, self._drafting = self._drafting, BatchBuilder(course.limits)
        self._drafted.clear()
        new, asked, draft = drafting.closed(course.run_id, course.seat.judge_id)
        course.allowance.closed(len(drafting), drafting.reserved_usd)
        batch = await asyncio.to_thread(batches.intend, new, asked)
        course.allowance.submitting(batch)
        sent = False

        async def sending() -> None:
            nonlocal sent
            await asyncio.to_thread(batches.sending, batch.id)
            sent = True

        try:
            provider_id = await course.api.submit(draft, sending)
        except JudgeError as error:
            course.looks_everywhere = True
            if not sent or never_arrived(error):
                await self._tending.drop(batch)
            course.failed(error)
            return False
        course.waiting.worked()
        await self._tending.opened(batch, provider_id)
        told = f"batch {provider_id} with {counted_requests(batch.requests)} is at {course.host}"
        if not self._ever_submitted:
            told += (
                "; answers take minutes to a day, and Ctrl-C leaves it there to be collected later"
            )
        course.observer.announce(told)
        self._submitted = self._ever_submitted = True
        return True
