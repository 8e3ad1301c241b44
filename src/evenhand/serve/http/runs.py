"""`/v1/runs`: many pairs, judged in the background; their progress, verdicts, end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import Field
from starlette.responses import Response

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.serve.events import event_stream
from evenhand.serve.http.endpoint import Answer, Call, Endpoint, NoQuery, answer
from evenhand.serve.idempotency import once
from evenhand.serve.values import (
    RunPage,
    RunStateView,
    RunStatus,
    VerdictPage,
)
from evenhand.serve.verdict_filters import VerdictFilters

_MOST_ROWS = 10_000


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

ENDPOINTS: tuple[Endpoint[Any], ...] = (
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
