"""What all endpoints share, on FastAPI's own routes: requests within limits, and with an
Idempotency-Key one answer to a request that is sent again, from any worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive

from evenhand.errors import Conflict, EvenhandError, InputError
from evenhand.messages import FOR_CLIENTS, Message
from evenhand.serve.http.document import IDEMPOTENCY_KEY, LONGEST_KEY
from evenhand.serve.http.problems import problem_response, refusal_behind
from evenhand.serve.http.requests import BoundedRequest, run_id_of, token_of
from evenhand.serve.service import Service
from evenhand.serve.values import LONGEST_ID
from evenhand.store.requests import KeyedRequest, StoredRequest, StoredResponse

REPLAYED = "Idempotency-Replayed"

_KEPT_HEADERS = ("content-type", "location", "cache-control")
# Of a request that is still being answered: it is worth asking again soon.
_ASK_AGAIN_S = 1

_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class BoundedRoute(APIRoute):
    """Reads its query and body through our limits."""

    def get_route_handler(self) -> _Handler:
        handle = super().get_route_handler()
        takes_query = bool(self.dependant.query_params)

        async def bounded(request: Request) -> Response:
            within = _within_limits(request)
            if not takes_query:
                within.refuse_query()
            return await handle(within)

        return bounded


class KeyedRoute(BoundedRoute):
    """Its POST takes an Idempotency-Key, and a body small enough to be read first."""

    def get_route_handler(self) -> _Handler:
        handle = super().get_route_handler()
        if "POST" not in (self.methods or ()):
            return handle

        async def keyed(request: Request) -> Response:
            if key_of(request) is None:
                return await handle(request)
            within = _within_limits(request)
            content = await Request.body(within)  # of any kind; what is read is kept for later
            return await once(within, partial(_settled, handle, within), content)

        return keyed


def _within_limits(request: Request) -> BoundedRequest:
    if isinstance(request, BoundedRequest):
        return request
    return BoundedRequest(request.scope, request.receive)


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _run_id(
    request: Request,
    id: Annotated[  # noqa: A002 - what the path calls it
        str,
        Path(
            description="The run's id, or its name",
            json_schema_extra={"minLength": 1, "maxLength": LONGEST_ID},
            openapi_examples={"run": {"value": "1"}},
        ),
    ],
) -> str:
    return run_id_of(request)


ServiceOf = Annotated[Service, Depends(_service)]
RunId = Annotated[str, Depends(_run_id)]


def answer(
    value: BaseModel, status: int = 200, *, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(
        value.model_dump_json(context=FOR_CLIENTS),
        status_code=status,
        headers={"Cache-Control": "no-store", **(headers or {})},
        media_type="application/json",
    )


async def once(
    request: Request, work: Callable[[], Awaitable[Response]], content: bytes
) -> Response:
    """The answer of `work`, or that of the request which came with this key before.

    Kept are answers that would be the same again: not those of a full or failing server. With
    a key the work goes on when its client is gone, since that will come back for the answer.
    """
    key = key_of(request)
    if key is None:
        return await work()
    service: Service = request.app.state.service
    store = service.store
    keyed = KeyedRequest(
        token=token_of(request) or "",
        key=key,
        path=f"{request.method} {request.url.path}",
        digest=_digest(request, content),
        owner=secrets.token_hex(16),
    )
    before = await asyncio.to_thread(store.requests.begin, keyed)
    if before is not None:
        return _replayed(before, keyed)
    try:
        try:
            response = await work()
        except EvenhandError as error:  # a refusal is an answer like any other
            response = problem_response(error)
        if response.status_code < 500 and response.status_code != 429:
            await asyncio.to_thread(store.requests.finish, keyed, _kept(response))
            return response
    except BaseException:
        await asyncio.shield(asyncio.to_thread(store.requests.forget, keyed))
        raise
    await asyncio.to_thread(store.requests.forget, keyed)
    return response


async def _settled(handle: _Handler, request: Request) -> Response:
    """With what FastAPI refuses as an error of ours."""
    try:
        return await handle(request)
    except (RequestValidationError, HTTPException) as error:
        raise refusal_behind(error, request) from None


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
    key = request.headers.get(IDEMPOTENCY_KEY)
    if key is not None and not (
        0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()
    ):
        raise InputError(
            Message(
                "serve.key_malformed", header=IDEMPOTENCY_KEY, n=len(key), longest_key=LONGEST_KEY
            )
        )
    return key


def _digest(request: Request, content: bytes) -> str:
    whole = hashlib.sha256(request.scope["query_string"] + b"\n")
    whole.update(content)
    return whole.hexdigest()


def _replayed(before: StoredRequest, keyed: KeyedRequest) -> Response:
    if (before.path, before.digest) != (keyed.path, keyed.digest):
        raise InputError(Message("serve.key_used", header=IDEMPOTENCY_KEY, key=keyed.key[:40]))
    if before.answer is None:
        busy = Conflict(Message("serve.key_in_flight", header=IDEMPOTENCY_KEY, key=keyed.key[:40]))
        return problem_response(busy, headers={"Retry-After": str(_ASK_AGAIN_S)})
    return Response(
        before.answer.body,
        status_code=before.answer.status,
        headers={**before.answer.headers, REPLAYED: "true"},
    )


def _kept(response: Response) -> StoredResponse:
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return StoredResponse(response.status_code, bytes(response.body), headers)
