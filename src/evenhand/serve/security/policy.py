"""Whether a request may come in: by its Host, origin, token, rate and size; and its body, counted
and timed as it arrives.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette import types as asgi
from starlette.requests import cookie_parser
from starlette.types import Receive, Scope

from evenhand.errors import (
    EvenhandError,
    Forbidden,
    InputError,
    RateLimited,
    ServerBusy,
    TooLarge,
    TooSlow,
    Unauthorized,
    WrongMediaType,
)
from evenhand.messages import Message
from evenhand.serve.config import MIB, ServerConfig, Token
from evenhand.serve.metrics import Metrics
from evenhand.serve.security.access import (
    SESSION_COOKIE,
    Hosts,
    RateBuckets,
    RateLimit,
    Session,
    Sessions,
    Tokens,
    address_key,
    is_events,
    is_free,
    is_page,
    is_static,
    sent_by_own_page,
    session_may,
    voter_may,
)
from evenhand.serve.startup import MemoryTrimmer

# A request's body as it comes in: counted whether or not its length was told, and timed.

_STEP = 64 * 1024  # of an upload, that must come in time


class BodyMemory:
    """The bytes of all bodies that are in memory, and how many may be."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = 0


class RequestBody:
    """Stands between the server and the app. `refused` is what it was broken off with."""

    def __init__(
        self,
        receive: Receive,
        *,
        most: int,
        timeout_s: float,
        held: BodyMemory | None,
        keeps: int = 0,
    ) -> None:
        self._receive = receive
        self._most = most
        self._timeout_s = timeout_s
        self._held = held  # None: it goes to a file
        self._deadline: float | None = None
        self._next_step = _STEP
        self._counted = 0
        self._whole = False
        self.size = 0
        self.refused: EvenhandError | None = None
        self.kept = bytearray()
        self.keeps = keeps  # so many bytes, for the log

    async def receive(self) -> asgi.Message:
        if self._whole:
            return await self._receive()  # what is left to come is the client's leaving
        if self.refused is not None:
            raise self.refused
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + self._timeout_s
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            self.refused = TooSlow(
                Message("serve.body_stopped", size=self.size, timeout_s=self._timeout_s)
            )
            raise self.refused from None
        if message["type"] != "http.request":
            self._whole = True
            return message
        chunk = message.get("body", b"")
        self._whole = not message.get("more_body", False)
        self._take(chunk, loop)
        return message

    def _take(self, chunk: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self.size += len(chunk)
        if self.size > self._most:
            self.refused = too_large(self._most)
            raise self.refused
        if self.keeps:
            self.kept += chunk[: self.keeps - len(self.kept)]
        if self._held is not None:
            self._held.now += len(chunk)
            self._counted += len(chunk)
            if self._held.now > self._held.most:
                self.release()
                self.refused = ServerBusy(Message("serve.memory_full"))
                raise self.refused
        elif self.size >= self._next_step:
            self._next_step = self.size + _STEP
            self._deadline = loop.time() + self._timeout_s

    async def skip(self) -> asgi.Message:
        """What comes next, for nobody."""
        return await self._receive()

    def release(self) -> None:
        """The request is over, and with it what it held."""
        if self._held is not None:
            self._held.now -= self._counted
            self._counted = 0


def too_large(most: int) -> TooLarge:
    size = f"{most / MIB:g} MiB" if most >= MIB else f"{most} bytes"
    return TooLarge(Message("serve.body_too_large", size=size))


# Whether a request may come in: by its Host, its origin, its token, its rate and its size.

ALIVE = "/healthz"
UPLOADS = "/v1/runs"
PAGE_UPLOADS = "/runs"
COMPARISONS = ("/v1/compare", "/try", "/mcp")
# What a form of any page can send without asking first; no request of the API is like that, and
# those of our own pages say where they come from.
_FORM_TYPES = (b"text/plain", b"application/x-www-form-urlencoded", b"")
_UPLOAD_TYPES = (b"application/x-ndjson", b"application/jsonl", b"multipart/form-data")
_PAGE_FORM_TYPES = (b"application/x-www-form-urlencoded", b"multipart/form-data")
_READS = ("GET", "HEAD")
_WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")
_SMALL = 64 * 1024
_OTHER_BYTES = MIB  # of a body that holds neither texts nor pairs
MOST_HEADERS = 200


class RequestInfo:
    """The head of a request."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        client = scope.get("client")
        self.client: str = client[0] if client else "-"
        self.logged_out = False  # its session was ended
        self.address = address_key(self.client)
        self.headers = len(scope["headers"])
        self._headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"][:MOST_HEADERS]:
            self._headers.setdefault(name, []).append(value)

    def all(self, name: bytes) -> Sequence[bytes]:
        return self._headers.get(name, ())

    def one(self, name: bytes) -> bytes | None:
        values = self._headers.get(name)
        return values[0] if values else None

    @property
    def media_type(self) -> bytes:
        return (self.one(b"content-type") or b"").partition(b";")[0].strip().lower()

    @property
    def length(self) -> int | None:
        """As it was told; None where it was not."""
        told = self.one(b"content-length") or b""
        return int(told) if told.isdigit() else None

    @property
    def has_body(self) -> bool:
        return b"transfer-encoding" in self._headers or bool(self.length)

    @property
    def has_two_lengths(self) -> bool:
        """What a proxy took for a body might be read here as the next request."""
        return b"transfer-encoding" in self._headers and b"content-length" in self._headers

    @property
    def has_small_body(self) -> bool:
        """So little that it is on its way already, and read in any case."""
        small = self.length is not None and self.length <= _SMALL
        return small and not self.has_two_lengths

    @property
    def is_upload(self) -> bool:
        """It goes to a file, and may be larger."""
        if self.method != "POST":
            return False
        if self.path == PAGE_UPLOADS:
            return self.media_type == b"multipart/form-data"
        return self.path == UPLOADS and self.media_type in _UPLOAD_TYPES

    @property
    def is_comparison(self) -> bool:
        """It holds the texts of one, or what an agent sends."""
        return self.path in COMPARISONS

    @property
    def is_page_form(self) -> bool:
        """A form that only our own pages may send."""
        is_form = self.media_type in _PAGE_FORM_TYPES
        return self.method == "POST" and is_form and is_page(self.path)

    @property
    def wants_page(self) -> bool:
        """Somebody sits before a browser, whom JSON would tell little."""
        accepted = b",".join(self.all(b"accept")).lower()
        return b"text/html" in accepted and is_page(self.path)


@dataclass(frozen=True, slots=True)
class Entry:
    """How a request came in: by which token, from which other site's page, or asking only.

    `session`: the token was not sent, but logged in with before.
    """

    token: str | None = None
    origin: str | None = None
    preflight: bool = False
    session: Session | None = None


class RequestPolicy:
    """What all requests of a process share; `app.state.policy` is it."""

    def __init__(self, config: ServerConfig, *, metrics: Metrics | None = None) -> None:
        limits = config.limits
        self.config = config
        self.metrics = metrics or Metrics([offer.name for offer in config.judges])
        self.held = BodyMemory(limits.bodies_bytes)
        self.returning = MemoryTrimmer()
        self.in_flight = 0
        self._of_address: Counter[str] = Counter()  # of these
        self.streams: set[asyncio.Task[Any]] = set()
        self.closing = False
        self.has_ended: Callable[[str], bool] | None = None  # what the store says of a session
        self._hosts = Hosts(config)
        self._tokens = Tokens((*config.tokens, *config.voters))
        self.sessions = Sessions((*config.tokens, *config.voters))
        self._rate: RateLimit | None = None
        self.share(None)

    def share(self, ledger: RateBuckets | None) -> None:
        """Count requests and wrong tokens there, where several processes see it; without one,
        only here."""
        self._failures = RateLimit(self.config.limits.failures_per_minute, ledger=ledger)
        per_minute = self.config.limits.requests_per_minute
        if per_minute is not None:
            self._rate = RateLimit(per_minute, ledger=ledger)

    def close(self) -> None:
        """Event streams have no end of their own; now they get one."""
        self.closing = True
        for task in list(self.streams):
            task.cancel()

    def most_bytes(self, asked: RequestInfo) -> int:
        limits = self.config.limits
        if asked.is_upload:
            return limits.upload_bytes
        if asked.path == UPLOADS:
            return limits.body_bytes
        most = limits.compare_bytes if asked.is_comparison else _OTHER_BYTES
        return min(most, limits.body_bytes)

    def enter(self, asked: RequestInfo) -> None:
        self.in_flight += 1
        self._of_address[asked.address] += 1

    def leave(self, asked: RequestInfo) -> None:
        self.in_flight -= 1
        self._of_address[asked.address] -= 1
        if not self._of_address[asked.address]:
            del self._of_address[asked.address]

    async def look_at_session(self, asked: RequestInfo) -> None:
        """Whether somebody has logged out of it meanwhile, here or at another worker."""
        session = self.session_of(asked)
        if session is not None and self.has_ended is not None and not is_static(asked.path):
            asked.logged_out = await asyncio.to_thread(self.has_ended, session.id)

    def check(self, asked: RequestInfo) -> Entry:
        """Raises where it may not come in."""
        if asked.headers > MOST_HEADERS:
            raise TooLarge(
                Message(
                    "serve.too_many_headers",
                    headers=asked.headers,
                    most_headers=MOST_HEADERS,
                )
            )
        if asked.has_two_lengths:
            raise InputError(Message("serve.two_lengths"))
        host = self._hosts.check_host(asked.all(b"host"))
        origin = self._hosts.check_origin(asked.all(b"origin"), host)
        if origin is None:
            self._hosts.check_fetch(
                asked.one(b"sec-fetch-site"), asked.one(b"sec-fetch-mode"), asked.method
            )
        elif asked.method == "OPTIONS" and asked.one(b"access-control-request-method"):
            return Entry(origin=origin, preflight=True)
        if asked.path != ALIVE:  # whoever watches the server learns that it lives
            self._check_room(asked)
        session = self.session_of(asked) if origin is None else None
        token = session.token if session else None
        if not is_free(asked.path):
            token = self._check_token(asked, session)
        self._check_body(asked)
        return Entry(token.name if token else None, origin, session=session)

    def _check_room(self, asked: RequestInfo) -> None:
        limits = self.config.limits
        if self.in_flight > limits.requests:
            raise ServerBusy(Message("serve.too_many_requests", in_flight=self.in_flight - 1))
        if self._of_address[asked.address] > limits.requests_per_address:
            raise RateLimited(
                Message(
                    "serve.too_many_of_address",
                    requests_per_address=limits.requests_per_address,
                ),
                retry_after_s=1,
            )
        if is_events(asked.path) and len(self.streams) >= limits.event_streams:
            raise ServerBusy(Message("serve.too_many_streams", n=len(self.streams)))

    def log_in(self, client: str, secret: str) -> Token:
        """The token with this secret; guessing here is as slow as anywhere."""
        return self._known(address_key(client), secret.strip().encode())

    def _check_token(self, asked: RequestInfo, session: Session | None) -> Token | None:
        if not self._tokens:
            self._check_rate("")
            return None
        token = self._of_session(asked, session) if session else self._of_header(asked)
        self._check_rate(token.name)
        return token

    def session_of(self, asked: RequestInfo) -> Session | None:
        """A token that comes with the request is the one that counts."""
        if asked.logged_out or asked.all(b"authorization"):
            return None
        sent = b"; ".join(asked.all(b"cookie")).decode("latin-1")
        cookie = cookie_parser(sent).get(SESSION_COOKIE)
        return self.sessions.find(cookie) if cookie else None

    @staticmethod
    def _of_session(asked: RequestInfo, session: Session) -> Token:
        if session.token.votes_only and not voter_may(asked.path):
            raise Forbidden(Message("serve.voter_login_elsewhere"))
        if not session_may(asked.method, asked.path):
            raise Unauthorized(Message("serve.api_takes_token"))
        if asked.method not in _READS and not _by_own_page(asked):
            raise _from_elsewhere()
        return session.token

    def _of_header(self, asked: RequestInfo) -> Token:
        client = asked.address
        given = asked.all(b"authorization")
        if not given:
            self._check_patience(client)
            raise Unauthorized(Message("serve.token_missing"))
        scheme, _, secret = given[0].partition(b" ")
        plain = len(given) == 1 and scheme.lower() == b"bearer"
        token = self._known(client, secret.strip() if plain else b"")
        if token.votes_only:
            raise Forbidden(Message("serve.voter_token_elsewhere"))
        return token

    def _known(self, client: str, secret: bytes) -> Token:
        self._check_patience(client)
        token = self._tokens.find(secret)
        if token is None:
            self._failures.take(_failures_of(client))
            raise Unauthorized(Message("serve.token_unknown"))
        return token

    def _check_patience(self, client: str) -> None:
        wait_s = self._failures.wait_s(_failures_of(client))
        if wait_s > 0:  # not even looked at, so that guessing on tells nothing
            raise RateLimited(
                Message("serve.too_many_wrong_tokens"),
                retry_after_s=wait_s,
            )

    def _check_rate(self, name: str) -> None:
        if self._rate is None:
            return
        wait_s = self._rate.take(name)
        if wait_s > 0:
            most = self.config.limits.requests_per_minute
            raise RateLimited(
                Message("serve.rate_limited", most=most),
                retry_after_s=wait_s,
            )

    def _check_body(self, asked: RequestInfo) -> None:
        if asked.method not in _WITH_BODY or not asked.has_body:
            return
        if asked.is_page_form:
            if not _by_own_page(asked):
                raise _from_elsewhere()
        elif asked.media_type in _FORM_TYPES:
            raise WrongMediaType(Message("serve.body_type_unknown"))
        most = self.most_bytes(asked)
        if asked.length is not None and asked.length > most:
            raise too_large(most)


def _by_own_page(asked: RequestInfo) -> bool:
    host = (asked.one(b"host") or b"").decode("latin-1")
    return sent_by_own_page(asked.all(b"origin"), asked.one(b"sec-fetch-site"), host)


def _from_elsewhere() -> Forbidden:
    return Forbidden(Message("serve.form_of_another_site"))


def _failures_of(client: str) -> str:
    """Tokens are counted beside addresses, by their names, which have no spaces."""
    return f"address {client}"
