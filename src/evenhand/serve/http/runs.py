"""`/v1/runs`: many pairs judged in the background: started from lines, a file or JSON; their
progress, server-sent events, verdicts and end.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from pydantic import Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evenhand.contract.model import Model
from evenhand.errors import EvenhandError, InputError, WrongMediaType
from evenhand.messages import FOR_CLIENTS, Message
from evenhand.report.records import FlaggedPair
from evenhand.serve.config import ServerLimits
from evenhand.serve.http.endpoint import (
    BodySpec,
    Endpoint,
    HttpCall,
    ResponseSpec,
    answer,
    endpoint,
    key_of,
    until_gone,
)
from evenhand.serve.http.problems import problem_of
from evenhand.serve.http.requests import NoQuery, media_type_of, read_body
from evenhand.serve.http.uploads import FORM, LINES, spool_form, spool_lines
from evenhand.serve.uploads import Upload
from evenhand.serve.values import (
    FlagPair,
    RunPage,
    RunStateView,
    RunStatus,
    StartRun,
    StartRunWithPairs,
    UnflagPair,
    VerdictPage,
)
from evenhand.serve.verdicts import VerdictFilters

# Server-sent events: a run's status whenever it changes, until the run, or the client, ends.
#
#     event: progress
#     id: 8f0c…
#     data: {"id": "1", "state": "judging", …}
#
# Each event is the whole status, so nothing is lost with a connection: an id names what was told,
# and whoever comes back with it (`Last-Event-ID`) is not told the same again, by any worker.

HEARTBEAT_S = 15.0
HEARTBEAT = b": still here\n\n"
# After a lost connection; browsers would else come back after three seconds or more.
_COME_BACK_MS = 2000
_END = "end-"


async def event_stream(
    statuses: AsyncIterator[RunStatus], *, last_id: str | None = None
) -> Response:
    """The answer to whoever wants to follow. What is wrong with the first step is raised."""
    first = await anext(statuses, None)
    if first is None or (first.at_rest and last_id == _END + event_id(first)):
        # It was told the end already; 204 is how a browser is told not to come back.
        await _close(statuses)
        return Response(status_code=204)
    return _EventStream(_blocks(first, statuses, last_id))


def event_id(status: RunStatus) -> str:
    """What was told, without what changes by itself: speed and times."""
    passing = {"pairs_per_s", "remaining_s", "created_at", "updated_at"}
    shown = status.model_dump_json(exclude=passing).encode()
    return hashlib.blake2b(shown, digest_size=8).hexdigest()


async def _blocks(
    first: RunStatus, statuses: AsyncIterator[RunStatus], last_id: str | None
) -> AsyncGenerator[bytes]:
    status = first
    try:
        yield f"retry: {_COME_BACK_MS}\n\n".encode()
        if last_id != event_id(first):
            yield _block("progress", first, event_id(first))
        async for status in statuses:
            yield _block("progress", status, event_id(status))
        if status.at_rest:  # else the server is going down: the client comes back and goes on
            yield _block("end", status, _END + event_id(status))
    except EvenhandError as error:
        problem = problem_of(error).model_dump_json(context=FOR_CLIENTS)
        yield f"event: problem\ndata: {problem}\n\n".encode()
    finally:
        await _close(statuses)


async def _close(statuses: AsyncIterator[RunStatus]) -> None:
    if isinstance(statuses, AsyncGenerator):  # else nothing of it is left open
        await statuses.aclose()


def _block(event: str, status: RunStatus, identifier: str) -> bytes:
    data = status.model_dump_json(
        context=FOR_CLIENTS
    )  # one line: JSON has no line ends outside of escapes
    return f"event: {event}\nid: {identifier}\ndata: {data}\n\n".encode()


class _EventStream(Response):
    media_type = "text/event-stream"

    def __init__(self, blocks: AsyncGenerator[bytes]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._blocks = blocks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(until_gone(receive))
        step: asyncio.Future[bytes | None] | None = None
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            while not gone.done():
                step = step or asyncio.ensure_future(_next(self._blocks))
                either: set[asyncio.Future[Any]] = {step, gone}
                await asyncio.wait(either, timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    break
                block = HEARTBEAT
                if step.done():
                    chunk, step = step.result(), None
                    if chunk is None:
                        await send({"type": "http.response.body", "body": b""})
                        break
                    block = chunk
                await send({"type": "http.response.body", "body": block, "more_body": True})
        finally:
            await _ended(step, gone)
            await self._blocks.aclose()


async def _next(blocks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(blocks, None)


async def _ended(*tasks: asyncio.Future[Any] | None) -> None:
    left = [task for task in tasks if task is not None]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


_PAIR_LINES = {"type": "string", "format": "binary", "description": "One pair a line, as JSON"}
_FORMATS = "JSON lines, JSON, CSV, TSV or Parquet, by the name's ending; or .gz"
_FORM = {
    "type": "object",
    "oneOf": [{"required": ["file"]}, {"required": ["a", "b"]}],
    "additionalProperties": False,
    "properties": {
        name: {"type": "string", "format": "binary", "description": f"{what}: {_FORMATS}"}
        for name, what in (("file", "Pairs"), ("a", "A's outputs"), ("b", "B's outputs"))
    },
}


@endpoint(
    "POST",
    "/v1/runs",
    "startRun",
    "Judge many pairs in the background",
    StartRun,
    bodies={
        "application/x-ndjson": BodySpec(schema=_PAIR_LINES, examples=("lines",)),
        FORM: BodySpec(schema=_FORM),
        "application/json": BodySpec(model=StartRunWithPairs, examples=("start-run",)),
    },
    answers={
        202: ResponseSpec(
            "All pairs are stored and wait to be judged",
            RunStatus,
            example="started-run",
            headers={"Location": "Where the run's status is"},
        ),
        200: ResponseSpec(
            "The same run was there already",
            RunStatus,
            example="run",
            headers={"Location": "Where the run's status is"},
        ),
    },
    refusals=(402, 501, 507),
)
async def start_run(call: HttpCall[StartRun]) -> Response:
    """Pairs to be judged in the background: as JSON lines (streamed, options in the query), as a
    form with a file of any format that `evenhand run` reads (likewise) or with two models' outputs,
    `a` and `b`, which are joined by id or prompt, or as JSON with the options beside the pairs.
    202 says that all pairs are stored; the same data and judges again find the same run (200),
    which goes on where it had been stopped."""
    key_of(call.request)
    await call.service.refuse_when_full()
    kind, _ = media_type_of(call.request)
    limit_bytes = call.service.config.limits.upload_bytes
    if kind in LINES:
        upload = await spool_lines(call.request, limit_bytes=limit_bytes)
    elif kind == FORM:
        upload, _ = await spool_form(call.request, limit_bytes=limit_bytes)
    elif kind == "application/json":
        return await _start_with_pairs(call)
    else:
        takes = [LINES[0], FORM, "application/json"]
        raise WrongMediaType(
            Message("serve.body_no_pairs", kind=kind[:60] or "missing", takes=takes)
        )
    with upload:
        return await _started(call, upload, call.query, upload.digest)


async def _start_with_pairs(call: HttpCall[StartRun]) -> Response:
    body = await call.body()
    if call.request.query_params:
        name = next(iter(call.request.query_params))
        raise InputError(Message("serve.parameter_in_body", name=name))
    upload, options = await call.service.read_in(body, partial(_read_pairs, limits=call.limits))
    with upload:
        return await _started(call, upload, options, body)


def _read_pairs(body: bytes, *, limits: ServerLimits) -> tuple[Upload, StartRun]:
    request = read_body(body, StartRunWithPairs, limits, rows="pairs")
    return Upload.of_pairs(request.pairs), request.options()


async def _started(
    call: HttpCall[StartRun], upload: Upload, options: StartRun, content: bytes
) -> Response:
    async def started() -> Response:
        status = await call.service.start_run(upload, options, token=call.token)
        place = {"Location": f"/v1/runs/{status.id}"}
        return answer(status, 200 if status.found else 202, headers=place)

    return await call.once(started, content)


_MOST_ROWS = 10_000


_STATUS = ResponseSpec("The run's status", RunStatus, example="run")
_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "enum": ["progress", "end", "problem"]},
        "id": {"type": "string"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "description": "The run's status as JSON; of a `problem`, that",
        },
        "retry": {"type": "integer"},
    },
}


class RunsQuery(Model):
    after: str | None = Field(default=None, description="The `next` of the page before")
    limit: int = Field(
        default=50, ge=1, le=_MOST_ROWS, description="Rows at most; the server may give fewer"
    )
    state: RunStateView | None = Field(default=None, description="Only runs in this state")


class VerdictsQuery(VerdictFilters):
    cursor: str | None = Field(default=None, description="The `next` of the page before")
    limit: int = Field(
        default=100, ge=1, le=_MOST_ROWS, description="Rows at most; the server may give fewer"
    )
    full: bool = Field(default=False, description="With texts, reasoning and the whole verdict")

    def filters(self) -> VerdictFilters:
        return VerdictFilters.model_validate(
            self.model_dump(exclude={"cursor", "limit", "full"}, by_alias=False)
        )


@endpoint(
    "GET",
    "/v1/runs",
    "listRuns",
    "List runs",
    RunsQuery,
    answers={200: ResponseSpec("Runs, newest first", RunPage, example="run-page")},
)
async def list_runs(call: HttpCall[RunsQuery]) -> Response:
    """Runs, newest first, page by page: those of the command line in the same store too."""
    query = call.query
    limit = min(query.limit, call.service.config.limits.page_rows)
    return answer(await call.service.runs(after=query.after, limit=limit, state=query.state))


@endpoint(
    "GET",
    "/v1/runs/{id}",
    "showRun",
    "Show a run's progress",
    NoQuery,
    answers={200: _STATUS},
)
async def show_run(call: HttpCall[NoQuery]) -> Response:
    """A run's progress: how many pairs came to which outcome, what they cost, how long the rest
    will take."""
    return answer(await call.service.run(call.run_id))


@endpoint(
    "GET",
    "/v1/runs/{id}/events",
    "followRun",
    "Follow a run as it goes",
    NoQuery,
    answers={
        200: ResponseSpec(
            "Events, each of this kind, until the run is at rest",
            schema=_EVENT,
            media_type="text/event-stream",
            example="event",
        ),
        204: ResponseSpec("The end was told already: Last-Event-ID was that of the event `end`"),
    },
)
async def follow_run(call: HttpCall[NoQuery]) -> Response:
    """Server-sent events: `progress` with the run's status, now and whenever it changes, and
    `end` with the last one; a comment every 15 seconds in between. `Last-Event-ID` is accepted:
    nothing is told twice, and whoever was told the end gets 204."""
    statuses = call.service.follow(call.run_id)
    return await event_stream(statuses, last_id=call.request.headers.get("last-event-id"))


@endpoint(
    "GET",
    "/v1/runs/{id}/verdicts",
    "listVerdicts",
    "List a run's verdicts",
    VerdictsQuery,
    answers={200: ResponseSpec("Verdicts", VerdictPage, example="verdict-page")},
)
async def list_verdicts(call: HttpCall[VerdictsQuery]) -> Response:
    """A run's verdicts by the order of its pairs, page by page. Every filter that is given must
    hold. A page may be short before the end: `next` is null only there."""
    query = call.query
    limit = min(query.limit, call.service.config.limits.page_rows)
    page = await call.service.verdicts(
        call.run_id, query.filters(), cursor=query.cursor, limit=limit, full=query.full
    )
    return answer(page)


@endpoint(
    "POST",
    "/v1/runs/{id}/cancel",
    "cancelRun",
    "Stop a run",
    NoQuery,
    answers={200: _STATUS},
)
async def cancel_run(call: HttpCall[NoQuery]) -> Response:
    """No further pair is begun; what is in flight is still stored. A run at rest stays as it is."""
    return await _without_body(call, call.service.cancel)


@endpoint(
    "POST",
    "/v1/runs/{id}/resume",
    "resumeRun",
    "Let a stopped run go on",
    NoQuery,
    answers={200: _STATUS},
)
async def resume_run(call: HttpCall[NoQuery]) -> Response:
    """A stopped or failed run goes on where it was; nothing is judged twice."""
    return await _without_body(call, call.service.resume)


_FLAG = ResponseSpec("The pair, and whether it is flagged", FlaggedPair, example="flagged-pair")


@endpoint(
    "POST",
    "/v1/runs/{id}/flags",
    "flagPair",
    "Flag a pair",
    NoQuery,
    bodies={"application/json": BodySpec(model=FlagPair, examples=("flag-pair",))},
    answers={200: _FLAG},
)
async def flag_pair(call: HttpCall[NoQuery]) -> Response:
    """A flag on a pair of the run, with a comment or without; a later one takes its place."""

    async def flag(asked: FlagPair) -> FlaggedPair:
        return await call.service.flag(call.run_id, asked.pair, comment=asked.comment)

    return await call.once_for(FlagPair, flag)


@endpoint(
    "DELETE",
    "/v1/runs/{id}/flags",
    "unflagPair",
    "Take a pair's flag away",
    UnflagPair,
    answers={200: _FLAG},
)
async def unflag_pair(call: HttpCall[UnflagPair]) -> Response:
    """A pair that is not flagged stays as it is."""
    return answer(await call.service.flag(call.run_id, call.query.pair, remove=True))


async def _without_body(
    call: HttpCall[NoQuery], work: Callable[[str], Awaitable[RunStatus]]
) -> Response:
    body = await call.any_body()
    if body.strip() not in (b"", b"{}"):
        raise InputError(Message("serve.body_not_taken", path=call.request.url.path))

    async def answered() -> Response:
        return answer(await work(call.run_id))

    return await call.once(answered, b"")


# The most used one first: routes are tried in their order.
ENDPOINTS: tuple[Endpoint[Any], ...] = (
    start_run,
    list_runs,
    show_run,
    follow_run,
    list_verdicts,
    cancel_run,
    resume_run,
    flag_pair,
    unflag_pair,
)
