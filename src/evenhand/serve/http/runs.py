"""`/v1/runs`: many pairs, judged in the background; their progress, verdicts, end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from pydantic import Field
from starlette.responses import Response

from evenhand.contract.model import Model
from evenhand.errors import InputError, WrongMediaType
from evenhand.serve.events import event_stream
from evenhand.serve.http.bodies import media_type_of, read_body
from evenhand.serve.http.endpoint import Answer, Body, Call, Endpoint, NoQuery, answer
from evenhand.serve.http.uploads import FORM, LINES, spool_form, spool_lines
from evenhand.serve.idempotency import key_of, once
from evenhand.serve.upload import Upload
from evenhand.serve.values import (
    RunPage,
    RunStatus,
    StartRun,
    StartRunWithPairs,
    VerdictFilters,
    VerdictPage,
)

_MOST_ROWS = 10_000


class RunsQuery(Model):
    after: str | None = Field(default=None, description="The `next` of the page before")
    limit: int = Field(
        default=50, ge=1, le=_MOST_ROWS, description="Rows at most; the server may give fewer"
    )
    state: Literal["reading", "queued", "judging", "finished", "stopped", "failed"] | None = Field(
        default=None, description="Only runs in this state"
    )


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


async def start_run(call: Call[StartRun]) -> Response:
    """Pairs to be judged in the background: as JSON lines (streamed, options in the query), as a
    form with a file of any format that `evenhand run` reads (likewise), or as JSON with the
    options beside the pairs. 202 says that all pairs are stored; the same data and judges again
    find the same run (200), which goes on where it had been stopped."""
    key_of(call.request)
    await call.service.refuse_when_full()
    kind, _ = media_type_of(call.request)
    limit_bytes = call.service.config.limits.upload_bytes
    if kind in LINES:
        spool = await spool_lines(call.request, limit_bytes=limit_bytes)
    elif kind == FORM:
        spool = await spool_form(call.request, limit_bytes=limit_bytes)
    elif kind == "application/json":
        return await _start_with_pairs(call)
    else:
        takes = f"{LINES[0]}, {FORM} or application/json"
        raise WrongMediaType(
            f"the body's content type is {kind[:60] or 'missing'}; send pairs as {takes}"
        )
    try:
        return await _started(call, spool.upload, call.query, spool.digest)
    finally:
        spool.close()


async def _start_with_pairs(call: Call[StartRun]) -> Response:
    body = await call.body()
    if call.request.query_params:
        name = next(iter(call.request.query_params))
        raise InputError(
            f"the query parameter {name} goes with JSON lines and files; "
            "put it into the body, beside the pairs"
        )
    request = read_body(body, StartRunWithPairs)
    with Upload.of_pairs(request.pairs) as upload:
        return await _started(call, upload, request.options(), body)


async def _started(
    call: Call[StartRun], upload: Upload, options: StartRun, content: bytes
) -> Response:
    async def started() -> Response:
        status = await call.service.start_run(upload, options, token=call.token)
        place = {"Location": f"/v1/runs/{status.id}"}
        return answer(status, 200 if status.found else 202, headers=place)

    return await once(
        call.request, started, store=call.service.store, token=call.token, content=content
    )


async def list_runs(call: Call[RunsQuery]) -> Response:
    """Runs, newest first, page by page: those of the command line in the same store too."""
    query = call.query
    limit = min(query.limit, call.service.config.limits.page_rows)
    return answer(await call.service.runs(after=query.after, limit=limit, state=query.state))


async def show_run(call: Call[NoQuery]) -> Response:
    """A run's progress: how many pairs came to which outcome, what they cost, how long the rest
    will take."""
    return answer(await call.service.run(call.run_id))


async def follow_run(call: Call[NoQuery]) -> Response:
    """Server-sent events: `progress` with the run's status, now and whenever it changes, and
    `end` with the last one; a comment every 15 seconds in between. `Last-Event-ID` is accepted:
    nothing is told twice, and whoever was told the end gets 204."""
    statuses = call.service.follow(call.run_id)
    return await event_stream(statuses, last_id=call.request.headers.get("last-event-id"))


async def list_verdicts(call: Call[VerdictsQuery]) -> Response:
    """A run's verdicts by the order of its pairs, page by page. Every filter that is given must
    hold. A page may be short before the end: `next` is null only there."""
    query = call.query
    limit = min(query.limit, call.service.config.limits.page_rows)
    page = await call.service.verdicts(
        call.run_id, query.filters(), cursor=query.cursor, limit=limit, full=query.full
    )
    return answer(page)


async def cancel_run(call: Call[NoQuery]) -> Response:
    """No further pair is begun; what is in flight is still stored. A run at rest stays as it is."""

    async def cancelled() -> Response:
        return answer(await call.service.cancel(call.run_id))

    return await _without_body(call, cancelled)


async def resume_run(call: Call[NoQuery]) -> Response:
    """A stopped or failed run goes on where it was; nothing is judged twice."""

    async def resumed() -> Response:
        return answer(await call.service.resume(call.run_id))

    return await _without_body(call, resumed)


async def _without_body(call: Call[NoQuery], work: Callable[[], Awaitable[Response]]) -> Response:
    body = await call.any_body()
    if body.strip() not in (b"", b"{}"):
        raise InputError(f"{call.request.url.path} takes no body; send it without one")
    return await once(call.request, work, store=call.service.store, token=call.token, content=b"")


_STATUS = Answer("The run's status", RunStatus, example="run")
_PAIR_LINES = {"type": "string", "format": "binary", "description": "One pair a line, as JSON"}
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
_FORM = {
    "type": "object",
    "required": ["file"],
    "additionalProperties": False,
    "properties": {
        "file": {
            "type": "string",
            "format": "binary",
            "description": "JSON lines, JSON, CSV, TSV or Parquet, by the name's ending; or .gz",
        }
    },
}

ENDPOINTS: tuple[Endpoint[Any], ...] = (
    Endpoint(
        method="POST",
        path="/v1/runs",
        name="startRun",
        summary="Judge many pairs in the background",
        work=start_run,
        query=StartRun,
        bodies={
            "application/x-ndjson": Body(schema=_PAIR_LINES, examples=("lines",)),
            FORM: Body(schema=_FORM),
            "application/json": Body(model=StartRunWithPairs, examples=("start-run",)),
        },
        answers={
            202: Answer(
                "All pairs are stored and wait to be judged",
                RunStatus,
                example="started-run",
                headers={"Location": "Where the run's status is"},
            ),
            200: Answer(
                "The same run was there already",
                RunStatus,
                example="run",
                headers={"Location": "Where the run's status is"},
            ),
        },
        refusals=(402, 501),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs",
        name="listRuns",
        summary="List runs",
        work=list_runs,
        query=RunsQuery,
        answers={200: Answer("Runs, newest first", RunPage, example="run-page")},
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}",
        name="showRun",
        summary="Show a run's progress",
        work=show_run,
        query=NoQuery,
        answers={200: _STATUS},
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/events",
        name="followRun",
        summary="Follow a run as it goes",
        work=follow_run,
        query=NoQuery,
        answers={
            200: Answer(
                "Events, each of this kind, until the run is at rest",
                schema=_EVENT,
                media_type="text/event-stream",
                example="event",
            ),
            204: Answer("The end was told already: Last-Event-ID was that of the event `end`"),
        },
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/verdicts",
        name="listVerdicts",
        summary="List a run's verdicts",
        work=list_verdicts,
        query=VerdictsQuery,
        answers={200: Answer("Verdicts", VerdictPage, example="verdict-page")},
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/cancel",
        name="cancelRun",
        summary="Stop a run",
        work=cancel_run,
        query=NoQuery,
        answers={200: _STATUS},
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/resume",
        name="resumeRun",
        summary="Let a stopped run go on",
        work=resume_run,
        query=NoQuery,
        answers={200: _STATUS},
    ),
)
