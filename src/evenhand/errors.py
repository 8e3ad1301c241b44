"""Every exception evenhand raises, as one small tree.

    EvenhandError
    ├── InputError                what the caller gave cannot be used
    │   ├── TemplateError         a prompt template lacks a slot, or has an unknown one
    │   ├── SettingsError         the environment, a config file or an option is wrong
    │   ├── DataError             a data file, or a row of it, cannot be used
    │   │   └── DataUnreachable   the store that holds the data does not answer
    │   └── MissingExtra          an optional part is not installed
    ├── JudgeError                the judge could not be asked, or did not answer
    │   ├── JudgeUnreachable      no connection could be made
    │   ├── JudgeConnectionLost   the connection broke, or the body stopped half-way
    │   ├── JudgeTimeout          no answer in time
    │   ├── JudgeAuthentication   the key is missing, wrong, or not allowed to do this
    │   ├── JudgeRateLimited      too many requests
    │   ├── JudgeQuotaExceeded    the account has no credit left
    │   ├── JudgeServerError      the server failed (5xx)
    │   ├── JudgeRejected         the server will not take this request
    │   ├── JudgeGarbled          the reply is not what a judge's server sends
    │   ├── JudgeUnreadable       it answers, and its answers cannot be read as verdicts
    │   └── NotRecorded           a replayed judge has no recording of this pass
    ├── StoreError                the store cannot be opened, read or written
    │   └── StoreBusy             another process has the store, or the run, in use
    ├── ClusterError              Ray cannot be started or reached, or its workers do not live
    ├── CapReached                a run came to its limit of cost or calls
    ├── NoVerdict                 the judge answered, but no valid verdict came of it
    ├── Interrupted               somebody stopped it before there was a verdict
    └── ServiceError              the server will not do this, or not now
        ├── NotFound              there is no such thing
        ├── Conflict              it does not go with what is there, or what it is doing
        ├── ServerBusy            it has as much to do as it takes
        ├── RateLimited           this client has asked too often
        ├── Unauthorized          the token is missing or wrong
        ├── Forbidden             whoever asks may not
        ├── TooLarge              more than it takes
        ├── TooSlow               what was to come did not come in time
        ├── WrongMethod           the address does not take this method
        ├── WrongMediaType        the body is in a form that it does not take
        └── NoRoom                its disk is full

A message is a fact with its value, then the remedy, on one line.
"""

from __future__ import annotations

import copyreg
import re
from typing import Any, Self

from evenhand.messages import Message

# What shows nothing, or turns what stands around it: controls, the directions of texts, spaces of
# no width, tags. A line's own end and tabs are not among them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)


class EvenhandError(Exception):
    """The root of the tree. `kind` is the stable name that JSON results carry."""

    kind = "error"
    retryable = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message  # a `Message`, but for what others wrote (a server, a library)
        # What is known of the comparison that failed, in the shape of the contract's metadata.
        self.metadata: Any = None

    @classmethod
    def of(cls, code: str, /, **values: Any) -> Self:
        """With the catalogue's message of this code."""
        return cls(Message(code, **values))

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, for another process: what made it is not there to make it again. (copyreg's
        stub lacks this, which pickle documents.)"""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def reword(self, message: str) -> None:
        """The same error with another message."""
        self.message = message
        self.args = (message,)


class InputError(EvenhandError):
    kind = "input"


class TemplateError(InputError):
    kind = "template"


class SettingsError(InputError):
    kind = "settings"


class DataError(InputError):
    kind = "data"


class DataUnreachable(DataError):
    """What was read before it stays read: the same command goes on."""

    kind = "data_unreachable"
    retryable = True


class MissingExtra(InputError):
    """An optional dependency is absent; the message holds the command that installs it."""

    kind = "missing_extra"

    def __init__(self, what: str, extra: str) -> None:
        from evenhand.installation import install_command  # which reads packages' metadata

        super().__init__(
            Message("extra.missing", what=what, extra=extra, command=install_command(extra))
        )


class JudgeError(EvenhandError):
    kind = "judge"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.requests = 1  # how many requests were made before it was given up
        self.host: str | None = None  # who failed, where it is a server
        self.retry_after_s = retry_after_s  # as the server asks


class JudgeUnreachable(JudgeError):
    kind = "judge_unreachable"
    retryable = True


class JudgeConnectionLost(JudgeError):
    kind = "judge_connection_lost"
    retryable = True


class JudgeTimeout(JudgeError):
    kind = "judge_timeout"
    retryable = True


class JudgeAuthentication(JudgeError):
    kind = "judge_authentication"


class JudgeRateLimited(JudgeError):
    kind = "judge_rate_limited"
    retryable = True


class JudgeQuotaExceeded(JudgeError):
    kind = "judge_quota_exceeded"


class JudgeServerError(JudgeError):
    kind = "judge_server_error"
    retryable = True


class JudgeRejected(JudgeError):
    """`unknown_model`: no such model or address, so every other request would fail too."""

    kind = "judge_rejected"
    unknown_model = False


class JudgeGarbled(JudgeError):
    kind = "judge_garbled"
    retryable = True


class JudgeUnreadable(JudgeError):
    """Of a run that was stopped for it; the answers are stored, as unread as they are."""

    kind = "judge_unreadable"


class NotRecorded(JudgeError):
    kind = "not_recorded"


class StoreError(EvenhandError):
    kind = "store"


class StoreBusy(StoreError):
    kind = "store_busy"
    retryable = True


class ClusterError(EvenhandError):
    """What was judged is stored: the same command goes on once the cluster is well."""

    kind = "cluster"
    retryable = True


class CapReached(EvenhandError):
    """A resumable stop: what was judged is stored, the rest waits for the next command."""

    kind = "cap_reached"


class NoVerdict(EvenhandError):
    """The outcome `invalid`: the judge answered, but its answers give no verdict."""

    kind = "invalid"


class Interrupted(EvenhandError):
    kind = "interrupted"


class ServiceError(EvenhandError):
    kind = "service"


class NotFound(ServiceError):
    kind = "not_found"


class Conflict(ServiceError):
    kind = "conflict"


class ServerBusy(ServiceError):
    kind = "busy"
    retryable = True

    def __init__(self, message: str, *, retry_after_s: float = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RateLimited(ServerBusy):
    kind = "rate_limited"


class Unauthorized(ServiceError):
    kind = "unauthorized"


class Forbidden(ServiceError):
    kind = "forbidden"


class TooLarge(ServiceError):
    kind = "too_large"


class TooSlow(ServiceError):
    kind = "too_slow"
    retryable = True


class WrongMethod(ServiceError):
    kind = "wrong_method"


class WrongMediaType(ServiceError):
    kind = "wrong_media_type"


class NoRoom(ServiceError):
    kind = "no_room"
    retryable = True


class Status:
    """Process exit codes; the documented ones."""

    OK = 0
    GATE_FAILED = 1
    BAD_INPUT = 2
    JUDGE_FAILED = 3
    NO_VERDICT = 4
    CAP_REACHED = 5
    UNDECIDED = 6
    INTERRUPTED = 130


# Most specific first: the first class that matches decides (exit code, HTTP status).
_STATUS: tuple[tuple[type[EvenhandError], int, int], ...] = (
    (MissingExtra, Status.BAD_INPUT, 501),
    (InputError, Status.BAD_INPUT, 422),
    (JudgeRateLimited, Status.JUDGE_FAILED, 503),
    (JudgeTimeout, Status.JUDGE_FAILED, 504),
    (JudgeError, Status.JUDGE_FAILED, 502),
    (StoreBusy, Status.BAD_INPUT, 503),
    (StoreError, Status.BAD_INPUT, 500),
    (ClusterError, Status.BAD_INPUT, 503),
    (CapReached, Status.CAP_REACHED, 402),
    (NoVerdict, Status.NO_VERDICT, 422),
    (Interrupted, Status.INTERRUPTED, 503),
    (NotFound, Status.BAD_INPUT, 404),
    (Conflict, Status.BAD_INPUT, 409),
    (ServerBusy, Status.JUDGE_FAILED, 429),
    (Unauthorized, Status.BAD_INPUT, 401),
    (Forbidden, Status.BAD_INPUT, 403),
    (TooLarge, Status.BAD_INPUT, 413),
    (TooSlow, Status.JUDGE_FAILED, 408),
    (WrongMethod, Status.BAD_INPUT, 405),
    (WrongMediaType, Status.BAD_INPUT, 415),
    (NoRoom, Status.JUDGE_FAILED, 507),
    (ServiceError, Status.JUDGE_FAILED, 500),
    (EvenhandError, Status.JUDGE_FAILED, 500),
)


def exit_code(error: EvenhandError) -> int:
    return next(code for kind, code, _ in _STATUS if isinstance(error, kind))


def http_status(error: EvenhandError) -> int:
    return next(status for kind, _, status in _STATUS if isinstance(error, kind))


def visible(text: str) -> str:
    """The text with what nobody sees written as its escape: two names that look alike are then not
    alike, and nothing turns or hides what follows. JSON stays the same JSON."""
    return _UNSEEN.sub(lambda found: _escaped(found[0]), text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
