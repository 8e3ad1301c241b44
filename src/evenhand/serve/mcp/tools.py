"""The tools that agents call, each a thin edge over the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcp_types import Tool, ToolAnnotations

from evenhand import tools as contract_tools
from evenhand.contract.model import Model
from evenhand.serve.mcp import descriptions
from evenhand.serve.mcp.answers import Answer, verdict_answer
from evenhand.serve.mcp.audits import audit
from evenhand.serve.mcp.calls import Call, follow, start
from evenhand.serve.mcp.markdown import audit_page, ranking_lines, report_page, status_line
from evenhand.serve.mcp.schemas import (
    AUDIT,
    RANKING,
    REPORT,
    STATUS,
    Schema,
    compare_schema,
    input_schema,
    or_failure,
)
from evenhand.serve.mcp.values import (
    AuditWanted,
    ReportWanted,
    RunWanted,
    StatusWanted,
)
from evenhand.serve.values import RankResponses, StartRunWithPairs, read_value


@dataclass(frozen=True, slots=True)
class ServiceTool:
    definition: Tool
    answer: Callable[[Call], Awaitable[Answer]]
    rows: str | None = None  # the field that holds many pairs, which are looked at one by one


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
    status = await start(call, wanted.pairs, wanted.options())
    return Answer(status, status_line(status))


async def _status(call: Call) -> Answer:
    wanted = read_value(StatusWanted, call.arguments)
    status = await call.service.run(wanted.run)
    if wanted.wait_s > 0 and not status.at_rest:
        status = await follow(call, status, wait_s=wanted.wait_s)
    return Answer(status, status_line(status))


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
    found = await audit(call)
    return Answer(found, audit_page(found))


def _tool(
    name: str,
    answer: Callable[[Call], Awaitable[Answer]],
    *,
    takes: type[Model] | Schema,
    gives: Schema,
    reads_only: bool,
    open_world: bool,
    repeatable: bool = True,
    destructive: bool = False,
    rows: str | None = None,
) -> ServiceTool:
    title, description = descriptions.TOOLS[name]
    return ServiceTool(
        Tool(
            name=name,
            title=title,
            description=description,
            input_schema=takes if isinstance(takes, dict) else input_schema(takes),
            output_schema=gives,
            annotations=ToolAnnotations(
                read_only_hint=reads_only,
                destructive_hint=destructive,
                idempotent_hint=repeatable,
                open_world_hint=open_world,
            ),
        ),
        answer,
        rows,
    )


def service_tools() -> dict[str, ServiceTool]:
    """By name, in the order in which they are listed."""
    made = (
        _tool(
            contract_tools.NAME,
            _compare,
            takes=contract_tools.input_schema(),
            gives=compare_schema(),
            reads_only=True,
            open_world=True,
        ),
        _tool(
            "rankResponses",
            _rank,
            takes=RankResponses,
            gives=or_failure(RANKING),
            reads_only=True,
            open_world=True,
        ),
        _tool(
            "startRun",
            _start,
            takes=StartRunWithPairs,
            gives=or_failure(STATUS),
            reads_only=False,
            open_world=True,
            rows="pairs",
        ),
        _tool(
            "runStatus",
            _status,
            takes=StatusWanted,
            gives=or_failure(STATUS),
            reads_only=True,
            open_world=False,
        ),
        _tool(
            "cancelRun",
            _cancel,
            takes=RunWanted,
            gives=or_failure(STATUS),
            reads_only=False,
            open_world=False,
        ),
        _tool(
            "runReport",
            _report,
            takes=ReportWanted,
            gives=or_failure(REPORT),
            reads_only=True,
            open_world=False,
        ),
        _tool(
            "auditJudge",
            _audit,
            takes=AuditWanted,
            gives=or_failure(AUDIT),
            reads_only=False,
            open_world=True,
            rows="pairs",
        ),
    )
    return {tool.definition.name: tool for tool in made}
