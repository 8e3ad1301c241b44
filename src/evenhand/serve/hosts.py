"""Which names a server answers to, and which web pages may ask it.

A browser lets any page send requests to a server on its user's machine, and by DNS rebinding (the
page's own name is made to point there) even lets it read the answers. Such a request carries the
page's name in Host or Origin, so both are looked at, before anything else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from evenhand.errors import Forbidden
from evenhand.serve.config import ServerConfig, is_loopback

_DEFAULT_PORTS = {"http": 80, "https": 443}
_FROM_ELSEWHERE = (b"cross-site", b"same-site")


class Hosts:
    def __init__(self, config: ServerConfig) -> None:
        self._local = config.is_local
        self._names = frozenset(name.strip("[]").lower() for name in config.allowed_hosts)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in config.allowed_origins)

    def check_host(self, given: Sequence[bytes]) -> str:
        """The Host header as it was sent; Forbidden where the server is not meant by it."""
        if len(given) != 1:
            raise Forbidden(f"the request has {len(given)} Host headers; send one")
        text = given[0].decode("latin-1")
        name = _split(f"//{text}")[0]
        if name is None or not self._meant(name):
            raise Forbidden(
                f"the server does not answer to the name {_shown(text)}; call it by the address "
                "that it listens on, or let its operator set allowed_hosts"
            )
        return text

    def _meant(self, name: str) -> bool:
        if name in self._names:
            return True
        if self._local:
            return is_loopback(name)
        # Others can reach it anyway, and need a token, which a rebound page has not.
        return not self._names

    def check_origin(self, given: Sequence[bytes], host: str) -> str | None:
        """The page's origin where it is another one that is allowed; None for our own, or none."""
        if not given:
            return None
        origin = given[0].decode("latin-1")
        if len(given) == 1:
            if origin.lower() in self._origins:
                return origin
            if is_own(origin, host):
                return None
        raise Forbidden(
            f"pages of {_shown(origin)} may not call this server; "
            "its operator can name them in allowed_origins"
        )

    def check_fetch(self, site: bytes | None, mode: bytes | None, method: str) -> None:
        """Of what a page embeds (an image, a script) browsers tell no origin, but this."""
        if site in _FROM_ELSEWHERE and not (method == "GET" and mode == b"navigate"):
            raise Forbidden(
                "a page of another site may not call this server; "
                "its operator can name it in allowed_origins"
            )


def is_own(origin: str, host: str) -> bool:
    """Whether it is the origin of the pages of the server that is called by this Host."""
    scheme = origin.partition(":")[0].lower()
    default = _DEFAULT_PORTS.get(scheme)
    if default is None:
        return False
    name, port = _split(origin)
    own_name, own_port = _split(f"//{host}")
    return name is not None and name == own_name and (port or default) == (own_port or default)


def sent_by_own_page(origins: Sequence[bytes], site: bytes | None, host: str) -> bool:
    """What a form of ours looks like. Nothing told is not enough: every browser of today tells."""
    if origins:
        return len(origins) == 1 and is_own(origins[0].decode("latin-1"), host)
    return site == b"same-origin"


def _split(url: str) -> tuple[str | None, int | None]:
    """Name and port; no name where it is not plainly an address."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError:
        return None, None
    plain = not (parts.path or parts.query or parts.fragment or parts.username or "@" in url)
    return (name.lower().rstrip(".") if name and plain else None), port


def _shown(text: str) -> str:
    kept = "".join(sign for sign in text[:80] if sign.isprintable())
    return repr(kept)
