"""What an endpoint is: an address, what it takes and gives, and the work behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Generic

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from evenhand.contract.model import Model
from evenhand.errors import NotFound
from evenhand.messages import FOR_CLIENTS, Message
from evenhand.serve.config import ServerLimits
from evenhand.serve.http.requests import Q, json_body, read_query, whole_body
from evenhand.serve.service import Service
from evenhand.serve.values import LONGEST_ID


@dataclass(frozen=True, slots=True)
class HttpCall(Generic[Q]):
    """One request on its way to the service."""

    request: Request
    query: Q

    @property
    def service(self) -> Service:
        service: Service = self.request.app.state.service
        return service

    @property
    def token(self) -> str | None:
        """The name of the token that asked, which the guard has found out."""
        name: str | None = getattr(self.request.state, "token", None)
        return name

    @property
    def run_id(self) -> str:
        run_id: str = self.request.path_params["id"]
        if len(run_id) > LONGEST_ID or not run_id.isprintable():
            raise NotFound(Message("serve.run_get_v1_runs_lists_them", run_id=run_id[:40]))
        return run_id

    async def body(self) -> bytes:
        """A body of JSON, not yet parsed."""
        return await json_body(self.request, limit_bytes=self._limit_bytes)

    async def any_body(self) -> bytes:
        return await whole_body(self.request, limit_bytes=self._limit_bytes)

    @property
    def limits(self) -> ServerLimits:
        return self.service.config.limits

    @property
    def _limit_bytes(self) -> int:
        """The guard holds each address to its own."""
        return self.limits.body_bytes


@dataclass(frozen=True, slots=True)
class ResponseSpec:
    """What comes with a status: a model of ours, or a text. `example` is the name of one.

    `late_model` names one that brings the statistics along: it is loaded when the document is
    asked for.
    """

    description: str
    model: type[BaseModel] | None = None
    late_model: str | None = None
    schema: Mapping[str, Any] | None = None
    media_type: str = "application/json"
    example: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def load_model(self) -> type[BaseModel] | None:
        return self.model if self.late_model is None else resolve_name(self.late_model)


@dataclass(frozen=True, slots=True)
class BodySpec:
    """What a POST takes, in one media type."""

    model: type[Model] | None = None
    schema: Mapping[str, Any] | None = None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[Q]):
    method: str
    path: str
    name: str
    summary: str
    work: Callable[[HttpCall[Q]], Awaitable[Response]]
    query: type[Q]
    answers: Mapping[int, ResponseSpec]
    refusals: tuple[int, ...] = ()
    bodies: Mapping[str, BodySpec] = field(default_factory=dict)
    tag: str = "runs"

    def add_to(self, app: FastAPI) -> None:
        async def handle(request: Request) -> Response:
            return await self.work(HttpCall(request, read_query(request.query_params, self.query)))

        app.add_api_route(
            self.path,
            handle,
            methods=[self.method],
            name=self.name,
            operation_id=self.name,
            summary=self.summary,
            description=" ".join((self.work.__doc__ or self.summary).split()),
            tags=[self.tag],
            status_code=min(self.answers),
            response_class=Response,
            response_model=None,
        )


def answer(
    value: BaseModel, status: int = 200, *, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(
        value.model_dump_json(context=FOR_CLIENTS),
        status_code=status,
        headers={"Cache-Control": "no-store", **(headers or {})},
        media_type="application/json",
    )


async def unless_gone(request: Request, work: Coroutine[Any, Any, Response]) -> Response:
    """Work that is worth nothing without its client: it is cancelled when that goes away."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_until_gone(request))
    either: set[asyncio.Future[Any]] = {task, gone}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(*either, return_exceptions=True)
    return Response(status_code=499)  # nobody reads it; logs tell it from an answer


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
