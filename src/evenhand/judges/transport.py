"""POST to one judge's server: its base URL and proxy, the errors a connection can end in, and the
choice of transport.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

from yarl import URL

from evenhand.errors import (
    JudgeAuthentication,
    JudgeConnectionLost,
    JudgeError,
    JudgeGarbled,
    JudgeRejected,
    JudgeTimeout,
    JudgeUnreachable,
    MissingExtra,
    SettingsError,
)
from evenhand.judges.redaction import Redactor, shown_url
from evenhand.judges.registry import TransportName
from evenhand.judges.reply_limits import MAX_REPLY_BYTES, MOST_VALUES
from evenhand.messages import Message


def read_base_url(text: str) -> URL:
    """The base URL without trailing slashes; credentials and query are still in it."""
    try:
        url = URL(text.strip())
        usable = url.scheme in ("http", "https") and bool(url.host) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(Message("judges.base_url_malformed", text=shown_url(text)))
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
            Message(
                "judges.proxy_malformed", url=proxy_variable(url), given=shown_url(given), host=host
            )
        )
    return proxy


def proxy_variable(url: URL) -> str:
    return f"{url.scheme.upper()}_PROXY"


# Both transports raise these errors, so that a fault reads the same whichever of them met it.


def reason_of(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


@dataclass(frozen=True, slots=True)
class JudgeEndpoint:
    """`proxy` is the one that the environment named when this was made. No repr shows a secret."""

    url: URL = field(repr=False)
    _: KW_ONLY
    timeout_s: float
    connect_timeout_s: float
    redact: Redactor
    proxy: URL | None = field(init=False, repr=False)
    host: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "proxy", proxy_for(self.url))
        object.__setattr__(self, "host", f"{self.url.host}:{self.url.port}")

    @property
    def speaks_tls(self) -> bool:
        return "https" in (self.url.scheme, self.proxy.scheme if self.proxy else None)

    # The caller's mistakes

    def closed(self) -> JudgeError:
        return JudgeError(Message("judges.judge_closed", host=self.host))

    def closed_while_asking(self) -> JudgeError:
        return JudgeError(Message("judges.judge_closed_meanwhile", host=self.host))

    def in_another_loop(self) -> JudgeError:
        return JudgeError(Message("judges.judge_of_another_loop", host=self.host))

    def in_a_stopped_loop(self) -> JudgeError:
        return JudgeError(Message("judges.judge_of_stopped_loop", host=self.host))

    # No connection

    def proxy_wants_login(self) -> JudgeAuthentication:
        return JudgeAuthentication(
            Message("judges.proxy_wants_login", proxy_shown=self._proxy_shown)
        )

    def proxy_opens_nothing(self, reason: str | None) -> JudgeUnreachable:
        why = f" ({reason})" if reason else ""
        return JudgeUnreachable(
            Message(
                "judges.proxy_refused",
                proxy_shown=self._proxy_shown,
                host=self.host,
                why=why,
                host2=self.url.host,
            )
        )

    def proxy_unreachable(self, reason: str) -> JudgeUnreachable:
        return JudgeUnreachable(
            Message(
                "judges.proxy_unreachable",
                proxy_shown=self._proxy_shown,
                reason=reason,
                proxy_remedy=self._proxy_remedy,
            )
        )

    def unreachable(self, reason: str) -> JudgeUnreachable:
        return JudgeUnreachable(Message("judges.unreachable", host=self.host, reason=reason))

    def unresolved(self) -> JudgeUnreachable:
        if self.proxy:  # only its name is resolved here; it resolves the judge's
            return JudgeUnreachable(
                Message(
                    "judges.proxy_unresolved",
                    proxy_shown=self._proxy_shown,
                    proxy_remedy=self._proxy_remedy,
                )
            )
        return JudgeUnreachable(Message("judges.host_unresolved", host=self.url.host))

    def not_connected_in_time(self) -> JudgeUnreachable:
        if self.proxy:
            return JudgeUnreachable(
                Message(
                    "judges.proxy_connect_timeout",
                    proxy_shown=self._proxy_shown,
                    connect_timeout_s=self.connect_timeout_s,
                    proxy_remedy=self._proxy_remedy,
                )
            )
        return JudgeUnreachable(
            Message(
                "judges.connect_timeout",
                host=self.host,
                connect_timeout_s=self.connect_timeout_s,
            )
        )

    def certificate_not_trusted(self, reason: str) -> JudgeUnreachable:
        details = {"host": self.host, "reason": self.redact(reason)}
        return _final(Message("judges.certificate_not_trusted", **details))

    def no_tls(self, reason: str) -> JudgeUnreachable:
        return _final(Message("judges.no_tls", host=self.host, reason=self.redact(reason)))

    def not_callable(self) -> JudgeRejected:
        return JudgeRejected(Message("judges.address_uncallable", host=self.host))

    # No answer

    def too_late(self) -> JudgeTimeout:
        return JudgeTimeout(
            Message("judges.answer_timeout", host=self.host, timeout_s=self.timeout_s)
        )

    def no_http(self, reason: str) -> JudgeGarbled:
        return JudgeGarbled(Message("judges.not_http", host=self.host, reason=self.redact(reason)))

    def too_large(self) -> JudgeGarbled:
        return JudgeGarbled(
            Message(
                "judges.reply_too_large",
                host=self.host,
                max_reply_bytes=MAX_REPLY_BYTES // 2**20,
            )
        )

    def too_many_values(self) -> JudgeGarbled:
        return JudgeGarbled(
            Message("judges.reply_too_many_values", host=self.host, most=MOST_VALUES)
        )

    def broken_off(self) -> JudgeConnectionLost:
        return JudgeConnectionLost(Message("judges.reply_cut", host=self.host))

    def unanswered(self) -> JudgeConnectionLost:
        return JudgeConnectionLost(Message("judges.closed_without_answer", host=self.host))

    def disconnected(self, reason: str) -> JudgeConnectionLost:
        return JudgeConnectionLost(
            Message("judges.connection_broke", host=self.host, reason=reason)
        )

    @property
    def _proxy_shown(self) -> str:
        return f"{self.proxy.host}:{self.proxy.port}" if self.proxy else "between"

    @property
    def _proxy_remedy(self) -> str:
        variable = proxy_variable(self.url)
        return Message("judges.proxy_remedy", variable=variable, host=self.url.host)


def _final(message: Message) -> JudgeUnreachable:
    """Unreachable in a way that waiting does not mend."""
    error = JudgeUnreachable(message)
    error.retryable = False
    return error


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]  # asked for by their names in lower case
    body: bytes


class Transport(Protocol):
    """Serves one event loop, that of its first request. Whatever breaks is a JudgeError.

    Redirects are not followed, cookies not kept, ~/.netrc is not read, and no error holds a
    request's headers: a key goes to the judge and nowhere else.
    """

    async def post(self, body: bytes, *, timeout_s: float | None = None) -> Reply:
        """The reply, in `timeout_s` or in the time that this endpoint has for any request."""
        ...

    async def close(self) -> None:
        """Closing twice is fine."""
        ...


def open_transport(
    endpoint: JudgeEndpoint, headers: Mapping[str, str], *, name: TransportName | None = None
) -> Transport:
    """The one that is named; without a name httptools, where it is there and no proxy is."""
    if name == "httptools" or (name is None and endpoint.proxy is None):
        try:
            from evenhand.judges.httptools_transport import HttptoolsTransport
        except ImportError:
            if name is not None:
                raise MissingExtra("httptools", "speed") from None
        else:
            return HttptoolsTransport(endpoint, headers)
    from evenhand.judges.aiohttp_transport import AiohttpTransport

    return AiohttpTransport(endpoint, headers)
