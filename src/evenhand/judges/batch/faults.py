"""What the providers' SDKs raise, told as a judge's errors. Both SDKs have the same tree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenhand.errors import (
    EvenhandError,
    JudgeAuthentication,
    JudgeConnectionLost,
    JudgeError,
    JudgeGarbled,
    JudgeQuotaExceeded,
    JudgeRateLimited,
    JudgeRejected,
    JudgeServerError,
    JudgeTimeout,
    JudgeUnreachable,
)
from evenhand.judges.openai_reply import Fault, decoded, fault_of
from evenhand.judges.redaction import Redactor
from evenhand.judges.transport import Reply


@contextmanager
def in_our_words(*, host: str, key: str, redact: Redactor) -> Iterator[None]:
    """Around calls of an SDK: what that raises becomes a judge's error."""
    try:
        yield
    except EvenhandError:
        raise
    except Exception as error:  # whatever an SDK raises
        raise error_of(error, host=host, key=key, redact=redact) from None


def error_of(error: Exception, *, host: str, key: str, redact: Redactor) -> JudgeError:
    """`error` is whatever an SDK raised; `key` is the variable that holds the key."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APITimeoutError" in names:
        return JudgeTimeout(f"no answer from {host} in time; it is tried again, or raise --timeout")
    if "APIConnectionError" in names:
        why = redact(str(error.__cause__ or error), limit=120) or type(error).__name__
        return JudgeUnreachable(
            f"cannot connect to {host} ({why}); check the network and the base URL"
        )
    response: Any = getattr(error, "response", None)
    if "APIStatusError" in names and response is not None:
        reply = Reply(response.status_code, response.headers, response.content)
        return _by_status(fault_of(reply.status, decoded(reply.body), reply), host, key, redact)
    if "HTTPError" in names or "StreamError" in names or "ProtocolError" in names:
        return JudgeConnectionLost(
            f"the connection to {host} broke ({redact(str(error), limit=120)}); it is tried again"
        )
    return JudgeGarbled(
        f"{host} sent what the SDK cannot read ({type(error).__name__}: "
        f"{redact(str(error), limit=120)}); check the base URL"
    )


def _by_status(fault: Fault, host: str, key: str, redact: Redactor) -> JudgeError:
    status = fault.status
    quoted = redact(fault.message)
    said = f"{host} answered HTTP {status}" + (f": {quoted}" if quoted else "")
    if status == 402 or (status == 429 and "insufficient_quota" in fault.code):
        return JudgeQuotaExceeded(f"{said}; add credit to the account, or use another key")
    if status in (401, 403):
        return JudgeAuthentication(f"{said}; check the key in {key} and what it is allowed to do")
    if status == 429:
        return JudgeRateLimited(f"{said}; it is tried again", retry_after_s=fault.retry_after_s)
    if status in (404, 405, 501):
        return JudgeRejected(
            f"{said}; it has no batch API there, or no such batch for this key: check the base URL "
            f"and {key}"
        )
    if status in (408, 409, 425) or status >= 500:
        return JudgeServerError(f"{said}; it is tried again", retry_after_s=fault.retry_after_s)
    return JudgeRejected(f"{said}; check the model and its settings")


def never_arrived(error: JudgeError) -> bool:
    """Whether what was sent is certainly not there. A server that refuses says so; one that fails
    half-way, or does not answer, may have taken it."""
    return isinstance(
        error, JudgeRejected | JudgeAuthentication | JudgeQuotaExceeded | JudgeRateLimited
    )
