"""POST to one judge's server over one shared session; whatever breaks on the way is a JudgeError.

Nothing here shows a key: secrets are cut out of every text, and an error is raised outside the
handler of the aiohttp error behind it, whose request headers would otherwise travel along.
"""

from __future__ import annotations

import asyncio
import io
import re
import ssl
import time
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from evenhand.errors import (
    JudgeAuthentication,
    JudgeConnectionLost,
    JudgeError,
    JudgeGarbled,
    JudgeRejected,
    JudgeTimeout,
    JudgeUnreachable,
    SettingsError,
)

MAX_REPLY_BYTES = 32 * 1024 * 1024

# aiohttp warns of bodies above 1 MiB that are given as bytes; it streams a file in pieces.
_STREAMED_FROM_BYTES = 1024 * 1024

_DNS_CACHE_S = 300


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Redactor:
    """Makes foreign text fit for a message: one short line without secrets."""

    _LOOKS_SECRET = re.compile(
        r"(?i:\bbearer)\s+[^\s\"',;]+"
        r"|\bBasic\s+[A-Za-z0-9+/=]{8,}"
        r"|(?<![A-Za-z0-9])(?:sk-|gsk_|xai-|hf_|AIza)[\w*.\-]{6,}"
        r"|(?<=//)[^/\s@]+(?=@)"
    )
    _UNPRINTABLE = re.compile(
        r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+"
    )
    _LOOKED_AT = 4096

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._longest = len(known[0]) if known else 0
        # A stand-in key such as "x" is only cut out as a word of its own.
        self._known = [
            re.compile(re.escape(s) if len(s) >= 8 else rf"(?<!\w){re.escape(s)}(?!\w)")
            for s in known
        ]

    def __call__(self, text: str, *, limit: int = 200) -> str:
        whole = self._redacted(text[: self._LOOKED_AT])
        if len(text) > self._LOOKED_AT and self._longest:
            whole = whole[: -self._longest]  # the cut may have left the front of a secret
        line = self._redacted(self._UNPRINTABLE.sub(" ", whole).strip())
        return line if len(line) <= limit else line[: limit - 1] + "…"

    def _redacted(self, text: str) -> str:
        for secret in self._known:
            text = secret.sub("***", text)
        return self._LOOKS_SECRET.sub("***", text)


def shown_url(text: str) -> str:
    """An address as it was typed, well formed or not, without credentials and query."""
    return re.sub(r"^(.*//)?.*@", r"\1", Redactor()(text).partition("?")[0])


def read_base_url(text: str) -> URL:
    """The base URL without trailing slashes; credentials and query are still in it."""
    try:
        url = URL(text.strip())
        usable = url.scheme in ("http", "https") and bool(url.host) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f"base URL {shown_url(text)!r} is not an http(s) address with a host; "
            "give e.g. https://api.openai.com/v1"
        )
    path = url.raw_path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return url.with_path(path, encoded=True).with_query(url.query)


def proxy_for(url: URL) -> URL | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for this address."""
    host = url.host or ""
    if urllib.request.proxy_bypass(host) or urllib.request.proxy_bypass(f"{host}:{url.port}"):
        return None
    given = urllib.request.getproxies().get(url.scheme)
    if not given:
        return None
    try:
        proxy = URL(given if "://" in given else f"http://{given}")
        usable = proxy.scheme in ("http", "https") and bool(proxy.host)
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f"{_proxy_variable(url)} {shown_url(given)!r} is not an http(s) proxy; "
            f"give e.g. http://proxy.example:3128, or add {host} to NO_PROXY"
        )
    return proxy


def _proxy_variable(url: URL) -> str:
    return f"{url.scheme.upper()}_PROXY"


class Transport:
    """One endpoint and the session that serves it, made in the event loop of its first use."""

    def __init__(
        self,
        url: URL,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
        connect_timeout_s: float,
        redact: Redactor,
    ) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._limits = self._limits_of(timeout_s)
        self._redact = redact
        self._proxy = proxy_for(url)
        # By way of a proxy they are given with each request and not to the session: aiohttp sends
        # a session's own headers to the proxy as well, in clear text, when it opens a tunnel.
        # Where there is none, the session's are put together once.
        self._headers = CIMultiDict(headers)
        self._request_headers = self._headers if self._proxy else None
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self.host = f"{url.host}:{url.port}"

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
            raise JudgeError(
                f"the judge at {self.host} belongs to an event loop that is not running; "
                "close it in the loop that asked it"
            )

    def _session_here(self) -> aiohttp.ClientSession:
        if self._closed:
            raise JudgeError(f"the judge at {self.host} is closed; open it again to ask it")
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
            raise JudgeError(
                f"the judge at {self.host} belongs to another event loop; "
                "open one judge per event loop"
            )
        return self._session

    def _limits_of(self, total_s: float) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=total_s, connect=self._connect_timeout_s)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        length = response.content_length
        if length is not None and length > MAX_REPLY_BYTES:
            raise self._too_large()
        if length is not None and "Content-Encoding" not in response.headers:
            return await response.read()
        pieces: list[bytes] = []
        received = 0
        async for piece in response.content.iter_any():
            received += len(piece)
            if received > MAX_REPLY_BYTES:
                raise self._too_large()
            pieces.append(piece)
        return b"".join(pieces)

    def _too_large(self) -> JudgeGarbled:
        return JudgeGarbled(
            f"{self.host} sent a reply above {MAX_REPLY_BYTES // 2**20} MiB; "
            "check that the base URL is a chat completions server"
        )

    def _explained(self, error: Exception) -> JudgeError:
        """One sentence for what went wrong, by aiohttp's classes: the special ones come first."""
        where = self.host
        if self._closed:
            return JudgeError(f"the judge at {where} was closed while it was being asked")
        match error:
            case aiohttp.ClientHttpProxyError(status=407):
                return JudgeAuthentication(
                    f"the proxy {self._proxy_shown()} wants a user and a password (HTTP 407); "
                    "put them into the proxy's URL"
                )
            case aiohttp.ClientHttpProxyError():
                return JudgeUnreachable(
                    f"the proxy {self._proxy_shown()} opens no connection to {where} "
                    f"(HTTP {error.status}); check the proxy, or add {self._url.host} to NO_PROXY"
                )
            case aiohttp.ClientProxyConnectionError():
                return JudgeUnreachable(
                    f"cannot connect to the proxy {self._proxy_shown()} "
                    f"({_reason(error.os_error)}); {self._proxy_remedy()}"
                )
            case aiohttp.ClientConnectorCertificateError():
                reason = self._redact(str(error.certificate_error))
                return _final(
                    f"the certificate of {where} is not trusted ({reason}); "
                    "point SSL_CERT_FILE at your authority's certificates"
                )
            case aiohttp.ClientSSLError() | ssl.SSLError():
                return _final(
                    f"no TLS connection to {where} ({self._redact(str(error))}); "
                    "check whether the base URL should begin with http:// instead"
                )
            case aiohttp.ClientConnectorDNSError() | UnicodeError() if self._proxy:
                # Only the proxy's name is resolved here; it resolves the judge's.
                return JudgeUnreachable(
                    f"the proxy {self._proxy_shown()} cannot be resolved; {self._proxy_remedy()}"
                )
            case aiohttp.ClientConnectorDNSError() | UnicodeError():
                return JudgeUnreachable(
                    f"the host name {self._url.host} cannot be resolved; "
                    "check the base URL and the network"
                )
            case aiohttp.ClientConnectorError():
                return JudgeUnreachable(
                    f"cannot connect to {where} ({_reason(error.os_error)}); "
                    "check that the server runs and that the base URL is right"
                )
            case aiohttp.ConnectionTimeoutError() if self._proxy:
                return JudgeUnreachable(
                    f"no connection by way of the proxy {self._proxy_shown()} in "
                    f"{self._connect_timeout_s:g} s; {self._proxy_remedy()}"
                )
            case aiohttp.ConnectionTimeoutError():
                return JudgeUnreachable(
                    f"no connection to {where} in {self._connect_timeout_s:g} s; "
                    "check the base URL and the network"
                )
            case TimeoutError():
                return self.too_late()
            case aiohttp.InvalidURL():
                return JudgeRejected(
                    f"{where} is not an address that can be called; check the base URL"
                )
            case aiohttp.ClientResponseError():
                return JudgeGarbled(
                    f"{where} does not answer in HTTP ({self._redact(error.message)}); "
                    "check the base URL's scheme and port"
                )
            case aiohttp.ClientPayloadError():
                return JudgeConnectionLost(
                    f"the reply of {where} broke off half-way; ask again, or check the server's log"
                )
            case aiohttp.ServerDisconnectedError():
                return JudgeConnectionLost(
                    f"{where} closed the connection without an answer; "
                    "ask again, or check the server's log"
                )
        reason = _reason(error) if isinstance(error, OSError) else type(error).__name__
        return JudgeConnectionLost(
            f"the connection to {where} broke ({reason}); ask again, or check the server's log"
        )

    def too_late(self) -> JudgeTimeout:
        return JudgeTimeout(
            f"no complete answer from {self.host} in {self._timeout_s:g} s; "
            "raise --timeout, or ask for fewer tokens with --max-tokens"
        )

    def _proxy_shown(self) -> str:
        return f"{self._proxy.host}:{self._proxy.port}" if self._proxy else "between"

    def _proxy_remedy(self) -> str:
        return f"correct or unset {_proxy_variable(self._url)}, or add {self._url.host} to NO_PROXY"


def _final(message: str) -> JudgeUnreachable:
    """Unreachable in a way that waiting does not mend."""
    error = JudgeUnreachable(message)
    error.retryable = False
    return error


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|h|m|s))")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# A reset given as a number this large is a point in time, not a duration.
_EPOCH_S = 1e9
_EPOCH_MS = 1e12


def retry_after_s(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """How long the server asks to wait: its own figure first, then its rate limits' resets."""
    now = time.time() if now is None else now
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    if given is not None:
        wait = _number(given)
        if wait is None:
            wait = _until_date(given, now)
        if wait is not None:
            return wait
    return _until_reset(headers, now)


def _until_date(text: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _until_reset(headers: Mapping[str, str], now: float) -> float | None:
    """The longest reset of those limits that are used up; where none says so, the shortest."""
    pause = used_up_s(headers, now=now)
    if pause is not None:
        return pause
    resets = (_duration(headers.get(reset), now) for _, reset in _RATE_LIMITS)
    return min((wait for wait in resets if wait is not None), default=None)


_RATE_LIMITS = tuple(
    (f"x-ratelimit-remaining{what}", f"x-ratelimit-reset{what}")
    for what in ("-requests", "-tokens", "")
)


def used_up_s(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """How long nothing is left of a rate limit, where the headers say that nothing is."""
    pause: float | None = None
    for remaining, reset in _RATE_LIMITS:
        left = headers.get(remaining)
        if left is not None and _number(left) == 0:
            wait = _duration(headers.get(reset), time.time() if now is None else now)
            if wait is not None:
                pause = wait if pause is None else max(pause, wait)
    return pause


def _duration(text: str | None, now: float) -> float | None:
    """Seconds in "1.5", "6m0s" or "250ms", or until a point in time in (milli)seconds."""
    if text is None:
        return None
    number = _number(text)
    if number is None:
        text = text.strip()
        parts = _DURATION.findall(text)
        if not parts or "".join(amount + unit for amount, unit in parts) != text:
            return None
        return sum(float(amount) * _UNIT_S[unit] for amount, unit in parts)
    if number >= _EPOCH_MS:
        return max(0.0, number / 1000 - now)
    if number >= _EPOCH_S:
        return max(0.0, number - now)
    return number


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
