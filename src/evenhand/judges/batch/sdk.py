"""What both providers' SDKs share: exceptions as judge errors, result files by line, and the search
in their lists of batches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from evenhand.contract.json_text import TooManyValues
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
from evenhand.judges.batch import UnconfirmedBatch
from evenhand.judges.chat_completions import Fault, fault_of
from evenhand.judges.providers import own_error
from evenhand.judges.redaction import Redactor
from evenhand.judges.reply_limits import MAX_REPLY_BYTES, decoded, read_off_the_loop
from evenhand.judges.transport import Reply
from evenhand.messages import Message


@contextmanager
def raising_judge_errors(*, host: str, key: str, redact: Redactor) -> Iterator[None]:
    try:
        yield
    except EvenhandError:
        raise
    except Exception as error:  # whatever an SDK raises
        raise error_of(error, host=host, key=key, redact=redact) from None


def error_of(error: Exception, *, host: str, key: str, redact: Redactor) -> JudgeError:
    """`error` is any SDK exception; `key` the variable that holds the key."""
    refused = own_error(error)
    if refused is not None:
        return refused
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APITimeoutError" in names:
        return JudgeTimeout.of("judges.batch_timeout", host=host)
    if "APIConnectionError" in names:
        why = redact(str(error.__cause__ or error), limit=120) or type(error).__name__
        return JudgeUnreachable.of("judges.batch_unreachable", host=host, why=why)
    response: Any = getattr(error, "response", None)
    if "APIStatusError" in names and response is not None:
        reply = Reply(response.status_code, response.headers, response.content)
        return _by_status(fault_of(reply), host, key, redact)
    if "HTTPError" in names or "StreamError" in names or "ProtocolError" in names:
        return JudgeConnectionLost.of(
            "judges.batch_connection_broke", host=host, error=redact(str(error), limit=120)
        )
    return JudgeGarbled.of(
        "judges.sdk_unreadable",
        host=host,
        name=type(error).__name__,
        error=redact(str(error), limit=120),
    )


def _by_status(fault: Fault, host: str, key: str, redact: Redactor) -> JudgeError:
    status = fault.status
    quoted = redact(fault.message)
    answer = f"{host} answered HTTP {status}" + (f": {quoted}" if quoted else "")
    if status == 402 or (status == 429 and "insufficient_quota" in fault.code):
        return JudgeQuotaExceeded.of("judges.batch_no_credit", answer=answer)
    if status in (401, 403):
        return JudgeAuthentication.of("judges.batch_key_refused", answer=answer, key=key)
    if status == 429:
        return JudgeRateLimited(
            Message("judges.batch_tried_again", answer=answer), retry_after_s=fault.retry_after_s
        )
    if status in (404, 405, 501):
        return JudgeRejected.of("judges.batch_api_not_found", answer=answer, key=key)
    if status in (408, 409, 425) or status >= 500:
        return JudgeServerError(
            Message("judges.batch_tried_again", answer=answer), retry_after_s=fault.retry_after_s
        )
    return JudgeRejected.of("judges.batch_request_refused", answer=answer)


def never_arrived(error: JudgeError) -> bool:
    """Whether the request certainly did not arrive. A refusal is certain; a failure half-way or a
    missing reply is not."""
    return isinstance(
        error, JudgeRejected | JudgeAuthentication | JudgeQuotaExceeded | JudgeRateLimited
    )


async def objects_in(pieces: AsyncIterator[bytes], *, host: str) -> AsyncIterator[dict[str, Any]]:
    """The JSON object of each line. Only line feeds end a line: answers may hold Unicode's other
    line separators.

    Damaged lines raise after all others were yielded.
    """
    damaged = False
    async for line in _lines(pieces, host=host):
        read = await read_off_the_loop(partial(_object, line), line)
        if read is not None:
            yield read
        elif line.strip():
            damaged = True
    if damaged:
        raise JudgeConnectionLost.of("judges.results_cut", host=host)


async def _lines(pieces: AsyncIterator[bytes], *, host: str) -> AsyncIterator[bytes]:
    rest: list[bytes] = []
    size = 0
    async for piece in pieces:
        first, *others = piece.split(b"\n")
        rest.append(first)
        size += len(first)
        if size > MAX_REPLY_BYTES:
            raise JudgeConnectionLost.of(
                "judges.result_line_too_long", host=host, max_reply_bytes=MAX_REPLY_BYTES // 2**20
            )
        if others:
            yield b"".join(rest)
            for line in others[:-1]:
                yield line
            rest, size = [others[-1]], len(others[-1])
    yield b"".join(rest)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        read = decoded(line) if line.strip() else None
    except TooManyValues:
        return None
    return read if isinstance(read, dict) else None


# Searching a provider's list of batches for one that was sent at a certain time.

# Clocks differ; a batch that seems this much older is another one.
_CLOCKS_DIFFER_S = 3600.0
_OLDER_IN_A_ROW = 100


class Listing:
    """Documented as newest first; an item out of order does not end the search."""

    def __init__(self, sought: UnconfirmedBatch) -> None:
        self._since = sought.sent_at - _CLOCKS_DIFFER_S
        self._in_a_row = 0

    def is_older(self, created_at: float) -> bool:
        older = created_at < self._since
        self._in_a_row = self._in_a_row + 1 if older else 0
        return older

    @property
    def is_past(self) -> bool:
        """Whether all that follow are older too."""
        return self._in_a_row >= _OLDER_IN_A_ROW
