"""The transport on pyreqwest, a client in Rust: a call takes less than half of aiohttp's CPU time.

HTTP/1.1 on a connection for each request in flight, as with aiohttp: by HTTP/2 a server's limit of
streams would stand in for the engine's.

pyreqwest cannot abort a request that waits for its answer: one that is given up lives on, unseen,
until its answer comes or its time is up. What went wrong with one is told by its causes' texts, the
only place where pyreqwest says it; `tests/judges/test_faulty_server.py` holds them to that.
"""

from __future__ import annotations

import asyncio
import re
import types
from collections.abc import Coroutine, Generator, Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import (
    BodyDecodeError,
    BuilderError,
    DecodeError,
    PyreqwestError,
    RequestTimeoutError,
)
from pyreqwest.http import HeaderMap
from pyreqwest.proxy import ProxyBuilder
from pyreqwest.response import Response
from yarl import URL

from evenhand.errors import JudgeError, SettingsError
from evenhand.judges.endpoint import MAX_REPLY_BYTES, Endpoint
from evenhand.judges.transport import Reply

T = TypeVar("T")

_CONNECTING = "client error (Connect)"
_NO_WAY_TO_PROXY = "tunnel error: failed to create underlying connection"
_LOGIN_WANTED = "tunnel error: proxy authorization required"
_TUNNEL = "tunnel error: "
_UNRESOLVED = "dns error"
_NO_TCP = "tcp connect error"
_BAD_CERTIFICATE = "invalid peer certificate: "
_ENDED_IN_HANDSHAKE = "tls handshake eof"
_CLOSED = "connection closed before message completed"
_OS_ERROR = re.compile(r" \(os error \d+\)$")

_LONGEST_S = 10 * 365 * 86_400.0  # a timedelta takes more, a clock in Rust may not


class ReqwestTransport:
    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._url = str(endpoint.url)
        self._client: Client | None = _client(endpoint, headers)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, body: bytes, *, timeout_s: float | None = None) -> Reply:
        building = self._client_here().post(self._url).body_bytes(body)
        if timeout_s is not None:
            building = building.timeout(_duration(timeout_s))
        request = building.build_streamed()
        try:
            response = await _cancellable(request.__aenter__())
            headers = _Headers(response.headers)
            try:
                return Reply(response.status, headers, await self._read(response, headers))
            except BaseException:
                # There may be more to come. After a whole body there is nothing left to close.
                await request.__aexit__(None, None, None)
                raise
        except PyreqwestError as error:
            failure = self._explained(error)
        raise failure

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _client_here(self) -> Client:
        if self._client is None:
            raise self._endpoint.closed()
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise self._endpoint.in_another_loop()
        return self._client

    async def _read(self, response: Response, headers: Mapping[str, str]) -> bytes:
        # The length is a hint, and gone where the reply is compressed; what comes is counted.
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > MAX_REPLY_BYTES:
            raise self._endpoint.too_large()
        reader = response.body_reader
        pieces: list[bytes] = []
        received = 0
        while (piece := await _cancellable(reader.read_chunk())) is not None:
            received += len(piece)
            if received > MAX_REPLY_BYTES:
                raise self._endpoint.too_large()
            pieces.append(bytes(piece))
        return b"".join(pieces)

    def _explained(self, error: PyreqwestError) -> JudgeError:
        """One sentence for what went wrong; the later a cause, the nearer to the fault."""
        told = self._endpoint
        if self._client is None:
            return told.closed_while_asking()
        causes = _causes(error)
        last = causes[-1]
        if isinstance(error, RequestTimeoutError):
            return told.not_connected_in_time() if _CONNECTING in causes else told.too_late()
        if _CONNECTING in causes:
            return self._without_connection(causes[causes.index(_CONNECTING) + 1 :] or [last])
        if isinstance(error, BodyDecodeError):
            return told.broken_off()
        if isinstance(error, DecodeError):
            return told.no_http(last)
        if isinstance(error, BuilderError):
            return told.not_callable()
        if last == _CLOSED:
            return told.unanswered()
        return told.disconnected(self._reason(last))

    def _without_connection(self, causes: list[str]) -> JudgeError:
        told = self._endpoint
        last = causes[-1]
        if last == _LOGIN_WANTED:
            return told.proxy_wants_login()
        if causes[0].startswith(_TUNNEL) and causes[0] != _NO_WAY_TO_PROXY:
            return told.proxy_opens_nothing(self._reason(last.removeprefix(_TUNNEL)))
        if _UNRESOLVED in causes:
            return told.unresolved()
        if _NO_TCP in causes and told.proxy:
            return told.proxy_unreachable(self._reason(last))
        if _NO_TCP in causes or _OS_ERROR.search(last) or last == _ENDED_IN_HANDSHAKE:
            return told.unreachable(self._reason(last))
        if last.startswith(_BAD_CERTIFICATE):
            return told.certificate_not_trusted(last.removeprefix(_BAD_CERTIFICATE))
        return told.no_tls(last)

    def _reason(self, cause: str) -> str:
        return self._endpoint.redact(_OS_ERROR.sub("", cause)).lower()


def _client(endpoint: Endpoint, headers: Mapping[str, str]) -> Client:
    sent = HeaderMap()
    for name, value in headers.items():
        sent.insert(name, value, is_sensitive=name == "Authorization")
    builder = (
        ClientBuilder()
        .default_headers(sent)
        .follow_redirects(False)  # one could carry the key to another host
        .http1_only()
        .timeout(_duration(endpoint.timeout_s))
        .connect_timeout(_duration(endpoint.connect_timeout_s))
    )
    # Either of them keeps it from reading the environment itself.
    builder = builder.proxy(_proxy(endpoint.proxy)) if endpoint.proxy else builder.no_proxy()
    try:
        client = builder.build()
        client.post(str(endpoint.url))
    except BuilderError as error:
        reason = endpoint.redact(_causes(error)[-1])
    else:
        return client
    raise SettingsError(
        f"the transport reqwest cannot serve {endpoint.host} ({reason}); "
        "set EVENHAND_TRANSPORT to aiohttp"
    )


def _proxy(url: URL) -> ProxyBuilder:
    proxy = ProxyBuilder.all(str(url.with_user(None)))
    if url.user is None and url.password is None:
        return proxy
    return proxy.basic_auth(url.user or "", url.password or "")


@types.coroutine
def _cancellable(asked: Coroutine[Any, Any, T]) -> Generator[Any, None, T]:
    """Ends when its task is cancelled. pyreqwest's own coroutines swallow that where their result
    has come meanwhile, and the task would run on."""
    try:
        while True:
            yield asked.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    except BaseException:
        asked.close()
        raise


def _causes(error: PyreqwestError) -> list[str]:
    details = getattr(error, "details", None) or {}
    return [cause["message"] for cause in details.get("causes") or ()] or [error.message]


def _duration(seconds: float) -> timedelta:
    return timedelta(seconds=min(seconds, _LONGEST_S))


class _Headers(Mapping[str, str]):
    """A value that is no ASCII text is as good as absent; HeaderMap would raise."""

    __slots__ = ("_found",)

    def __init__(self, found: HeaderMap) -> None:
        self._found = found

    def __getitem__(self, name: str) -> str:
        try:
            return self._found[name]
        except ValueError:
            raise KeyError(name) from None

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self._found.get(name, default)
        except ValueError:
            return default

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
