"""The transport on pyreqwest: Rust's reqwest, whose own thread does the work on the wire."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from datetime import timedelta

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import (
    BodyDecodeError,
    BuilderError,
    ClientClosedError,
    DecodeError,
    DetailedPyreqwestError,
    PyreqwestError,
    RequestTimeoutError,
)
from pyreqwest.proxy import ProxyBuilder
from pyreqwest.response import Response

from evenhand.errors import JudgeError, SettingsError
from evenhand.judges.reply_limits import MAX_REPLY_BYTES
from evenhand.judges.transport import JudgeEndpoint, Reply
from evenhand.messages import Message

# A server closes what is idle for long, and a request that crosses that is lost.
_IDLE_S = 15.0
_READ_BYTES = 64 * 1024
_OS_ERROR = re.compile(r" \(os error \d+\)$")


class PyreqwestTransport:
    """The client is made in the event loop of its first use."""

    def __init__(self, endpoint: JudgeEndpoint, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._url = str(endpoint.url)
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        for name, value in headers.items():
            # A line break in a key would begin a header of its own.
            if any(character in value for character in "\r\n\0"):
                raise SettingsError(Message("judges.header_line_break", name=name))
            if not value.isascii():
                raise SettingsError(Message("judges.header_character"))

    async def post(self, body: bytes, *, timeout_s: float | None = None) -> Reply:
        request = self._client_here().post(self._url).body_bytes(body)
        if timeout_s is not None:
            request = request.timeout(timedelta(seconds=timeout_s))
        task = asyncio.current_task()
        cancels = task.cancelling() if task else 0
        failure: JudgeError | None = None
        try:
            async with request.build_streamed() as response:
                reply = Reply(response.status, _headers(response), await self._read(response))
        except PyreqwestError as error:
            failure = self._explained(error)
        if task and task.cancelling() > cancels:
            # pyreqwest 0.15 loses a cancellation that arrives together with the answer.
            raise asyncio.CancelledError
        if failure is not None:
            raise failure
        return reply

    async def close(self) -> None:
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _client_here(self) -> Client:
        if self._closed:
            raise self._endpoint.closed()
        loop = asyncio.get_running_loop()
        if self._client is None:
            self._loop, self._client = loop, self._built()
        elif self._loop is not loop:
            raise self._endpoint.in_another_loop()
        return self._client

    def _built(self) -> Client:
        endpoint = self._endpoint
        builder = (
            ClientBuilder()
            .default_headers(self._headers)
            .timeout(timedelta(seconds=endpoint.timeout_s))
            .connect_timeout(timedelta(seconds=endpoint.connect_timeout_s))
            .pool_idle_timeout(timedelta(seconds=_IDLE_S))
            # Never followed: a redirect could carry the key to another host.
            .follow_redirects(False)
            .referer(False)
            .no_proxy()
        )
        if endpoint.proxy is not None:
            proxy = endpoint.proxy
            plain = ProxyBuilder.all(str(proxy.with_user(None)))
            if proxy.user is not None:
                plain = plain.basic_auth(proxy.user, proxy.password or "")
            builder = builder.proxy(plain)
        return builder.build()

    async def _read(self, response: Response) -> bytes:
        length = response.get_header("content-length") or ""
        if length.isdecimal() and int(length) > MAX_REPLY_BYTES:
            raise self._endpoint.too_large()
        pieces: list[bytes] = []
        received = 0
        while (piece := await response.body_reader.read(_READ_BYTES)) is not None:
            received += len(piece)
            if received > MAX_REPLY_BYTES:
                raise self._endpoint.too_large()
            pieces.append(bytes(piece))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _explained(self, error: PyreqwestError) -> JudgeError:
        """One sentence for what went wrong. What reqwest has no class for is in its causes."""
        endpoint, proxy = self._endpoint, self._endpoint.proxy
        causes = _causes(error)
        reason = _OS_ERROR.sub("", causes[-1]).lower() if causes else error.message
        connecting = "client error (Connect)" in causes
        if self._closed or isinstance(error, ClientClosedError):
            return endpoint.closed_while_asking()
        if isinstance(error, RequestTimeoutError):
            return endpoint.not_connected_in_time() if connecting else endpoint.too_late()
        if isinstance(error, BuilderError):
            return endpoint.not_callable()
        if "dns error" in causes:
            return endpoint.unresolved()
        if "tunnel error: proxy authorization required" in causes:
            return endpoint.proxy_wants_login()
        if "tunnel error: unsuccessful" in causes:
            return endpoint.proxy_opens_nothing(None)
        if "certificate" in reason:
            return endpoint.certificate_not_trusted(reason)
        if connecting and "tcp connect error" in causes:
            return endpoint.proxy_unreachable(reason) if proxy else endpoint.unreachable(reason)
        if connecting:
            return endpoint.no_tls(reason)
        if reason == "connection closed before message completed":
            return endpoint.unanswered()
        if isinstance(error, BodyDecodeError):
            return endpoint.broken_off()
        if isinstance(error, DecodeError):
            return endpoint.no_http(reason)
        return endpoint.disconnected(reason)


def _headers(response: Response) -> dict[str, str]:
    """Names are in lower case already; a value that is no text is left out."""
    headers: dict[str, str] = {}
    for name in response.headers:
        try:
            headers[name] = response.headers[name]
        except ValueError:
            headers[name] = ""
    return headers


def _causes(error: PyreqwestError) -> list[str]:
    """Without the first one, which quotes the address."""
    if not isinstance(error, DetailedPyreqwestError):
        return []
    messages = [cause["message"] for cause in error.details.get("causes") or ()]
    return [message for message in messages if "for url" not in message]
