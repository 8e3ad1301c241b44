"""What a page is: an address and the work that fills a template; the forms it sends, from our own
pages alone, small, and read into plain texts; errors as pages; our style sheets, scripts and icon.
"""

from __future__ import annotations

import asyncio
import gzip
import hmac
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote_to_bytes, urlencode

from fastapi import FastAPI
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from evenhand.errors import EvenhandError, Forbidden, InputError, NotFound, WrongMediaType
from evenhand.messages import Language, Message
from evenhand.present.html.rendering import LANGUAGES, preferred, render_template
from evenhand.present.svg import colours
from evenhand.serve.http.problems import problem_of
from evenhand.serve.http.requests import ServiceRequest, media_type_of, refuse_encoded, whole_body
from evenhand.serve.security.access import Session, sent_by_own_page

if TYPE_CHECKING:
    from evenhand.serve.service import Service

TEMPLATES = "evenhand.serve.pages"  # whose folder has those that only the server shows
LANGUAGE_COOKIE = "evenhand_language"
_YEAR_S = 365 * 24 * 3600
_ASKED_AGAIN_S = 5.0
# Nothing inline and nothing from elsewhere: a text that became markup all the same does nothing.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

URLENCODED = "application/x-www-form-urlencoded"
_MOST_FIELDS = 100
_SMALL_BYTES = 64 * 1024
_BLOCK = 64 * 1024

Place = Literal["runs", "compare", "rank", "try", "none"]


class Fields:
    """A form's fields; a field that was left empty is one that was not given."""

    def __init__(self, given: Mapping[str, Sequence[str]]) -> None:
        self._given = {
            name: kept for name, values in given.items() if (kept := [v for v in values if v])
        }

    def get(self, name: str) -> str | None:
        values = self._given.get(name, ())
        if len(values) > 1:
            raise InputError(Message("serve.form_field_repeated", name=name, n=len(values)))
        return values[0] if values else None

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(self._given.get(name, ()))

    def needed(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise InputError(Message("serve.form_field_empty", name=name))
        return value


def require_same_origin(request: Request) -> None:
    """Of every POST to a page: no other site's page may send it in somebody's name."""
    origins = [value.encode("latin-1") for value in request.headers.getlist("origin")]
    site = request.headers.get("sec-fetch-site")
    host = request.headers.get("host", "")
    if not sent_by_own_page(origins, None if site is None else site.encode("latin-1"), host):
        raise Forbidden(Message("serve.form_of_another_site"))


def require_csrf(request: Request, fields: Fields) -> None:
    """Where somebody is logged in, a form carries what only that session's pages know."""
    expected: str | None = getattr(request.state, "csrf", None)
    if expected is None:
        return
    given = fields.get("csrf") or ""
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise Forbidden(Message("serve.form_of_another_session"))


async def read_form(request: Request, *, limit_bytes: int = _SMALL_BYTES) -> Fields:
    """A form without files, from one of our own pages, of the session that is logged in."""
    require_same_origin(request)
    refuse_encoded(request)
    kind, _ = media_type_of(request)
    body = await whole_body(request, limit_bytes=limit_bytes)
    if body and kind != URLENCODED:
        raise WrongMediaType(
            Message("serve.form_content_type", kind=kind[:60], urlencoded=URLENCODED)
        )
    service: Service = request.app.state.service
    fields = Fields(await service.read_in(body, _decoded))
    require_csrf(request, fields)
    return fields


def _decoded(body: bytes) -> dict[str, list[str]]:
    parts = body.split(b"&", _MOST_FIELDS)
    fields: dict[str, list[str]] = {}
    try:
        if len(parts) > _MOST_FIELDS or not body.isascii():
            raise ValueError
        for part in parts:
            if part:
                name, _, value = part.partition(b"=")
                fields.setdefault(_plain(name), []).append(_with_plain_lines(_plain(value)))
    except ValueError:
        raise InputError(Message("serve.form_no_page")) from None
    return fields


def _plain(encoded: bytes) -> str:
    """In blocks: each escape is an object on the way, and a block is soon done with."""
    spaced = encoded.replace(b"+", b" ")
    blocks, begin = [], 0
    while begin < len(spaced):
        end = begin + _BLOCK
        cut = spaced.rfind(b"%", end - 2, end)  # no escape is cut in two
        end = end if cut < 0 else cut
        blocks.append(unquote_to_bytes(spaced[begin:end]))
        begin = end
    return b"".join(blocks).decode()


def _with_plain_lines(text: str) -> str:
    """Browsers send the lines of a text with both signs of a line's end."""
    return text.replace("\r\n", "\n")


@dataclass(frozen=True, slots=True)
class Visit(ServiceRequest):
    """One request for a page."""

    @property
    def session(self) -> Session | None:
        """None where nobody had to log in."""
        session: Session | None = getattr(self.request.state, "session", None)
        return session

    def given(self, *, beside: frozenset[str] = frozenset()) -> QueryParams:
        """What an address says of this page: a field that a form left empty says nothing."""
        return QueryParams(
            [
                (name, value)
                for name, value in self.request.query_params.multi_items()
                if value and name != "lang" and name not in beside
            ]
        )

    async def form(self) -> Fields:
        """What was posted, by our own page and in this session; Forbidden else."""
        return await read_form(self.request)

    @property
    def language(self) -> Language:
        asked = self.request.query_params.get("lang") or self.request.cookies.get(LANGUAGE_COOKIE)
        for language in LANGUAGES:
            if asked == language:
                return language
        return preferred(self.request.headers.get("accept-language", ""))


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around every page's content."""

    place: Place
    path: str
    query: tuple[tuple[str, str], ...]
    csrf: str | None
    votes_only: bool = False  # the visitor's token lets in to vote, and nowhere else

    def in_language(self, language: str) -> str:
        """The same page in another language."""
        kept = [(name, value) for name, value in self.query if name != "lang"]
        return f"{self.path}?{urlencode([*kept, ('lang', language)])}"

    def with_query(self, **changes: object) -> str:
        """The same page with some of its parameters changed; None takes one out."""
        kept = [(name, value) for name, value in self.query if name not in changes]
        added = [(name, str(value)) for name, value in changes.items() if value is not None]
        return f"{self.path}?{urlencode([*kept, *added])}" if kept or added else self.path


@dataclass(frozen=True, slots=True)
class Filled:
    """A template and its values."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    path: str
    name: str
    work: Callable[[Visit], Awaitable[Filled | Response]]
    method: Literal["GET", "POST"] = "GET"
    place: Place = "none"

    def add_to(self, app: FastAPI) -> None:
        async def handle(request: Request) -> Response:
            visit = Visit(request)
            try:
                filled = await self.work(visit)
            except EvenhandError as error:
                return problem_page(visit, error)
            if isinstance(filled, Response):
                return filled
            # A page may be large, and whoever asks for something else meanwhile does not wait.
            return await asyncio.to_thread(shown, visit, filled, place=self.place)

        app.add_api_route(
            self.path,
            handle,
            methods=[self.method],
            name=self.name,
            include_in_schema=False,
            response_class=Response,
            response_model=None,
        )


def problem_page(visit: Visit, error: EvenhandError) -> Response:
    """A server that is busy is asked again by the page itself, unless a form was sent."""
    problem = problem_of(error)
    again_s = None
    if problem.status in (429, 503):
        wait_s = getattr(error, "retry_after_s", None)
        again_s = max(1, math.ceil(_ASKED_AGAIN_S if wait_s is None else wait_s))
    reads = visit.request.method in ("GET", "HEAD")
    values = {"problem": problem, "again_s": again_s if reads else None}
    filled = Filled("problem.html", values, status=problem.status)
    response = shown(visit, filled, place="none")
    if again_s is not None:
        response.headers["Retry-After"] = str(again_s)
    return response


def shown(visit: Visit, filled: Filled, *, place: Place) -> Response:
    request = visit.request
    session = visit.session
    frame = Frame(
        place=place,
        path=request.url.path,
        query=tuple(request.query_params.multi_items()),
        csrf=getattr(request.state, "csrf", None),
        votes_only=session is not None and session.token.votes_only,
    )
    language = visit.language
    html = render_template(filled.template, language, TEMPLATES, frame=frame, **filled.values)
    response = Response(
        html.encode("utf-8", "replace"),  # a judge's answer may hold half a sign
        status_code=filled.status,
        media_type="text/html; charset=utf-8",
        headers={
            "Content-Security-Policy": POLICY,
            "Cache-Control": "no-store",
            # With none at all, a browser tells no origin with our own forms either.
            "Referrer-Policy": "same-origin",
        },
    )
    if request.query_params.get("lang") == language:
        response.set_cookie(
            LANGUAGE_COOKIE, language, max_age=_YEAR_S, samesite="strict", httponly=True
        )
    return response


_TYPES = {
    "evenhand.css": "text/css; charset=utf-8",
    "evenhand.js": "text/javascript; charset=utf-8",
    "evenhand.svg": "image/svg+xml",
    "try.js": "text/javascript; charset=utf-8",
}


_TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)


async def static_file(visit: Visit) -> Filled | Response:
    name = visit.request.path_params["name"]
    kind = _TYPES.get(name)  # by this list alone: a name is never a path
    if kind is None:
        raise NotFound(Message("serve.file_unknown"))
    headers = {"Cache-Control": "max-age=300", "Vary": "Accept-Encoding"}
    # Pages are never packed: their length would tell of a secret that stands beside a text of
    # somebody else's. These files hold neither.
    packed = bool(_TAKES_GZIP.search(visit.request.headers.get("accept-encoding", "")))
    if packed:
        headers["Content-Encoding"] = "gzip"
    return Response(_static(name, packed=packed), media_type=kind, headers=headers)


@cache
def _static(name: str, *, packed: bool) -> bytes:
    body = files("evenhand.present.html").joinpath("static", name).read_bytes()
    if name == "evenhand.css":
        body = colours().encode() + body
    return gzip.compress(body, mtime=0) if packed else body


STATIC_PAGES = (Page(path="/static/{name}", name="staticFile", work=static_file),)
