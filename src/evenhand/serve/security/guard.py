"""Around the whole server, pages and /mcp included: plain ASGI. Refusals are JSON for programs and
a page for people.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Iterable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.errors import EvenhandError, Unauthorized
from evenhand.serve.config import MIB
from evenhand.serve.http.problems import problem_response
from evenhand.serve.logs import RequestLine, log_request, route_of, shown_path
from evenhand.serve.security.access import LOGIN, Session, is_vote, way_back
from evenhand.serve.security.policy import Entry, RequestBody, RequestInfo, RequestPolicy

# What the guard answers with where it lets nobody in: JSON for programs, a page for people.


def refusal_of(asked: RequestInfo, scope: Scope, error: EvenhandError) -> Response:
    if not asked.wants_page:
        return problem_response(error)
    if isinstance(error, Unauthorized):
        return RedirectResponse(_login_for(asked, scope), status_code=303)
    from evenhand.serve.pages.page import Visit, problem_page

    response = problem_page(Visit(Request(scope)), error)
    plain = problem_response(error)
    if "retry-after" in plain.headers:
        response.headers["Retry-After"] = plain.headers["retry-after"]
    return response


def _login_for(asked: RequestInfo, scope: Scope) -> str:
    """A form cannot be sent again after the login; the page that it was on can be opened."""
    if asked.method not in ("GET", "HEAD"):
        wanted: str | None = asked.path if is_vote(asked.path) else None
    else:
        query = scope.get("query_string", b"").decode("latin-1")
        wanted = way_back(quote(asked.path) + (f"?{query}" if query else ""))
    return LOGIN if wanted in (None, "/") else f"{LOGIN}?next={quote(wanted or '')}"


# Around the whole server, pages and /mcp included: plain ASGI.
#
# Whatever it refuses is answered in the server's one shape, and every request, refused or not,
# leaves one line in the log.

_KEPT_TEXT = 16 * 1024
_READ_ON_S = 2.0  # after a refusal, so that its answer arrives
_READ_ON_BYTES = 8 * 1024 * 1024
_SEND_TIMEOUT_S = 60.0
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
# The client left, or the server ended, before there was an answer.
_NO_ANSWER = 499

_Headers = list[tuple[bytes, bytes]]
_ALWAYS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
}
_PREFLIGHT: _Headers = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, idempotency-key, last-event-id, mcp-protocol-version, "
        b"mcp-session-id",
    ),
    (b"access-control-max-age", b"600"),
]


class Guard:
    def __init__(self, app: ASGIApp, policy: RequestPolicy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":  # there are none here
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _Exchange(self._app, self._policy, scope, receive, send).run()


class _Exchange:
    """One request and its answer."""

    def __init__(
        self, app: ASGIApp, policy: RequestPolicy, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._app = app
        self._policy = policy
        self._scope = scope
        self._send = send
        self._asked = asked = RequestInfo(scope)
        self._entry = Entry()
        self._began = time.perf_counter()
        self._id = _request_id(asked)
        self._status = 0
        self._bytes_out = 0
        self._kind: str | None = None
        self._said = bytearray()
        self._task = asyncio.current_task()
        self._streams = False
        self._ended = False
        self._body = RequestBody(
            receive,
            most=policy.most_bytes(asked),
            timeout_s=policy.config.limits.body_timeout_s,
            held=None if asked.is_upload else policy.held,
            # What is sent to log in is a secret, in a form that no redactor would know again.
            keeps=_KEPT_TEXT if policy.config.log_texts and asked.path != LOGIN else 0,
        )

    async def run(self) -> None:
        self._policy.enter(self._asked)
        self._policy.metrics.arrived()
        try:
            try:
                await self._policy.look_at_session(self._asked)
                self._entry = self._policy.check(self._asked)
            except EvenhandError as error:
                self._remember(self._policy.session_of(self._asked))
                await self._refuse(error)
                return
            if self._entry.preflight:
                await self._start(204, _PREFLIGHT)
                await self._end(b"")
                return
            state = self._scope.setdefault("state", {})
            state["token"], state["request_id"] = self._entry.token, self._id
            self._remember(self._entry.session)
            await self._pass_on()
        finally:
            self._policy.leave(self._asked)
            self._body.release()
            if self._body.size > MIB:
                self._policy.returning.soon()
            if self._streams and self._task is not None:
                self._policy.streams.discard(self._task)
            self._tell()

    def _remember(self, session: Session | None) -> None:
        """For pages: what they show and which forms they take depend on who is logged in."""
        state = self._scope.setdefault("state", {})
        state["session"], state["csrf"] = session, session.csrf if session else None

    async def _pass_on(self) -> None:
        try:
            await self._app(self._scope, self._body.receive, self._answer)
        except EvenhandError:
            if self._body.refused is None:
                raise
        except asyncio.CancelledError:
            if self._task is None or not (self._streams and self._policy.closing):
                raise
            self._task.uncancel()
            if not self._ended:
                await self._end(b"")
        if self._body.refused is not None and not self._status:
            await self._refuse(self._body.refused)

    async def _answer(self, message: Message) -> None:
        """What the app says; nothing of it where the body had to be broken off before."""
        if self._body.refused is not None and not self._status:
            return
        if message["type"] == "http.response.start":
            await self._start(message["status"], message.get("headers", ()))
            return
        if message["type"] == "http.response.body":
            body = message.get("body", b"")
            self._bytes_out += len(body)
            self._ended = not message.get("more_body", False)
            if self._body.keeps:
                self._said += body[: _KEPT_TEXT - len(self._said)]
        async with asyncio.timeout(_SEND_TIMEOUT_S):  # a client that reads nothing ends here
            await self._send(message)

    async def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._status = status
        kept = list(headers)
        there = {name.lower(): value for name, value in kept}
        kept += [(name, value) for name, value in _ALWAYS.items() if name not in there]
        kept.append((b"x-request-id", self._id.encode()))
        if self._entry.origin is not None:
            kept += [
                (b"access-control-allow-origin", self._entry.origin.encode("latin-1")),
                (b"access-control-expose-headers", b"location, retry-after, x-request-id"),
                (b"vary", b"Origin"),
            ]
        if there.get(b"content-type", b"").startswith(b"text/event-stream"):
            self._streams = True
            if self._task is not None:
                self._policy.streams.add(self._task)
        await self._send({"type": "http.response.start", "status": status, "headers": kept})

    async def _end(self, body: bytes, *, more: bool = False) -> None:
        self._bytes_out += len(body)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def _refuse(self, error: EvenhandError) -> None:
        self._kind = error.kind
        self._policy.metrics.refused(error.kind)
        response = refusal_of(self._asked, self._scope, error)
        headers = list(response.raw_headers)
        unread = self._asked.has_body and not self._asked.has_small_body
        if unread:
            headers.append((b"connection", b"close"))
        await self._start(response.status_code, headers)
        await self._end(bytes(response.body), more=unread)
        if unread:
            await self._read_on()
            await self._end(b"")

    async def _read_on(self) -> None:
        """Let some of what is on its way run out: a connection closed on unread bytes is reset,
        and the client would see that instead of the answer."""
        left = _READ_ON_BYTES
        try:
            async with asyncio.timeout(_READ_ON_S):
                while left > 0:
                    message = await self._body.skip()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            return

    def _tell(self) -> None:
        route = route_of(self._scope)
        seconds = time.perf_counter() - self._began
        status = self._status or _NO_ANSWER
        method = self._asked.method
        self._policy.metrics.answered(method, route or "none", status, seconds=seconds)
        texts = bool(self._body.keeps)
        log_request(
            RequestLine(
                client=self._asked.client,
                token=self._entry.token,
                method=method if method.isalpha() else "?",
                path=shown_path(route, self._scope.get("path_params")),
                status=status,
                seconds=seconds,
                bytes_in=self._body.size,
                bytes_out=self._bytes_out,
                request_id=self._id,
                kind=self._kind,
                request_text=self._body.kept.decode("utf-8", "replace") if texts else None,
                response_text=self._said.decode("utf-8", "replace") if texts else None,
            )
        )


def _request_id(asked: RequestInfo) -> str:
    given = asked.all(b"x-request-id")
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        return given[0].decode()
    return secrets.token_hex(8)
