"""The transport on aiohttp: one shared session for one endpoint.

An error is raised outside the handler of the aiohttp error behind it, whose request headers would
otherwise travel along.
"""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import Mapping

import aiohttp
from multidict import CIMultiDict

from evenhand.errors import JudgeError
from evenhand.judges.reply_limits import LARGE_BYTES, MAX_REPLY_BYTES
from evenhand.judges.transport import JudgeEndpoint, Reply, reason_of

# aiohttp warns of bodies above 1 MiB that are given as bytes; it streams a file in pieces.
_STREAMED_FROM_BYTES = 1024 * 1024

_DNS_CACHE_S = 300


class AiohttpTransport:
    """The session is made in the event loop of its first use."""

    def __init__(self, endpoint: JudgeEndpoint, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._url = endpoint.url
        self._proxy = endpoint.proxy
        self._limits = self._limits_of(endpoint.timeout_s)
        # By way of a proxy they are given with each request and not to the session: aiohttp sends
        # a session's own headers to the proxy as well, in clear text, when it opens a tunnel.
        # Where there is none, the session's are put together once.
        self._headers = CIMultiDict(headers)
        self._request_headers = self._headers if self._proxy else None
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def post(self, body: bytes, *, timeout_s: float | None = None) -> Reply:
        """The reply, in `timeout_s` or in the time that this endpoint has for any request."""
        session = self._session_here()
        try:
            async with session.post(
                self._url,
                data=body if len(body) <= _STREAMED_FROM_BYTES else io.BytesIO(body),
                headers=self._request_headers,
                # Never followed: a redirect could carry the key to another host.
                allow_redirects=False,
                proxy=self._proxy,
                timeout=self._limits if timeout_s is None else self._limits_of(timeout_s),
            ) as response:
                return Reply(response.status, response.headers, await self._read(response))
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            failure = self._explained(error)
        raise failure

    async def close(self) -> None:
        """Closing twice is fine; a session can only be closed while its own loop is there."""
        self._closed = True
        session, self._session = self._session, None
        if session is None or self._loop is None:
            return
        if self._loop is asyncio.get_running_loop() or self._loop.is_closed():
            await session.close()
        elif self._loop.is_running():
            closing = asyncio.run_coroutine_threadsafe(session.close(), self._loop)
            await asyncio.wrap_future(closing)
        else:
            self._session = session
            raise self._endpoint.in_a_stopped_loop()

    def _session_here(self) -> aiohttp.ClientSession:
        if self._closed:
            raise self._endpoint.closed()
        loop = asyncio.get_running_loop()
        if self._session is None:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                # The engine limits what is in flight; a second limit here would only hide it.
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=_DNS_CACHE_S),
                headers=None if self._proxy else self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._limits,
                # trust_env would let ~/.netrc overwrite the Authorization header.
                trust_env=False,
            )
        elif self._loop is not loop:
            raise self._endpoint.in_another_loop()
        return self._session

    def _limits_of(self, total_s: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=total_s, connect=self._endpoint.connect_timeout_s)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        length = response.content_length
        if length is not None and length > MAX_REPLY_BYTES:
            raise self._endpoint.too_large()
        compressed = "Content-Encoding" in response.headers
        if length is not None and length <= LARGE_BYTES and not compressed:
            return await response.read()
        body = io.BytesIO()
        async for piece in response.content.iter_any():
            body.write(piece)
            if body.tell() > MAX_REPLY_BYTES:
                raise self._endpoint.too_large()
        return body.getvalue()  # the very bytes, not a copy: there may be 32 MB of them

    def _explained(self, error: Exception) -> JudgeError:
        """One sentence for what went wrong, by aiohttp's classes: the special ones come first."""
        endpoint = self._endpoint
        if self._closed:
            return endpoint.closed_while_asking()
        match error:
            case aiohttp.ClientHttpProxyError(status=407):
                return endpoint.proxy_wants_login()
            case aiohttp.ClientHttpProxyError():
                return endpoint.proxy_opens_nothing(f"HTTP {error.status}")
            case aiohttp.ClientProxyConnectionError():
                return endpoint.proxy_unreachable(reason_of(error.os_error))
            case aiohttp.ClientConnectorCertificateError():
                return endpoint.certificate_not_trusted(str(error.certificate_error))
            case aiohttp.ClientSSLError() | ssl.SSLError():
                return endpoint.no_tls(str(error))
            case aiohttp.ClientConnectorDNSError() | UnicodeError():
                return endpoint.unresolved()
            case aiohttp.ClientConnectorError():
                return endpoint.unreachable(reason_of(error.os_error))
            case aiohttp.ConnectionTimeoutError():
                return endpoint.not_connected_in_time()
            case TimeoutError():
                return endpoint.too_late()
            case aiohttp.InvalidURL():
                return endpoint.not_callable()
            case aiohttp.ClientResponseError():
                return endpoint.no_http(error.message)
            case aiohttp.ClientPayloadError():
                return endpoint.broken_off()
            case aiohttp.ServerDisconnectedError():
                return endpoint.unanswered()
        return endpoint.disconnected(
            reason_of(error) if isinstance(error, OSError) else type(error).__name__
        )
