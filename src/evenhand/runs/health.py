"""A judge that fails everything ends the run early, and its failures are not held against pairs."""

from __future__ import annotations

from evenhand.errors import (
    JudgeAuthentication,
    JudgeError,
    JudgeQuotaExceeded,
    JudgeRejected,
    NotRecorded,
)
from evenhand.runs.stop import Stop

# Failures in a row (each after its retries) that no good judge has.
_FROM_THE_START = 10
_AFTER_ANSWERS = 50
# What a judge says of one request, and not of itself, until it says it of everything.
_OF_ONE_REQUEST = (JudgeRejected, NotRecorded)
_OF_EVERYTHING = 100
_AT_ONCE = (JudgeAuthentication, JudgeQuotaExceeded)


class Health:
    """Of one judge. `proven`: it has answered in this run before."""

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
        """`in_flight` calls fail together when a server goes down, and are one event."""
        self._in_a_row += 1
        self._last = error
        if isinstance(error, _AT_ONCE):
            self._stop.ask("judge", _about(error, f"{self._judge} stopped the run"))
            return
        if isinstance(error, _OF_ONE_REQUEST):
            if self.proven:
                self._in_a_row = 0
                return
            most = _OF_EVERYTHING
        else:
            most = max(_AFTER_ANSWERS, 2 * in_flight) if self.proven else _FROM_THE_START
        if self._in_a_row >= most:
            what = f"{self._judge} failed {self._in_a_row} calls in a row and the run was stopped"
            self._stop.ask("judge", _about(error, what))

    def blames_the_pair(self, error: JudgeError) -> bool:
        """A judge that answers others will not take this one; asking it later changes nothing."""
        return self.proven and isinstance(error, _OF_ONE_REQUEST)

    def never_answered(self) -> None:
        """Every pair was tried, and none got an answer."""
        if self._last is not None:
            what = f"{self._judge} answered nothing, and nothing was judged"
            self._stop.ask("judge", _about(self._last, what))


def _about(error: JudgeError, what: str) -> JudgeError:
    """The error, with what came of it in front; the same class, so that its exit code stays."""
    error.message = f"{what}: {error.message}"
    error.args = (error.message,)
    return error
