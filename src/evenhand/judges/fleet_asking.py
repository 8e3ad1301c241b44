"""One question on its way through a fleet: whom it has met, and what to say in the end."""

from __future__ import annotations

from evenhand.errors import (
    JudgeAuthentication,
    JudgeError,
    JudgeQuotaExceeded,
    JudgeRateLimited,
    JudgeRejected,
    JudgeUnreachable,
)
from evenhand.judges.fleet_member import Member

# Servers that take a call and fail it: a text that brings servers down must not meet them all.
_MOST_WORKED = 3
# A rejection is the request's fault where two servers agree that have answered others: one that
# never did may serve another model.
_MOST_REJECTED = 2
# What a server says of our account with it. Where another answers, it speaks for itself alone.
OF_ACCOUNT = (JudgeAuthentication, JudgeQuotaExceeded)
_OF_ONE_SERVER = (JudgeUnreachable, JudgeRejected, *OF_ACCOUNT)


class Asking:
    """One question on its way through the fleet."""

    __slots__ = ("goes_on", "key", "met", "requests")

    def __init__(self, key: int) -> None:
        self.key = key
        self.met: dict[Member, JudgeError] = {}
        self.requests = 0  # that brought no answer
        self.goes_on = True

    def failed(self, member: Member, error: JudgeError) -> None:
        self.met[member] = error
        worked = sum(
            each.retryable and not isinstance(each, (JudgeUnreachable, JudgeRateLimited))
            for each in self.met.values()
        )
        self.goes_on = (
            self._is_elsewhere(error)
            and len(self._believed()) < _MOST_REJECTED
            and worked < _MOST_WORKED
        )

    def telling_error(self) -> JudgeError | None:
        """The last of those that may pass, since the question is not lost by them; else what is
        said of the question, and at last what is said of us."""
        met = list(self.met.values())
        if not met or not self._is_elsewhere(met[-1]):
            return met[-1] if met else None
        believed = self._believed()
        if len(believed) >= _MOST_REJECTED:
            return believed[0]
        rejected = [error for error in met if isinstance(error, JudgeRejected)]
        passing = [error for error in met if error.retryable]
        limited = [error for error in passing if isinstance(error, JudgeRateLimited)]
        others = [error for error in passing if error not in limited]
        return [*met, *rejected, *limited, *others][-1]

    def _believed(self) -> list[JudgeError]:
        return [
            error
            for member, error in self.met.items()
            if isinstance(error, JudgeRejected) and member.answers
        ]

    @staticmethod
    def _is_elsewhere(error: JudgeError) -> bool:
        """Whether another server may do better."""
        return error.retryable or isinstance(error, _OF_ONE_SERVER)
