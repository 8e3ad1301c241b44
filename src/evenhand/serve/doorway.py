"""Whether a request may come in: by its Host, its origin, its token, its rate and its size."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from evenhand.errors import Forbidden, RateLimited, ServerBusy, Unauthorized, WrongMediaType
from evenhand.serve.config import ServerConfig
from evenhand.serve.hosts import Hosts, sent_by_own_page
from evenhand.serve.incoming import Held, too_large
from evenhand.serve.metrics import Metrics
from evenhand.serve.tokens import Ledger, Rate, Tokens, address_key

UPLOADS = "/v1/runs"
PAGE_UPLOADS = "/runs"
FREE_OF_TOKENS = ("/healthz",)
# What a form of any page can send without asking first; no request of the API is like that, and
# those of our own pages say where they come from.
_FORM_TYPES = (b"text/plain", b"application/x-www-form-urlencoded", b"")
_UPLOAD_TYPES = (b"application/x-ndjson", b"application/jsonl", b"multipart/form-data")
_PAGE_FORM_TYPES = (b"application/x-www-form-urlencoded", b"multipart/form-data")
_WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")
_SMALL = 64 * 1024


class Asked:
    """The head of a request."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        client = scope.get("client")
        self.client: str = client[0] if client else "-"
        self._headers: dict[bytes, tuple[bytes, ...]] = {}
        for name, value in scope["headers"]:
            self._headers[name] = (*self._headers.get(name, ()), value)

    def all(self, name: bytes) -> tuple[bytes, ...]:
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
    def has_small_body(self) -> bool:
        """So little that it is on its way already, and read in any case."""
        return self.length is not None and self.length <= _SMALL

    @property
    def is_upload(self) -> bool:
        """It goes to a file, and may be larger."""
        if self.method != "POST":
            return False
        if self.path == PAGE_UPLOADS:
            return self.media_type == b"multipart/form-data"
        return self.path == UPLOADS and self.media_type in _UPLOAD_TYPES

    @property
    def is_page_form(self) -> bool:
        """A form that only our own pages may send."""
        is_page = not self.path.startswith(("/v1/", "/mcp"))
        return self.method == "POST" and is_page and self.media_type in _PAGE_FORM_TYPES


@dataclass(frozen=True, slots=True)
class Entry:
    """How a request came in: by which token, from which other site's page, or asking only."""

    token: str | None = None
    origin: str | None = None
    preflight: bool = False


class Doorway:
    """What all requests of a process share; `app.state.doorway` is it."""

    def __init__(self, config: ServerConfig, *, metrics: Metrics | None = None) -> None:
        limits = config.limits
        self.config = config
        self.metrics = metrics or Metrics([offer.name for offer in config.judges])
        self.held = Held(limits.bodies_bytes)
        self.in_flight = 0
        self.streams: set[asyncio.Task[Any]] = set()
        self.closing = False
        self._hosts = Hosts(config)
        self._tokens = Tokens(config.tokens)
        self._failures = Rate(limits.failures_per_minute)
        self._rate: Rate | None = None
        self.share(None)

    def share(self, ledger: Ledger | None) -> None:
        """Count requests there, where several processes see it; without one, only here."""
        per_minute = self.config.limits.requests_per_minute
        if per_minute is not None:
            self._rate = Rate(per_minute, ledger=ledger)

    def close(self) -> None:
        """Event streams have no end of their own; now they get one."""
        self.closing = True
        for task in list(self.streams):
            task.cancel()

    def most_bytes(self, asked: Asked) -> int:
        limits = self.config.limits
        return limits.upload_bytes if asked.is_upload else limits.body_bytes

    def check(self, asked: Asked) -> Entry:
        """Raises where it may not come in."""
        host = self._hosts.check_host(asked.all(b"host"))
        origin = self._hosts.check_origin(asked.all(b"origin"), host)
        if origin is None:
            self._hosts.check_fetch(
                asked.one(b"sec-fetch-site"), asked.one(b"sec-fetch-mode"), asked.method
            )
        elif asked.method == "OPTIONS" and asked.one(b"access-control-request-method"):
            return Entry(origin=origin, preflight=True)
        if self.in_flight > self.config.limits.requests:
            raise ServerBusy(f"{self.in_flight - 1} requests are being answered; ask again later")
        token = None if asked.path in FREE_OF_TOKENS else self._check_token(asked)
        self._check_body(asked)
        return Entry(token, origin)

    def _check_token(self, asked: Asked) -> str | None:
        if not self._tokens:
            self._check_rate("")
            return None
        client = address_key(asked.client)
        wait_s = self._failures.wait_s(client)
        if wait_s > 0:  # not even looked at, so that guessing on tells nothing
            raise RateLimited(
                "too many wrong tokens came from this address; wait, then send the right one",
                retry_after_s=wait_s,
            )
        given = asked.all(b"authorization")
        if not given:
            raise Unauthorized("the request has no token; send Authorization: Bearer TOKEN")
        scheme, _, secret = given[0].partition(b" ")
        token = None
        if len(given) == 1 and scheme.lower() == b"bearer":
            token = self._tokens.find(secret.strip())
        if token is None:
            self._failures.take(client)
            raise Unauthorized("the token is not one of this server's; ask its operator for one")
        self._check_rate(token.name)
        return token.name

    def _check_rate(self, name: str) -> None:
        if self._rate is None:
            return
        wait_s = self._rate.take(name)
        if wait_s > 0:
            most = self.config.limits.requests_per_minute
            raise RateLimited(
                f"more than {most} requests a minute came with this token; ask more slowly",
                retry_after_s=wait_s,
            )

    def _check_body(self, asked: Asked) -> None:
        if asked.method not in _WITH_BODY or not asked.has_body:
            return
        if asked.is_page_form:
            self._check_page_form(asked)
        elif asked.media_type in _FORM_TYPES:
            raise WrongMediaType(
                "the body is of no type that this server takes; "
                "send it with Content-Type: application/json"
            )
        most = self.most_bytes(asked)
        if asked.length is not None and asked.length > most:
            raise too_large(most)

    @staticmethod
    def _check_page_form(asked: Asked) -> None:
        host = (asked.one(b"host") or b"").decode("latin-1")
        if not sent_by_own_page(asked.all(b"origin"), asked.one(b"sec-fetch-site"), host):
            raise Forbidden(
                "a form may be sent by this server's own pages alone; "
                "open the page and send it there"
            )
