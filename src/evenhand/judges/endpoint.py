"""One judge's address, the way there, and what to say when something breaks on it.

Both transports raise these errors, so that a fault reads the same whichever of them met it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from yarl import URL

from evenhand.errors import (
    JudgeAuthentication,
    JudgeConnectionLost,
    JudgeError,
    JudgeGarbled,
    JudgeRejected,
    JudgeTimeout,
    JudgeUnreachable,
)
from evenhand.judges.addresses import proxy_for, proxy_variable
from evenhand.judges.redaction import Redactor

MAX_REPLY_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
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
        return JudgeError(f"the judge at {self.host} is closed; open it again to ask it")

    def closed_while_asking(self) -> JudgeError:
        return JudgeError(f"the judge at {self.host} was closed while it was being asked")

    def in_another_loop(self) -> JudgeError:
        return JudgeError(
            f"the judge at {self.host} belongs to another event loop; open one judge per event loop"
        )

    def in_a_stopped_loop(self) -> JudgeError:
        return JudgeError(
            f"the judge at {self.host} belongs to an event loop that is not running; "
            "close it in the loop that asked it"
        )

    # No connection

    def proxy_wants_login(self) -> JudgeAuthentication:
        return JudgeAuthentication(
            f"the proxy {self._proxy_shown} wants a user and a password (HTTP 407); "
            "put them into the proxy's URL"
        )

    def proxy_opens_nothing(self, reason: str | None) -> JudgeUnreachable:
        why = f" ({reason})" if reason else ""
        return JudgeUnreachable(
            f"the proxy {self._proxy_shown} opens no connection to {self.host}{why}; "
            f"check the proxy, or add {self.url.host} to NO_PROXY"
        )

    def proxy_unreachable(self, reason: str) -> JudgeUnreachable:
        return JudgeUnreachable(
            f"cannot connect to the proxy {self._proxy_shown} ({reason}); {self._proxy_remedy}"
        )

    def unreachable(self, reason: str) -> JudgeUnreachable:
        return JudgeUnreachable(
            f"cannot connect to {self.host} ({reason}); "
            "check that the server runs and that the base URL is right"
        )

    def unresolved(self) -> JudgeUnreachable:
        if self.proxy:  # only its name is resolved here; it resolves the judge's
            return JudgeUnreachable(
                f"the proxy {self._proxy_shown} cannot be resolved; {self._proxy_remedy}"
            )
        return JudgeUnreachable(
            f"the host name {self.url.host} cannot be resolved; check the base URL and the network"
        )

    def not_connected_in_time(self) -> JudgeUnreachable:
        if self.proxy:
            return JudgeUnreachable(
                f"no connection by way of the proxy {self._proxy_shown} in "
                f"{self.connect_timeout_s:g} s; {self._proxy_remedy}"
            )
        return JudgeUnreachable(
            f"no connection to {self.host} in {self.connect_timeout_s:g} s; "
            "check the base URL and the network"
        )

    def certificate_not_trusted(self, reason: str) -> JudgeUnreachable:
        return _final(
            f"the certificate of {self.host} is not trusted ({self.redact(reason)}); "
            "point SSL_CERT_FILE at your authority's certificates"
        )

    def no_tls(self, reason: str) -> JudgeUnreachable:
        return _final(
            f"no TLS connection to {self.host} ({self.redact(reason)}); "
            "check whether the base URL should begin with http:// instead"
        )

    def not_callable(self) -> JudgeRejected:
        return JudgeRejected(
            f"{self.host} is not an address that can be called; check the base URL"
        )

    # No answer

    def too_late(self) -> JudgeTimeout:
        return JudgeTimeout(
            f"no complete answer from {self.host} in {self.timeout_s:g} s; "
            "raise --timeout, or ask for fewer tokens with --max-tokens"
        )

    def no_http(self, reason: str) -> JudgeGarbled:
        return JudgeGarbled(
            f"{self.host} does not answer in HTTP ({self.redact(reason)}); "
            "check the base URL's scheme and port"
        )

    def too_large(self) -> JudgeGarbled:
        return JudgeGarbled(
            f"{self.host} sent a reply above {MAX_REPLY_BYTES // 2**20} MiB; "
            "check that the base URL is a chat completions server"
        )

    def broken_off(self) -> JudgeConnectionLost:
        return JudgeConnectionLost(
            f"the reply of {self.host} broke off half-way; ask again, or check the server's log"
        )

    def unanswered(self) -> JudgeConnectionLost:
        return JudgeConnectionLost(
            f"{self.host} closed the connection without an answer; "
            "ask again, or check the server's log"
        )

    def disconnected(self, reason: str) -> JudgeConnectionLost:
        return JudgeConnectionLost(
            f"the connection to {self.host} broke ({reason}); ask again, or check the server's log"
        )

    @property
    def _proxy_shown(self) -> str:
        return f"{self.proxy.host}:{self.proxy.port}" if self.proxy else "between"

    @property
    def _proxy_remedy(self) -> str:
        return f"correct or unset {proxy_variable(self.url)}, or add {self.url.host} to NO_PROXY"


def _final(message: str) -> JudgeUnreachable:
    """Unreachable in a way that waiting does not mend."""
    error = JudgeUnreachable(message)
    error.retryable = False
    return error
