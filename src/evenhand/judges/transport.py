"""POST to one judge's server: what every way of sending offers, and which one is taken."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from evenhand.errors import MissingExtra, SettingsError
from evenhand.judges.endpoint import Endpoint

TransportName = Literal["aiohttp", "reqwest", "cheapest"]
TRANSPORTS: tuple[TransportName, ...] = get_args(TransportName)

# Only OpenSSL, and so aiohttp, reads these in the same way on every system.
OPENSSL_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]  # by name in any case
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
    """The one that is named; the cheapest is reqwest, where nothing stands against it.

    Without a name aiohttp: it alone closes the connection of a request that is given up.
    """
    if name in ("reqwest", "cheapest"):
        try:
            return _open_reqwest(endpoint, headers)
        except (MissingExtra, SettingsError):
            if name == "reqwest":
                raise
    from evenhand.judges.aiohttp_transport import AiohttpTransport

    return AiohttpTransport(endpoint, headers)


def _open_reqwest(endpoint: Endpoint, headers: Mapping[str, str]) -> Transport:
    if endpoint.speaks_tls:
        for variable in OPENSSL_VARIABLES:
            if os.environ.get(variable):
                raise SettingsError(
                    f"the transport is reqwest, and {variable} is set, which only aiohttp honours; "
                    "unset one of the two"
                )
    try:
        from evenhand.judges.reqwest_transport import ReqwestTransport
    except ImportError:
        raise MissingExtra("pyreqwest", "speed") from None
    return ReqwestTransport(endpoint, headers)
