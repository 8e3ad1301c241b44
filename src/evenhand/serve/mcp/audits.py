"""`auditJudge`: a run whose pairs have labels, or labelled pairs that are judged first."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenhand.data.columns import PAIR_FIELDS, plain
from evenhand.errors import Conflict, EvenhandError, InputError, TooLarge
from evenhand.serve.mcp.calls import Call, follow, start
from evenhand.serve.mcp.values import AuditWanted
from evenhand.serve.values import RunStatus, StartRun, read_value

if TYPE_CHECKING:
    from evenhand.serve.mcp.tool_audit import ToolAudit
    from evenhand.serve.service import Service

_LABELS = frozenset(plain(name) for name in PAIR_FIELDS["label"])
# Held until they are done, as the event loop itself does not.
_ending: set[asyncio.Future[None]] = set()


async def audit(call: Call) -> ToolAudit:
    wanted = read_value(AuditWanted, call.arguments)
    if (wanted.run is None) == (not wanted.pairs):
        raise InputError("give a run's id as run, or labelled pairs as pairs, and not both")
    if wanted.run is not None:
        if wanted.criteria:
            raise InputError("criteria go with pairs; the run has been judged by its own")
        status, judge = await call.service.run(wanted.run), wanted.judge
    else:
        status, judge = await _judged(call, wanted), None
    report = await call.service.audit(wanted.of_run(status.id, judge))
    # By now the statistics are there.
    from evenhand.serve.mcp.tool_audit import ToolAudit

    return ToolAudit(run=status, audit=report.audit, findings=report.findings)


async def _judged(call: Call, wanted: AuditWanted) -> RunStatus:
    """The labelled pairs as a run of their own; whoever stops waiting stops it too."""
    most = call.service.config.limits.tool_pairs
    if len(wanted.pairs) > most:
        raise TooLarge(
            f"pairs has {len(wanted.pairs)} and this tool takes {most}; start a run with "
            "startRun, and audit it by its id once it has finished"
        )
    if not any(_labelled(pair) for pair in wanted.pairs):
        raise InputError("no pair has a label; give each its label, A, B or TIE")
    options = StartRun(judge=wanted.judge, criteria=wanted.criteria)
    status = await start(call, wanted.pairs, options)
    found = status.found
    try:
        status = await follow(call, status, wait_s=None)
    except asyncio.CancelledError:
        if not found:  # or else somebody else may be waiting for it
            # Not awaited here: whoever cancelled waits for nothing.
            stopping = asyncio.ensure_future(_stop(call.service, status.id))
            _ending.add(stopping)
            stopping.add_done_callback(_ending.discard)
        raise
    if status.state != "finished":
        why = f"stopped by {status.stopped_by}"
        if status.error is not None:
            why = f"{status.error.kind}: {status.error.message}"
        raise Conflict(
            f"run {status.id} is {status.state} ({why}) and was not judged whole; mend that and "
            f"call again to go on, or audit what there is with run {status.id}"
        )
    return status


async def _stop(service: Service, run: str) -> None:
    with contextlib.suppress(EvenhandError):  # it goes on in the background, as any run
        await service.cancel(run)


def _labelled(pair: Mapping[str, Any]) -> bool:
    """By any of the names that data files use for it."""
    return any(plain(name) in _LABELS and value not in (None, "") for name, value in pair.items())
