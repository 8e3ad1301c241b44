"""Ends a run early if its judge fails everything, or cannot be read.

Its failures are not blamed on pairs; unread answers are stored as such.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from copy import copy

from evenhand.errors import (
    JudgeAuthentication,
    JudgeError,
    JudgeQuotaExceeded,
    JudgeRejected,
    JudgeUnreadable,
    NotRecorded,
)
from evenhand.judges.protocol import Judge
from evenhand.judges.redaction import Redactor
from evenhand.judging.decision import PassResult
from evenhand.messages import Message
from evenhand.runs.pacing import CallGate
from evenhand.runs.stop import Stop

# Consecutive failures, each after retries, beyond any good judge's.
_FROM_THE_START = 10
_AFTER_ANSWERS = 50
# Errors about a request, not about the judge, unless every request gets them.
_OF_ONE_REQUEST = (JudgeRejected, NotRecorded)
_OF_EVERYTHING = 100
# Consecutive answers that the model does not exist; a single one may be a server restarting.
_UNKNOWN_MODEL = 3
_AT_ONCE = (JudgeAuthentication, JudgeQuotaExceeded)
# Unread answers, after repair, beyond any useful judge's.
_UNREAD_IN_A_ROW = 20
_FIRST_ANSWERS = 40
_LONGEST_EXAMPLE = 160
_WATCHED_EVERY_S = 0.5
_FIT = Redactor()


class JudgeHealth:
    """For one judge. `proven`: it has answered in this run before."""

    def __init__(self, judge: str, stop: Stop, *, proven: bool) -> None:
        self._judge = judge
        self._stop = stop
        self._in_a_row = 0
        self._last: JudgeError | None = None
        self.proven = proven
        self.answered_here = False  # by this command

    def answered(self) -> None:
        self._in_a_row = 0
        self.proven = True
        self.answered_here = True

    def failed(self, error: JudgeError, *, in_flight: int) -> None:
        """The `in_flight` calls fail together when a server goes down, and count as one."""
        self._in_a_row += 1
        self._last = error
        if isinstance(error, _AT_ONCE):
            self._stop.ask("judge", _about(error, "runs.judge_stopped_run", judge=self._judge))
            return
        if isinstance(error, _OF_ONE_REQUEST):
            if self.proven:
                self._in_a_row = 0
                return
            unknown = isinstance(error, JudgeRejected) and error.unknown_model
            most = _UNKNOWN_MODEL if unknown else _OF_EVERYTHING
        else:
            most = max(_AFTER_ANSWERS, 2 * in_flight) if self.proven else _FROM_THE_START
        if self._in_a_row >= most:
            code = "runs.judge_failed_in_a_row"
            self._stop.ask("judge", _about(error, code, judge=self._judge, n=self._in_a_row))

    def blames_the_pair(self, error: JudgeError) -> bool:
        """A judge that answers others refuses this pair; retrying later is pointless."""
        return self.proven and isinstance(error, _OF_ONE_REQUEST)

    @contextlib.asynccontextmanager
    async def giving_up(self, gate: CallGate, *, after_s: float) -> AsyncIterator[None]:
        """Ask the run to stop if calls have failed for so long without one answer."""

        async def watch() -> None:
            while self._stop.by is None:
                trouble = gate.trouble()
                if trouble is not None and trouble.since_s >= after_s:
                    error = copy(trouble.error)
                    error = _about(
                        error,
                        "runs.no_answer_for",
                        judge=self._judge,
                        seconds=round(trouble.since_s),
                    )
                    self._stop.ask("judge", error)
                await asyncio.sleep(min(_WATCHED_EVERY_S, after_s / 4))

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def never_answered(self) -> None:
        """Every pair was tried, and none was answered."""
        if self._last is not None:
            what = _about(self._last, "runs.judge_never_answered", judge=self._judge)
            self._stop.ask("judge", what)


class UnreadMonitor:
    """For one judge, in order of its answers; each command starts at zero.

    Judges that read no prompt (replay, baselines) are free and not watched.
    """

    def __init__(self, judge: Judge, stop: Stop, *, keep_going: bool) -> None:
        self._judge = judge.name
        self._stop = stop
        self._watches = judge.traits.needs_prompt and not keep_going
        self._answers = self._unread = self._in_a_row = 0

    def answered(self, made: PassResult, *, in_flight: int = 0) -> None:
        """A stored pass: read, repaired, or unread for good."""
        unread = made.unread
        shown = unread_example(unread.raw, unread.reason) if unread else None
        self.record(shown, in_flight=in_flight)

    def record(self, unread: str | None, *, in_flight: int = 0) -> None:
        """An unread answer as it is shown; None for a read one.

        Unread answers are asked again, so of those in flight together they finish last, in a row: a
        judge that was read before may have that many more.
        """
        if not self._watches:
            return
        self._answers += 1
        if unread is None:
            self._in_a_row = 0
            return
        self._unread += 1
        self._in_a_row += 1
        readable = self._answers > self._unread
        if self._in_a_row >= _UNREAD_IN_A_ROW + in_flight * readable:
            self._end("runs.unread_in_a_row", self._in_a_row, unread)
        elif self._answers <= _FIRST_ANSWERS and 2 * self._unread > _FIRST_ANSWERS:
            self._end("runs.unread_from_the_start", _FIRST_ANSWERS, unread)

    def _end(self, code: str, count: int, unread: str) -> None:
        message = Message(code, n=count, judge=self._judge, unread=unread)
        self._stop.ask("judge", JudgeUnreadable(message))


def unread_example(answer: str, reason: str) -> Message:
    reason = reason.with_texts(_FIT) if isinstance(reason, Message) else _FIT(reason)
    return Message("runs.unread_example", answer=example_of(answer), reason=reason)


def example_of(answer: str) -> str:
    """The beginning of a judge's answer, fit for a message."""
    return _FIT(answer, limit=_LONGEST_EXAMPLE)


def _about(error: JudgeError, code: str, **values: str | int) -> JudgeError:
    """The error with its context prepended, of the same class, so that its exit code stays."""
    error.reword(Message(code, error=error.message, **values))
    return error
