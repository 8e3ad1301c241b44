"""Who may ask, how often and from where: tokens and rate limits, sessions, host names and origins,
and what each kind of visitor may ask for.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address
from multiprocessing.context import SpawnContext
from typing import Protocol
from urllib.parse import urlsplit

from evenhand.errors import Forbidden
from evenhand.messages import Message
from evenhand.serve.config import ServerConfig, Token, is_loopback

# Beyond so many addresses the longest silent is forgotten.
_ADDRESSES = 10_000


class Tokens:
    def __init__(self, tokens: Sequence[Token]) -> None:
        # Digests are all of one length, so that not even that of a secret shows in the time.
        self._salt = secrets.token_bytes(32)
        self._digests = [(token, self._digest(token.secret.encode())) for token in tokens]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def find(self, presented: bytes) -> Token | None:
        """Every token is compared, also after one that fits."""
        digest = self._digest(presented)
        found = None
        for token, known in self._digests:
            if hmac.compare_digest(digest, known):
                found = token
        return found

    def _digest(self, secret: bytes) -> bytes:
        return blake2b(secret, key=self._salt, digest_size=32).digest()


class RateBuckets(Protocol):
    """Where buckets are kept: (how full it was, when) by a key."""

    def get(self, key: str) -> tuple[float, float] | None: ...

    def put(self, key: str, level: float, at: float) -> None: ...


class LocalBuckets:
    """Of this process; bounded."""

    def __init__(self, most: int = _ADDRESSES) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def get(self, key: str) -> tuple[float, float] | None:
        return self._kept.get(key)

    def put(self, key: str, level: float, at: float) -> None:
        self._kept[key] = (level, at)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


class SharedBuckets:
    """Of several processes, which inherit it: a limit holds for all of them together.

    Keys that are not known beforehand, addresses, share places by a hash that nobody outside can
    work out: now and then two of them are counted as one.

    Nothing is locked: a process that is killed while it has a lock would silence all the others.
    What two of them write in the same moment is off by one request.
    """

    def __init__(self, keys: Sequence[str], context: SpawnContext) -> None:
        self._places = {key: 2 * place for place, key in enumerate(keys)}
        self._salt = secrets.token_bytes(32)
        self._numbers = context.RawArray("d", 2 * (len(keys) + _ADDRESSES))

    def get(self, key: str) -> tuple[float, float] | None:
        place = self._place(key)
        level, at = self._numbers[place : place + 2]
        return (level, at) if at else None

    def put(self, key: str, level: float, at: float) -> None:
        place = self._place(key)
        self._numbers[place : place + 2] = [level, at]

    def _place(self, key: str) -> int:
        known = self._places.get(key)
        if known is not None:
            return known
        digest = blake2b(key.encode(), key=self._salt, digest_size=8).digest()
        return 2 * (len(self._places) + int.from_bytes(digest) % _ADDRESSES)


class RateLimit:
    """A bucket for each key, as large as a minute's worth; it refills evenly."""

    def __init__(
        self,
        per_minute: int,
        *,
        ledger: RateBuckets | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = float(per_minute)
        self._per_s = per_minute / 60
        self._ledger = ledger or LocalBuckets()
        self._clock = clock

    def wait_s(self, key: str) -> float:
        """How long until one is left; 0 where one is."""
        return max(0.0, (1 - self._level(key)) / self._per_s)

    def take(self, key: str) -> float:
        """Take one, and 0; or leave it, and how long until there is one."""
        level = self._level(key)
        if level < 1:
            return (1 - level) / self._per_s
        self._ledger.put(key, level - 1, self._clock())
        return 0.0

    def _level(self, key: str) -> float:
        kept = self._ledger.get(key)
        if kept is None:
            return self._most
        level, at = kept
        return min(self._most, level + (self._clock() - at) * self._per_s)


@lru_cache(maxsize=4096)
def address_key(address: str) -> str:
    """Whom failures are counted for: a whole /64 of IPv6 is one household's."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(known, IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return f"{int(known) >> 64:x}/64"
    return str(known)


# Who is logged in on pages: a cookie that says so, which only this server can have written.
#
# It holds the token's name, when it ends and a MAC of that; never the token. The MAC's key comes
# from the token itself: all workers agree on it, it outlives a restart, a token that is taken away
# takes its sessions with it, and whoever has a cookie learns nothing of other people's tokens. Who
# logs out is written down in the store until the session would have ended: a copy of the cookie is
# worth nothing then, to any worker.

SESSION_COOKIE = "evenhand_session"
LASTS_S = 7 * 24 * 3600
_ENDS = re.compile(r"[0-9]{1,12}")
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Session:
    """`csrf` is what every form of this session's pages carries; `id` names it where it is written
    down that somebody logged out, and lets nobody in."""

    token: Token
    csrf: str
    id: str
    ends_at: int


class Sessions:
    def __init__(self, tokens: Sequence[Token], *, clock: Callable[[], float] = time.time) -> None:
        self._tokens = {token.name: token for token in tokens}
        self._keys = {token.name: _key_of(token) for token in tokens}
        self._clock = clock

    def begin(self, token: Token) -> str:
        """The cookie's value, another one for every login."""
        ends = int(self._clock()) + LASTS_S
        said = f"{token.name}:{ends}:{secrets.token_urlsafe(12)}"
        return f"{said}:{self._mac(token.name, said, of='session')}"

    def find(self, cookie: str) -> Session | None:
        """None where it was not written here, or has ended, or its token is gone."""
        if len(cookie) > _LONGEST:
            return None
        said, _, mac = cookie.rpartition(":")
        name, _, rest = said.partition(":")
        token = self._tokens.get(name)
        if token is None or not hmac.compare_digest(
            mac.encode(), self._mac(name, said, of="session").encode()
        ):
            return None
        ends = rest.partition(":")[0]
        if not _ENDS.fullmatch(ends) or int(ends) <= self._clock():
            return None
        return Session(
            token, self._mac(name, said, of="form"), self._mac(name, said, of="id"), int(ends)
        )

    def _mac(self, name: str, said: str, *, of: str) -> str:
        text = f"{of}\0{said}".encode()
        return blake2b(text, key=self._keys[name], digest_size=24).hexdigest()


def _key_of(token: Token) -> bytes:
    what = b"voter" if token.votes_only else b"full"
    secret = blake2b(token.secret.encode(), person=b"evenhand-page").digest()
    return blake2b(what + b"\0" + token.name.encode(), key=secret, digest_size=32).digest()


# Which names a server answers to, and which web pages may ask it.
#
# A browser lets any page send requests to a server on its user's machine, and by DNS rebinding
# (the page's own name is made to point there) even lets it read the answers. Such a request
# carries the page's name in Host or Origin, so both are looked at, before anything else is.

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
            raise Forbidden(Message("serve.several_host_headers", n=len(given)))
        text = given[0].decode("latin-1")
        name = _split(f"//{text}")[0]
        if name is None or not self._meant(name):
            raise Forbidden(Message("serve.host_not_allowed", text=_shown(text)))
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
        raise Forbidden(Message("serve.origin_not_allowed", origin=_shown(origin)))

    def check_fetch(self, site: bytes | None, mode: bytes | None, method: str) -> None:
        """Of what a page embeds (an image, a script) browsers tell no origin, but this."""
        if site in _FROM_ELSEWHERE and not (method == "GET" and mode == b"navigate"):
            raise Forbidden(Message("serve.cross_site"))


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


# Which addresses are pages, and what each kind of visitor may ask for.

LOGIN, LOGOUT = "/login", "/logout"
_READS = ("GET", "HEAD")
# What a page of ours fetches for itself; everything else of the API wants a token with the request.
_FETCHED_BY_PAGES = re.compile(r"/v1/runs(/[^/]+(/events)?)?|/v1/judges")
_NOT_PAGES = frozenset({"/v1", "/openapi.json", "/metrics", "/healthz", "/readyz"})
_EVENTS = re.compile(r"/v1/runs/[^/]+/events")
_VOTE = re.compile(r"/runs/[^/]+/vote")


def is_free(path: str) -> bool:
    """Of tokens: nothing of the store is there."""
    return path in ("/healthz", LOGIN) or is_static(path)


def is_static(path: str) -> bool:
    return path.startswith("/static/")


def is_events(path: str) -> bool:
    """A stream that stays open while a run goes on."""
    return _EVENTS.fullmatch(path) is not None


def is_page(path: str) -> bool:
    return path not in _NOT_PAGES and not path.startswith(("/v1/", "/mcp"))


def is_vote(path: str) -> bool:
    return _VOTE.fullmatch(path) is not None


def voter_may(path: str) -> bool:
    return is_vote(path) or path == LOGOUT


def session_may(method: str, path: str) -> bool:
    """By a cookie alone, as browsers send it with whatever a page makes them ask."""
    if is_page(path):
        return True
    return method in _READS and _FETCHED_BY_PAGES.fullmatch(path) is not None


def way_back(wanted: str | None) -> str | None:
    """Where to go after the login, if it is a page of this server and cannot be another's."""
    if not wanted or not wanted.startswith("/") or wanted.startswith("//") or "\\" in wanted:
        return None
    path = re.split(r"[?#]", wanted, maxsplit=1)[0]
    if not wanted.isprintable() or not is_page(path) or path in (LOGIN, LOGOUT):
        return None
    return wanted
