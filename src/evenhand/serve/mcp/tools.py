"""The tools that agents call, each a thin edge over the service: a call, its progress, its answer
or failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from evenhand import tools as contract_tools
from evenhand.analyses.registry import OURS, AnalysisEntry
from evenhand.analysis_options import AuditOptions
from evenhand.contract import Verdict
from evenhand.contract.model import Model
from evenhand.data.columns import PAIR_FIELDS, plain
from evenhand.errors import Conflict, EvenhandError, InputError, TooLarge, visible
from evenhand.judging.explanation import failure_of
from evenhand.messages import FOR_CLIENTS, Message, render
from evenhand.serve.fields import options_of, request_for, runs_of
from evenhand.serve.mcp import schemas as descriptions
from evenhand.serve.mcp.resources import audit_page, page_of, ranking_lines, status_line
from evenhand.serve.mcp.schemas import (
    AUDIT,
    RANKING,
    RESULTS,
    STATUS,
    AuditWanted,
    RunWanted,
    Schema,
    StatusWanted,
    compare_schema,
    input_schema,
    or_failure,
)
from evenhand.serve.uploads import Upload
from evenhand.serve.values import (
    RankResponses,
    RunStatus,
    StartRun,
    StartRunWithPairs,
    presentable,
    read_value,
)

if TYPE_CHECKING:
    from evenhand.serve.reports import ToolAudit
    from evenhand.serve.service import Service


# How far, of how much (None where that is not known), and what it is.
Report = Callable[[float, float | None, str | None], Awaitable[None]]


class ToolProgress:
    """What a tool tells; numbers that do not grow are not sent, as the protocol asks."""

    def __init__(self) -> None:
        self._newest: tuple[float, float | None, str | None] | None = None
        self._news = asyncio.Event()
        self._sent = -1.0
        self._ended = False

    def update(self, done: float, total: float | None = None, message: str | None = None) -> None:
        self._newest = (done, total, message)
        self._news.set()

    def of(self, what: str) -> Callable[[int, int], None]:
        """A listener for functions that tell `done` and `total` of something."""
        return lambda done, total: self.update(done, total, f"{done} of {total} {what}")

    async def send(self, report: Report) -> None:
        """Until the end is told; what comes while one is being sent is told at once afterwards."""
        while self._news.is_set() or not self._ended:
            await self._news.wait()
            self._news.clear()
            if self._newest is not None and self._newest[0] > self._sent:
                self._sent = self._newest[0]
                await report(*self._newest)

    def end(self) -> None:
        self._ended = True
        self._news.set()


@asynccontextmanager
async def reporting(report: Report) -> AsyncIterator[ToolProgress]:
    """Progress that is sent while the body runs; the last of it before the body's end is told."""
    progress = ToolProgress()
    sending = asyncio.ensure_future(progress.send(report))
    try:
        yield progress
        progress.end()
        await sending
    finally:
        if not sending.done():
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending


@dataclass(frozen=True, slots=True)
class ToolCall:
    """By whom (a token's name), with what, and whom to tell of progress."""

    service: Service
    arguments: Mapping[str, Any]
    progress: ToolProgress
    token: str | None = None


async def start(call: ToolCall, pairs: Sequence[dict[str, Any]], options: StartRun) -> RunStatus:
    await call.service.refuse_when_full()
    upload = await asyncio.to_thread(Upload.of_pairs, pairs)
    return await call.service.start_run(upload, options, token=call.token)


async def follow(call: ToolCall, status: RunStatus, *, wait_s: float | None) -> RunStatus:
    """The run's status once it is at rest, or the newest when the time is up."""
    try:
        async with asyncio.timeout(wait_s):
            async for newer in call.service.follow(status.id):
                status = newer
                total = status.done + status.pending
                call.progress.update(status.done, total, f"{status.done} of {total} verdicts")
    except TimeoutError:
        pass
    return status


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    value: Model
    text: str

    def result(self) -> CallToolResult:
        return CallToolResult(
            content=[TextContent(type="text", text=self.text)],
            structured_content=self.value.model_dump(mode="json", context=FOR_CLIENTS),
        )


def verdict_answer(verdict: Verdict) -> ToolAnswer:
    """The text is the result's JSON, for clients that read nothing else; without the passes,
    which say the same at length."""
    answer: dict[str, Any] = verdict.model_dump(
        mode="json", exclude={"metadata": {"passes"}}, context=FOR_CLIENTS
    )
    return ToolAnswer(verdict, visible(json.dumps(answer, ensure_ascii=False)))


def failed(error: EvenhandError) -> CallToolResult:
    """No verdict, no number: what went wrong, what to do, and whether trying again may help."""
    again = " Trying again may help." if error.retryable else ""
    message = render(presentable(error.message), face="http")
    failure = failure_of(error)
    body = failure.error.model_copy(update={"message": message})
    return CallToolResult(
        content=[TextContent(type="text", text=f"{error.kind}: {message}.{again}")],
        structured_content=failure.model_copy(update={"error": body}).model_dump(
            mode="json", context=FOR_CLIENTS
        ),
        is_error=True,
    )


def bug(error: Exception, *, where: str) -> EvenhandError:
    """Whatever it is, it is our fault; its text may quote what was judged and stays with us."""
    from evenhand.serve.http.problems import trail_of

    logger.error("%s failed: %s", where, trail_of(error))
    return EvenhandError(Message("serve.bug", name=type(error).__name__))


_LABELS = frozenset(plain(name) for name in PAIR_FIELDS["label"])
# Held until they are done, as the event loop itself does not.
_ending: set[asyncio.Future[None]] = set()


async def audit(call: ToolCall) -> ToolAudit:
    wanted = read_value(AuditWanted, call.arguments)
    if (wanted.run is None) == (not wanted.pairs):
        raise InputError(Message("serve.run_or_pairs"))
    if wanted.run is not None:
        if wanted.criteria:
            raise InputError(Message("serve.criteria_of_pairs"))
        status, judge = await call.service.run(wanted.run), wanted.judge
    else:
        status, judge = await _judged(call, wanted), None
    options = AuditOptions(**options_of(wanted, AuditOptions) | {"judge": judge})
    audited = await call.service.analyse(OURS["audit"], (status.id,), options)
    # By now the statistics are there.
    from evenhand.serve.reports import ToolAudit

    return ToolAudit(run=status, audit=audited, findings=audited.findings)


async def _judged(call: ToolCall, wanted: AuditWanted) -> RunStatus:
    """The labelled pairs as a run of their own; whoever stops waiting stops it too."""
    most = call.service.config.limits.tool_pairs
    if len(wanted.pairs) > most:
        raise TooLarge(Message("serve.too_many_pairs_for_tool", n=len(wanted.pairs), most=most))
    if not any(_labelled(pair) for pair in wanted.pairs):
        raise InputError(Message("serve.no_pair_labelled"))
    options = StartRun(judge=wanted.judge, criteria=wanted.criteria)
    status = await start(call, wanted.pairs, options)
    existed = status.found
    try:
        status = await follow(call, status, wait_s=None)
    except asyncio.CancelledError:
        if not existed:  # or else somebody else may be waiting for it
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
            Message("serve.run_not_judged_whole", id=status.id, state=status.state, why=why)
        )
    return status


async def _stop(service: Service, run: str) -> None:
    with contextlib.suppress(EvenhandError):  # it goes on in the background, as any run
        await service.cancel(run)


def _labelled(pair: Mapping[str, Any]) -> bool:
    """By any of the names that data files use for it."""
    return any(plain(name) in _LABELS and value not in (None, "") for name, value in pair.items())


@dataclass(frozen=True, slots=True)
class ServiceTool:
    definition: Tool
    answer: Callable[[ToolCall], Awaitable[ToolAnswer]]
    rows: str | None = None  # the field that holds many pairs, which are looked at one by one


def tool(
    name: str,
    *,
    takes: type[Model] | Schema,
    gives: Schema,
    reads_only: bool,
    open_world: bool,
    rows: str | None = None,
) -> Callable[[Callable[[ToolCall], Awaitable[ToolAnswer]]], ServiceTool]:
    title, description = descriptions.TOOLS[name]
    definition = Tool(
        name=name,
        title=title,
        description=description,
        input_schema=takes if isinstance(takes, dict) else input_schema(takes),
        output_schema=gives,
        annotations=ToolAnnotations(
            read_only_hint=reads_only,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=open_world,
        ),
    )
    return lambda answer: ServiceTool(definition, answer, rows)


@tool(
    contract_tools.NAME,
    takes=contract_tools.input_schema(),
    gives=compare_schema(),
    reads_only=True,
    open_world=True,
)
async def _compare(call: ToolCall) -> ToolAnswer:
    on_progress = call.progress.of("passes")
    return verdict_answer(
        await call.service.comparisons.compare(call.arguments, on_progress=on_progress)
    )


@tool(
    "rankResponses",
    takes=RankResponses,
    gives=or_failure(RANKING),
    reads_only=True,
    open_world=True,
)
async def _rank(call: ToolCall) -> ToolAnswer:
    request = read_value(RankResponses, call.arguments)
    on_progress = call.progress.of("comparisons")
    ranked = await call.service.comparisons.rank(request, on_progress=on_progress)
    return ToolAnswer(ranked, ranking_lines(ranked))


@tool(
    "startRun",
    takes=StartRunWithPairs,
    gives=or_failure(STATUS),
    reads_only=False,
    open_world=True,
    rows="pairs",
)
async def _start(call: ToolCall) -> ToolAnswer:
    wanted = read_value(StartRunWithPairs, call.arguments)
    status = await start(call, wanted.pairs, wanted.options())
    return ToolAnswer(status, status_line(status))


@tool(
    "runStatus",
    takes=StatusWanted,
    gives=or_failure(STATUS),
    reads_only=True,
    open_world=False,
)
async def _status(call: ToolCall) -> ToolAnswer:
    wanted = read_value(StatusWanted, call.arguments)
    status = await call.service.run(wanted.run)
    if wanted.wait_s > 0 and not status.at_rest:
        status = await follow(call, status, wait_s=wanted.wait_s)
    return ToolAnswer(status, status_line(status))


@tool(
    "cancelRun",
    takes=RunWanted,
    gives=or_failure(STATUS),
    reads_only=False,
    open_world=False,
)
async def _cancel(call: ToolCall) -> ToolAnswer:
    wanted = read_value(RunWanted, call.arguments)
    status = await call.service.cancel(wanted.run)
    return ToolAnswer(status, status_line(status))


def _analysis_tool(analysis: AnalysisEntry, name: str) -> ServiceTool:
    takes = request_for(analysis, addressed=False)

    @tool(
        name,
        takes=takes,
        gives=or_failure(RESULTS[name]),
        reads_only=True,
        open_world=False,
    )
    async def answer(call: ToolCall) -> ToolAnswer:
        wanted = read_value(takes, call.arguments)
        options = analysis.options(**options_of(wanted, analysis.options))
        runs = runs_of(wanted, analysis, None)
        result = await call.service.analyse(analysis, runs, options)
        return ToolAnswer(result, page_of(analysis, result))

    return answer


@tool(
    "auditJudge",
    takes=AuditWanted,
    gives=or_failure(AUDIT),
    reads_only=False,
    open_world=True,
    rows="pairs",
)
async def _audit(call: ToolCall) -> ToolAnswer:
    audited = await audit(call)
    return ToolAnswer(audited, audit_page(audited))


# By name, in the order in which they are listed.
TOOLS: dict[str, ServiceTool] = {
    each.definition.name: each
    for each in (
        *(_compare, _rank, _start, _status, _cancel),
        *(_analysis_tool(each, each.tool) for each in OURS.values() if each.tool),
        _audit,
    )
}
