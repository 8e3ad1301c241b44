"""What an endpoint is: an address, what it takes and gives, and the work behind it. With an
Idempotency-Key, a request that is sent again gets the first one's answer, from any worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from evenhand.contract.model import Model
from evenhand.errors import Conflict, EvenhandError, InputError
from evenhand.messages import FOR_CLIENTS, Message
from evenhand.serve.config import ServerLimits
from evenhand.serve.http.problems import problem_response
from evenhand.serve.http.requests import (
    Q,
    ServiceRequest,
    json_body,
    read_body,
    read_query,
    whole_body,
)
from evenhand.store.requests import KeyedRequest, StoredRequest, StoredResponse

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

_M = TypeVar("_M", bound=Model)
_LONGEST_KEY = 255
_KEPT_HEADERS = ("content-type", "location", "cache-control")
# Of a request that is still being answered: it is worth asking again soon.
_ASK_AGAIN_S = 1


@dataclass(frozen=True, slots=True)
class HttpCall(ServiceRequest, Generic[Q]):
    """One request on its way to the service."""

    query: Q

    async def body(self) -> bytes:
        """A body of JSON, not yet parsed."""
        return await json_body(self.request, limit_bytes=self._limit_bytes)

    async def any_body(self) -> bytes:
        return await whole_body(self.request, limit_bytes=self._limit_bytes)

    async def once(self, work: Callable[[], Awaitable[Response]], content: bytes) -> Response:
        """The answer of `work`, or that of the request which came with this key before.

        Kept are answers that would be the same again: not those of a full or failing server. With
        a key the work goes on when its client is gone, since that will come back for the answer.
        """
        key = key_of(self.request)
        if key is None:
            return await work()
        store = self.service.store
        keyed = KeyedRequest(
            token=self.token or "",
            key=key,
            path=f"{self.request.method} {self.request.url.path}",
            digest=_digest(self.request, content),
            owner=secrets.token_hex(16),
        )
        before = await asyncio.to_thread(store.begin_request, keyed)
        if before is not None:
            return _replayed(before, keyed)
        try:
            response = await _settled(work)
            if response.status_code < 500 and response.status_code != 429:
                await asyncio.to_thread(store.finish_request, keyed, _kept(response))
                return response
        except BaseException:
            await asyncio.shield(asyncio.to_thread(store.forget_request, keyed))
            raise
        await asyncio.to_thread(store.forget_request, keyed)
        return response

    async def once_for(
        self, model: type[_M], work: Callable[[_M], Awaitable[BaseModel]]
    ) -> Response:
        """The same, with the body as what `work` is asked for."""
        body = await self.body()

        async def answered() -> Response:
            return answer(await work(read_body(body, model, self.limits)))

        return await self.once(answered, body)

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
    query: type[Q]
    work: Callable[[HttpCall[Q]], Awaitable[Response]]
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


def endpoint(
    method: str, path: str, name: str, summary: str, query: type[Q], **more: Any
) -> Callable[[Callable[[HttpCall[Q]], Awaitable[Response]]], Endpoint[Q]]:
    """Its function's docstring describes it to clients; `more` are the endpoint's other fields."""
    return lambda work: Endpoint(
        method=method, path=path, name=name, summary=summary, query=query, work=work, **more
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
    gone = asyncio.ensure_future(until_gone(request.receive))
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


async def until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def key_of(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is not None and not (
        0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()
    ):
        raise InputError(
            Message(
                "serve.key_malformed",
                header=HEADER,
                n=len(key),
                longest_key=_LONGEST_KEY,
            )
        )
    return key


async def _settled(work: Callable[[], Awaitable[Response]]) -> Response:
    """A refusal is an answer like any other: it is told again as it was told first."""
    try:
        return await work()
    except EvenhandError as error:
        return problem_response(error)


def _digest(request: Request, content: bytes) -> str:
    whole = hashlib.sha256(request.scope["query_string"] + b"\n")
    whole.update(content)
    return whole.hexdigest()


def _replayed(before: StoredRequest, keyed: KeyedRequest) -> Response:
    if (before.path, before.digest) != (keyed.path, keyed.digest):
        raise InputError(Message("serve.key_used", header=HEADER, key=keyed.key[:40]))
    if before.answer is None:
        busy = Conflict(Message("serve.key_in_flight", header=HEADER, key=keyed.key[:40]))
        return problem_response(busy, headers={"Retry-After": str(_ASK_AGAIN_S)})
    return Response(
        before.answer.body,
        status_code=before.answer.status,
        headers={**before.answer.headers, REPLAYED: "true"},
    )


def _kept(response: Response) -> StoredResponse:
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return StoredResponse(response.status_code, bytes(response.body), headers)
