"""The tools that agents call, each a thin edge over the service."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations

from evenhand import tools as contract_tools
from evenhand.contract.model import Model
from evenhand.data.columns import PAIR_FIELDS, plain
from evenhand.errors import Conflict, InputError, TooLarge
from evenhand.ranker import RankedResponses
from evenhand.serve.mcp import descriptions
from evenhand.serve.mcp.answers import Answer, verdict_answer
from evenhand.serve.mcp.markdown import audit_page, ranking_lines, report_page, status_line
from evenhand.serve.mcp.progress import Progress
from evenhand.serve.mcp.schemas import Schema, input_schema, output_schema
from evenhand.serve.mcp.values import (
    AuditWanted,
    ReportWanted,
    RunWanted,
    StatusWanted,
    ToolAudit,
)
from evenhand.serve.upload import Upload
from evenhand.serve.values import (
    RankResponses,
    Report,
    RunStatus,
    StartRun,
    StartRunWithPairs,
    read_value,
)

if TYPE_CHECKING:
    from evenhand.serve.service import Service


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: by whom (a token's name), with what, and whom to tell of progress."""

    service: Service
    arguments: Mapping[str, Any]
    progress: Progress
    token: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceTool:
    definition: Tool
    answer: Callable[[Call], Awaitable[Answer]]


async def _compare(call: Call) -> Answer:
    told = call.progress.of("passes")
    return verdict_answer(await call.service.compare(call.arguments, told=told))


async def _rank(call: Call) -> Answer:
    request = read_value(RankResponses, call.arguments)
    told = call.progress.of("comparisons")
    ranked = await call.service.rank_responses(request, told=told)
    return Answer(ranked, ranking_lines(ranked))


async def _start(call: Call) -> Answer:
    wanted = read_value(StartRunWithPairs, call.arguments)
    status = await _started(call, wanted.pairs, wanted.options())
    return Answer(status, status_line(status))


async def _started(call: Call, pairs: tuple[dict[str, Any], ...], options: StartRun) -> RunStatus:
    await call.service.refuse_when_full()
    upload = await asyncio.to_thread(Upload.of_pairs, pairs)
    return await call.service.start_run(upload, options, token=call.token)


async def _status(call: Call) -> Answer:
    wanted = read_value(StatusWanted, call.arguments)
    status = await call.service.run(wanted.run)
    if wanted.wait_s > 0 and not status.at_rest:
        status = await _followed(call, status, wait_s=wanted.wait_s)
    return Answer(status, status_line(status))


async def _followed(call: Call, status: RunStatus, *, wait_s: float | None) -> RunStatus:
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


async def _cancel(call: Call) -> Answer:
    wanted = read_value(RunWanted, call.arguments)
    status = await call.service.cancel(wanted.run)
    return Answer(status, status_line(status))


async def _report(call: Call) -> Answer:
    wanted = read_value(ReportWanted, call.arguments)
    report = await call.service.report(
        wanted.run, side=wanted.side, ties=wanted.ties, level=wanted.level
    )
    return Answer(report, report_page(report))


async def _audit(call: Call) -> Answer:
    wanted = read_value(AuditWanted, call.arguments)
    if (wanted.run is None) == (not wanted.pairs):
        raise InputError("give a run's id as run, or labelled pairs as pairs, and not both")
    if wanted.run is not None:
        if wanted.criteria:
            raise InputError("criteria go with pairs; the run has been judged by its own")
        status = await call.service.run(wanted.run)
        judge = wanted.judge
    else:
        status, judge = await _judged(call, wanted), None
    report = await call.service.audit(wanted.of_run(status.id, judge))
    found = ToolAudit(run=status, audit=report.audit, findings=report.findings)
    return Answer(found, audit_page(found))


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
    status = await _started(call, wanted.pairs, options)
    try:
        status = await _followed(call, status, wait_s=None)
    except asyncio.CancelledError:
        # Not awaited here: whoever cancelled waits for nothing.
        stopping = asyncio.ensure_future(call.service.cancel(status.id))
        _ENDING.add(stopping)
        stopping.add_done_callback(_ENDING.discard)
        raise
    if status.state != "finished":
        why = status.error.message if status.error else f"stopped by {status.stopped_by}"
        raise Conflict(
            f"run {status.id} is {status.state} ({why}) and was not judged whole; "
            f"audit what there is with run {status.id}, or call again to go on"
        )
    return status


def _labelled(pair: Mapping[str, Any]) -> bool:
    """By any of the names that data files use for it."""
    return any(plain(name) in _LABELS and value not in (None, "") for name, value in pair.items())


_LABELS = frozenset(plain(name) for name in PAIR_FIELDS["label"])
# Held until they are done, as the event loop itself does not.
_ENDING: set[asyncio.Future[RunStatus]] = set()


def _tool(
    name: str,
    answer: Callable[[Call], Awaitable[Answer]],
    *,
    takes: type[Model] | Schema,
    gives: type[Model] | Schema,
    reads_only: bool,
    open_world: bool,
    repeatable: bool = True,
    destructive: bool = False,
) -> ServiceTool:
    title, description = descriptions.TOOLS[name]
    return ServiceTool(
        Tool(
            name=name,
            title=title,
            description=description,
            input_schema=takes if isinstance(takes, dict) else input_schema(takes),
            output_schema=gives if isinstance(gives, dict) else output_schema(gives),
            annotations=ToolAnnotations(
                title=title,
                read_only_hint=reads_only,
                destructive_hint=destructive,
                idempotent_hint=repeatable,
                open_world_hint=open_world,
            ),
        ),
        answer,
    )


def service_tools() -> dict[str, ServiceTool]:
    """By name, in the order in which they are listed."""
    made = (
        _tool(
            contract_tools.NAME,
            _compare,
            takes=contract_tools.input_schema(),
            gives=contract_tools.output_schema(),
            reads_only=True,
            open_world=True,
        ),
        _tool(
            "rankResponses",
            _rank,
            takes=RankResponses,
            gives=RankedResponses,
            reads_only=True,
            open_world=True,
        ),
        _tool(
            "startRun",
            _start,
            takes=StartRunWithPairs,
            gives=RunStatus,
            reads_only=False,
            open_world=True,
        ),
        _tool(
            "runStatus",
            _status,
            takes=StatusWanted,
            gives=RunStatus,
            reads_only=True,
            open_world=False,
        ),
        _tool(
            "cancelRun",
            _cancel,
            takes=RunWanted,
            gives=RunStatus,
            reads_only=False,
            open_world=False,
        ),
        _tool(
            "runReport",
            _report,
            takes=ReportWanted,
            gives=Report,
            reads_only=True,
            open_world=False,
        ),
        _tool(
            "auditJudge",
            _audit,
            takes=AuditWanted,
            gives=ToolAudit,
            reads_only=False,
            open_world=True,
        ),
    )
    return {tool.definition.name: tool for tool in made}
