"""Idempotency-Key: a request that is sent again gets the first one's answer, from any worker."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from evenhand.errors import Conflict, EvenhandError, InputError
from evenhand.messages import Message
from evenhand.serve.http.problems import problem_response
from evenhand.store.requests import KeyedRequest, StoredRequest, StoredResponse

if TYPE_CHECKING:
    from evenhand.store import Store


HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

_LONGEST_KEY = 255
_KEPT_HEADERS = ("content-type", "location", "cache-control")
# Of a request that is still being answered: it is worth asking again soon.
_ASK_AGAIN_S = 1


async def once(
    request: Request,
    work: Callable[[], Awaitable[Response]],
    *,
    store: Store,
    token: str | None,
    content: bytes,
) -> Response:
    """The answer of `work`, or that of the request which came with this key before.

    Kept are answers that would be the same again: not those of a full or failing server. With a
    key the work goes on when its client is gone, since that will come back for the answer.
    """
    key = key_of(request)
    if key is None:
        return await work()
    keyed = KeyedRequest(
        token=token or "",
        key=key,
        path=f"{request.method} {request.url.path}",
        digest=_digest(request, content),
        owner=secrets.token_hex(16),
    )
    before = await asyncio.to_thread(store.begin_request, keyed)
    if before is not None:
        return _told(before, keyed)
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


def key_of(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is not None and not (
        0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()
    ):
        raise InputError(
            Message(
                "serve.characters_others_than_ascii",
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


def _told(before: StoredRequest, keyed: KeyedRequest) -> Response:
    if (before.path, before.digest) != (keyed.path, keyed.digest):
        raise InputError(
            Message("serve.used_another_request_each", header=HEADER, key=keyed.key[:40])
        )
    if before.answer is None:
        busy = Conflict(
            Message("serve.request_still_being_answered", header=HEADER, key=keyed.key[:40])
        )
        return problem_response(busy, headers={"Retry-After": str(_ASK_AGAIN_S)})
    return Response(
        before.answer.body,
        status_code=before.answer.status,
        headers={**before.answer.headers, REPLAYED: "true"},
    )


def _kept(response: Response) -> StoredResponse:
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return StoredResponse(response.status_code, bytes(response.body), headers)
