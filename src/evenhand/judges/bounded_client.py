"""The HTTP client given to providers' SDKs: it checks a reply's size before they parse it."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import Any

import httpx2

from evenhand.contract.json_text import TooManyValues, refuse_many_values
from evenhand.errors import InputError, JudgeGarbled
from evenhand.judges.redaction import Redactor
from evenhand.judges.reply_limits import (
    MAX_REPLY_BYTES,
    MOST_ERROR_BYTES,
    MOST_ERROR_VALUES,
    MOST_SDK_VALUES,
    read_off_the_loop,
)

# Brotli and zstd can expand a few bytes to any size before we can count; deflate at most
# 1,032-fold.
_ENCODINGS = ("gzip", "deflate", "identity")
_CONNECT_S = 5.0  # SDKs send one time for all phases of a request


def open_bounded_client(*, timeout_s: float) -> BoundedClient:
    try:
        return BoundedClient(timeout_s=timeout_s)
    except Exception as error:  # SOCKS without its package, a port that is none, …
        reason = Redactor()(str(error), limit=120)
        raise InputError.of("judges.provider_proxy_unusable", reason=reason) from None


class BoundedClient(httpx2.AsyncClient):
    def __init__(self, *, timeout_s: float) -> None:
        super().__init__(
            timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            headers={"Accept-Encoding": "gzip, deflate"},
            follow_redirects=True,
        )

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        phases = request.extensions.get("timeout", {})
        if phases.get("connect") is None or phases["connect"] > _CONNECT_S:
            request.extensions["timeout"] = {**phases, "connect": _CONNECT_S}
        response = await super().send(request, stream=True, **options)
        try:
            encoding = response.headers.get("content-encoding", "identity").strip().lower()
            if encoding not in _ENCODINGS:
                raise JudgeGarbled.of(
                    "judges.not_http",
                    host=_host(request),
                    reason=f"its reply is encoded as {encoding[:40]}",
                )
            if stream and response.is_success:  # a file of results, which is read line by line
                return response
            body = await _read(response)
        except BaseException:
            await response.aclose()
            raise
        await response.aclose()
        check = partial(_within_limits, body, request, is_error=response.is_error)
        return _whole(response, await read_off_the_loop(check, body))


async def _read(response: httpx2.Response) -> bytes:
    body = BytesIO()
    async for piece in response.aiter_bytes():
        body.write(piece)
        if body.tell() > MAX_REPLY_BYTES:
            raise _too_large(response.request)
    return body.getvalue()


def _within_limits(body: bytes, request: httpx2.Request, *, is_error: bool) -> bytes:
    most = MOST_ERROR_VALUES if is_error else MOST_SDK_VALUES
    try:
        refuse_many_values(body, most, object_cost=1)
    except TooManyValues:
        if is_error:  # its beginning is shown as text
            return body[:MOST_ERROR_BYTES]
        raise JudgeGarbled.of(
            "judges.reply_too_many_values", host=_host(request), most=most
        ) from None
    return body


def _whole(response: httpx2.Response, body: bytes) -> httpx2.Response:
    """The same reply, decoded and in memory."""
    encoded = ("content-encoding", "content-length", "transfer-encoding")
    kept = [(name, value) for name, value in response.headers.multi_items() if name not in encoded]
    whole = httpx2.Response(
        response.status_code,
        headers=kept,
        content=body,
        request=response.request,
        extensions=response.extensions,
        history=response.history,
    )
    whole.elapsed = response.elapsed
    return whole


def _too_large(request: httpx2.Request) -> JudgeGarbled:
    most = MAX_REPLY_BYTES // 2**20
    return JudgeGarbled.of("judges.reply_too_large", host=_host(request), max_reply_bytes=most)


def _host(request: httpx2.Request) -> str:
    return request.url.netloc.decode()
