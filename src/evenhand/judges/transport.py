"""POST to one judge's server: what every way of sending offers, and which one is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from evenhand.errors import MissingExtra
from evenhand.judges.endpoint import Endpoint

TransportName = Literal["aiohttp", "httptools"]
TRANSPORTS: tuple[TransportName, ...] = get_args(TransportName)


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
    endpoint: Endpoint, headers: Mapping[str, str], *, name: TransportName | None = None
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
