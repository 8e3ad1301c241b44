"""Lines of a file as it comes in, without holding the file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from evenhand.errors import JudgeConnectionLost
from evenhand.judges.endpoint import MAX_REPLY_BYTES
from evenhand.judges.openai_reply import decoded


async def objects_in(pieces: AsyncIterator[bytes], *, host: str) -> AsyncIterator[dict[str, Any]]:
    """The JSON object of each line. Lines end with a line feed and nothing else: an answer may hold
    any of the other characters that end lines in Unicode.

    What is no JSON object was damaged on the way. The others are given first, then it is told.
    """
    damaged = False
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            read = _object(line)
            if read is not None:
                yield read
            elif line.strip():
                damaged = True
        if len(rest) > MAX_REPLY_BYTES:
            raise JudgeConnectionLost(
                f"{host} sent a line above {MAX_REPLY_BYTES // 2**20} MiB among a batch's results; "
                "check that the base URL is the provider's"
            )
    last = _object(rest)
    if last is not None:
        yield last
    if damaged or (last is None and rest.strip()):
        raise JudgeConnectionLost(f"the results from {host} were cut short; they are fetched again")


def _object(line: bytes) -> dict[str, Any] | None:
    read = decoded(line) if line.strip() else None
    return read if isinstance(read, dict) else None
