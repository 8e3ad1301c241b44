"""One judge's way through a run by the batch.

Look at what is at the provider, collect what has ended, settle what that allows, submit what is
wanted next; and again, until nothing is wanted and nothing is there. All of it is in the store:
whoever takes over, on whatever machine, begins with the same look.
"""

from __future__ import annotations

from evenhand.runs.batch.course import Course
from evenhand.runs.batch.settling import Settling
from evenhand.runs.batch.tending import Tending
from evenhand.runs.batch.walking import Walking
from evenhand.runs.health import UnreadWatch
from evenhand.store.batches import BatchRecord


class BatchLane:
    def __init__(self, course: Course, unread: UnreadWatch) -> None:
        self._course = course
        self._tending = Tending(course)
        self._settling = Settling(
            course.run_id,
            course.seat,
            course.api,
            store=course.store,
            stop=course.stop,
            unread=unread,
        )
        self._walking = Walking(course, self._tending, self._settling)

    @property
    def host(self) -> str:
        return self._course.host

    @property
    def in_flight(self) -> int:
        return self._tending.in_flight

    @property
    def at_provider(self) -> tuple[BatchRecord, ...]:
        return self._tending.at_provider

    async def run(self) -> None:
        course = self._course
        for batch in await self._tending.unfinished():
            course.allowance.found(batch)
        while not course.is_stopped:
            collected = await self._tending.look()
            submitted = await self._walk(collected)
            there = await self._tending.unfinished()
            if there or course.looks_everywhere or course.crowded:
                await course.waiting.rest(at_most_s=self._tending.certain_in_s)
                if not there and course.crowded:
                    # Somebody else fills it: try again, with less.
                    course.crowded, course.looks_everywhere = False, True
            elif not submitted and not await self._walking.walk():
                self._end()
                return

    async def _walk(self, collected: list[BatchRecord]) -> bool:
        """Where something may have changed; whether anything was submitted."""
        if self._course.looks_everywhere:
            self._course.looks_everywhere = False
            return await self._walking.walk()
        submitted = False
        for batch in collected:
            submitted |= await self._walking.walk(batch.first_number - 1, batch.last_number)
        return submitted

    def _end(self) -> None:
        """Nothing is wanted, or nothing may be asked, and nothing is at the provider."""
        course = self._course
        if self._walking.capped is not None:
            course.allowance.stop(course.stop, self._walking.capped)
        failure = self._settling.last_failure
        if failure is not None and not self._settling.proven:
            what = f"{course.seat.judge.name} answered nothing, and nothing was judged"
            failure.message = f"{what}: {failure.message}"
            failure.args = (failure.message,)
            course.stop.ask("judge", failure)
