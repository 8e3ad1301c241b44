"""One call of a tool, and what several of them do with a run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.serve.mcp.progress import Progress
from evenhand.serve.upload import Upload
from evenhand.serve.values import RunStatus, StartRun

if TYPE_CHECKING:
    from evenhand.serve.service import Service


@dataclass(frozen=True, slots=True)
class Call:
    """By whom (a token's name), with what, and whom to tell of progress."""

    service: Service
    arguments: Mapping[str, Any]
    progress: Progress
    token: str | None = None


async def start(call: Call, pairs: Sequence[dict[str, Any]], options: StartRun) -> RunStatus:
    await call.service.refuse_when_full()
    upload = await asyncio.to_thread(Upload.of_pairs, pairs)
    return await call.service.start_run(upload, options, token=call.token)


async def follow(call: Call, status: RunStatus, *, wait_s: float | None) -> RunStatus:
    """The run's status once it is at rest, or the newest when the time is up."""
    try:
        async with asyncio.timeout(wait_s):
            async for newer in call.service.follow(status.id):
                status = newer
                total = status.done + status.pending
                call.progress.tell(status.done, total, f"{status.done} of {total} verdicts")
    except TimeoutError:
        pass
    return status
