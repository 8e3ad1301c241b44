"""`/v1/runs`: many pairs judged in the background: started from lines, a file or JSON; their
progress, server-sent events, verdicts and end.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Query, Request
from pydantic import Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from evenhand import formats
from evenhand.contract.model import Model
from evenhand.errors import EvenhandError, InputError, WrongMediaType
from evenhand.messages import FOR_CLIENTS, Message
from evenhand.report.records import FlaggedPair
from evenhand.serve.config import ServerLimits
from evenhand.serve.http.document import SCHEMAS, refuses, shows
from evenhand.serve.http.problems import problem_of
from evenhand.serve.http.requests import media_type_of, read_pairs, token_of
from evenhand.serve.http.routes import (
    BoundedRoute,
    KeyedRoute,
    RunId,
    ServiceOf,
    answer,
    key_of,
    once,
    until_gone,
)
from evenhand.serve.http.uploads import FORM, LINES, spool_form, spool_lines
from evenhand.serve.service import Service
from evenhand.serve.uploads import Upload
from evenhand.serve.values import (
    FlagPair,
    RunPage,
    RunStateView,
    RunStatus,
    StartRun,
    StartRunQuery,
    StartRunWithPairs,
    UnflagPair,
    VerdictPage,
)
from evenhand.serve.verdicts import VerdictQuery

# What starts a run may be too long to be read before its key is looked at.
uploads = APIRouter(route_class=BoundedRoute, tags=["runs"])
router = APIRouter(route_class=KeyedRoute, tags=["runs"])

# Server-sent events: a run's status whenever it changes, until the run, or the client, ends.
#
#     event: progress
#     id: 8f0c…
#     data: {"id": "1", "state": "judging", …}
#
# Each event is the whole status, so nothing is lost with a connection: its id names the status, and
# a client that reconnects with it (`Last-Event-ID`) does not get it again, from any worker.

HEARTBEAT_S = 15.0
HEARTBEAT = b": still here\n\n"
# After a lost connection; browsers would else come back after three seconds or more.
_COME_BACK_MS = 2000
_END = "end-"


async def event_stream(
    statuses: AsyncIterator[RunStatus], *, last_id: str | None = None
) -> Response:
    """The event stream. An error in its first step is raised."""
    first = await anext(statuses, None)
    if first is None or (first.at_rest and last_id == _END + event_id(first)):
        # It already got the end; 204 stops a browser from reconnecting.
        await _close(statuses)
        return Response(status_code=204)
    return EventStream(_blocks(first, statuses, last_id))


def event_id(status: RunStatus) -> str:
    """The status without what always changes: speed and times."""
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


class EventStream(Response):
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


_FORMATS = f"{formats.listed()}, recognised by the file name; or .gz"
# FastAPI would read them whole, and knows one kind of body for each endpoint.
_BODIES: dict[str, Any] = {
    "application/x-ndjson": {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "One pair a line, as JSON",
        },
        "examples": {"lines": {}},
    },
    FORM: {
        "schema": {
            "type": "object",
            "oneOf": [{"required": ["file"]}, {"required": ["a", "b"]}],
            "additionalProperties": False,
            "properties": {
                name: {"type": "string", "format": "binary", "description": f"{what}: {_FORMATS}"}
                for name, what in (("file", "Pairs"), ("a", "A's outputs"), ("b", "B's outputs"))
            },
        },
    },
    "application/json": {
        "schema": {"$ref": SCHEMAS + StartRunWithPairs.__name__},
        "examples": {"start-run": {}},
    },
}
_LOCATION = {
    "headers": {
        "Location": {"description": "Where the run's status is", "schema": {"type": "string"}}
    }
}


@uploads.post(
    "/v1/runs",
    operation_id="startRun",
    summary="Judge many pairs in the background",
    status_code=202,
    response_model=RunStatus,
    response_description="All pairs are stored and queued for judging",
    responses={
        202: {**shows(202, "started-run")[202], **_LOCATION},
        200: {
            "model": RunStatus,
            "description": "The same run already exists",
            **shows(200, "run")[200],
            **_LOCATION,
        },
        **refuses(402, 501, 507),
    },
    openapi_extra={"requestBody": {"required": True, "content": _BODIES}},
)
async def start_run(
    request: Request, service: ServiceOf, query: Annotated[StartRunQuery, Query()]
) -> Response:
    """Judge pairs in the background. Send them as JSON Lines (streamed, options in the query), as
    a form with a file in any format that `evenhand run` reads (options in the query too) or with
    two models' outputs, `a` and `b`, matched by id or prompt, or as JSON with the options next to
    the pairs. 202 means that all pairs are stored. The same data and judges give the same run
    (200), which continues where it stopped."""
    key_of(request)
    options = query.options()
    await service.refuse_when_full()
    kind, _ = media_type_of(request)
    limit_bytes = service.config.limits.upload_bytes
    if kind in LINES:
        upload = await spool_lines(request, limit_bytes=limit_bytes)
    elif kind == FORM:
        upload, _ = await spool_form(request, limit_bytes=limit_bytes)
    elif kind == "application/json":
        return await _start_with_pairs(request, service)
    else:
        takes = [LINES[0], FORM, "application/json"]
        raise WrongMediaType(
            Message("serve.body_no_pairs", kind=kind[:60] or "missing", takes=takes)
        )
    with upload:
        return await _started(request, service, upload, options, content=upload.digest)


async def _start_with_pairs(request: Request, service: Service) -> Response:
    body = await request.body()
    for name in request.query_params:
        raise InputError(Message("serve.parameter_in_body", name=name))
    read = partial(_read_pairs, limits=service.config.limits)
    upload, options = await service.read_in(body, read)
    with upload:
        return await _started(request, service, upload, options, content=body)


def _read_pairs(body: bytes, *, limits: ServerLimits) -> tuple[Upload, StartRun]:
    given = read_pairs(body, StartRunWithPairs, limits, rows="pairs")
    return Upload.of_pairs(given.pairs), given.options()


async def _started(
    request: Request, service: Service, upload: Upload, options: StartRun, *, content: bytes
) -> Response:
    async def started() -> Response:
        status = await service.start_run(upload, options, token=token_of(request))
        place = {"Location": f"/v1/runs/{status.id}"}
        return answer(status, 200 if status.found else 202, headers=place)

    return await once(request, started, content)


_MOST_ROWS = 10_000
_STATUS: dict[str, Any] = {
    "response_model": RunStatus,
    "response_description": "The run's status",
    "responses": shows(200, "run"),
}
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
    after: str | None = Field(default=None, description="The `next` of the previous page")
    limit: int = Field(
        default=50,
        ge=1,
        le=_MOST_ROWS,
        description="Maximum number of rows; the server may return fewer",
    )
    state: RunStateView | None = Field(default=None, description="Only runs in this state")


class VerdictsQuery(VerdictQuery):
    cursor: str | None = Field(default=None, description="The `next` of the previous page")
    limit: int = Field(
        default=100,
        ge=1,
        le=_MOST_ROWS,
        description="Maximum number of rows; the server may return fewer",
    )
    full: bool = Field(default=False, description="Include texts, reasoning and the full verdict")


@router.get(
    "/v1/runs",
    operation_id="listRuns",
    summary="List runs",
    response_model=RunPage,
    response_description="Runs, newest first",
    responses=shows(200, "run-page"),
)
async def list_runs(service: ServiceOf, query: Annotated[RunsQuery, Query()]) -> Response:
    """Runs, newest first, page by page, including the command line's runs in the same store."""
    return answer(await service.runs(after=query.after, limit=query.limit, state=query.state))


@router.get("/v1/runs/{id}", operation_id="showRun", summary="Show a run's progress", **_STATUS)
async def show_run(service: ServiceOf, run: RunId) -> Response:
    """A run's progress: pairs by outcome, cost, and time left."""
    return answer(await service.run(run))


@router.get(
    "/v1/runs/{id}/events",
    operation_id="followRun",
    summary="Follow a run's progress",
    status_code=200,
    response_class=EventStream,
    response_description="Events of this kind, until the run ends",
    responses={
        200: {"content": {EventStream.media_type: {"schema": _EVENT, "example": "event"}}},
        204: {"description": "Nothing more to send: Last-Event-ID was that of the event `end`"},
    },
)
async def follow_run(
    service: ServiceOf,
    run: RunId,
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", description="The id of the last event received")
    ] = None,
) -> Response:
    """Server-sent events: `progress` with the run's status, now and whenever it changes, and
    `end` with the last one; a comment every 15 seconds in between. With `Last-Event-ID`, no event
    is sent twice, and after the end the response is 204."""
    return await event_stream(service.follow(run), last_id=last_event_id)


@router.get(
    "/v1/runs/{id}/verdicts",
    operation_id="listVerdicts",
    summary="List a run's verdicts",
    response_model=VerdictPage,
    response_description="Verdicts",
    responses=shows(200, "verdict-page"),
)
async def list_verdicts(
    service: ServiceOf, run: RunId, query: Annotated[VerdictsQuery, Query()]
) -> Response:
    """A run's verdicts in the order of its pairs, page by page. All given filters must match. A
    page may be short before the end: `next` is null only there."""
    page = await service.verdicts(
        run, query, cursor=query.cursor, limit=query.limit, full=query.full
    )
    return answer(page)


async def _no_body(request: Request) -> None:
    body = await Request.body(request)
    if body.strip() not in (b"", b"{}"):
        raise InputError(Message("serve.body_not_taken", path=request.url.path))


@router.post(
    "/v1/runs/{id}/cancel",
    operation_id="cancelRun",
    summary="Stop a run",
    dependencies=[Depends(_no_body)],
    **_STATUS,
)
async def cancel_run(service: ServiceOf, run: RunId) -> Response:
    """Start no new pair; calls in flight are still stored. A run that has ended stays as it is."""
    return answer(await service.cancel(run))


@router.post(
    "/v1/runs/{id}/resume",
    operation_id="resumeRun",
    summary="Resume a stopped run",
    dependencies=[Depends(_no_body)],
    **_STATUS,
)
async def resume_run(service: ServiceOf, run: RunId) -> Response:
    """Continue a stopped or failed run where it stopped; nothing is judged twice."""
    return answer(await service.resume(run))


_FLAG: dict[str, Any] = {
    "response_model": FlaggedPair,
    "response_description": "The pair, and whether it is flagged",
    "responses": shows(200, "flagged-pair"),
}


@router.post("/v1/runs/{id}/flags", operation_id="flagPair", summary="Flag a pair", **_FLAG)
async def flag_pair(
    service: ServiceOf,
    run: RunId,
    flag: Annotated[FlagPair, Body(openapi_examples={"flag-pair": {}})],
) -> Response:
    """Flag a pair, optionally with a comment. A later flag replaces an earlier one."""
    return answer(await service.flag(run, flag.pair, comment=flag.comment))


@router.delete("/v1/runs/{id}/flags", operation_id="unflagPair", summary="Unflag a pair", **_FLAG)
async def unflag_pair(
    service: ServiceOf, run: RunId, query: Annotated[UnflagPair, Query()]
) -> Response:
    """Remove a pair's flag. A pair that is not flagged stays as it is."""
    return answer(await service.flag(run, query.pair, remove=True))
