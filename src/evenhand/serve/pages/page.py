"""What a page is: an address and the work that fills a template; errors come as pages too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from starlette.responses import Response

from evenhand.errors import EvenhandError
from evenhand.pages.rendering import render
from evenhand.pages.wording import LANGUAGES, Language, preferred
from evenhand.serve.problems import problem_of
from evenhand.serve.service import Service

LANGUAGE_COOKIE = "evenhand_language"
_YEAR_S = 365 * 24 * 3600
# Nothing inline and nothing from elsewhere: a text that became markup all the same does nothing.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

Place = Literal["runs", "rank", "try", "none"]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page."""

    request: Request

    @property
    def service(self) -> Service:
        service: Service = self.request.app.state.service
        return service

    @property
    def token(self) -> str | None:
        name: str | None = getattr(self.request.state, "token", None)
        return name

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
                problem = problem_of(error)
                filled = Filled("problem.html", {"problem": problem}, status=problem.status)
            if isinstance(filled, Response):
                return filled
            return shown(visit, filled, place=self.place)

        app.add_api_route(
            self.path,
            handle,
            methods=[self.method],
            name=self.name,
            include_in_schema=False,
            response_class=Response,
            response_model=None,
        )


def shown(visit: Visit, filled: Filled, *, place: Place) -> Response:
    request = visit.request
    frame = Frame(
        place=place,
        path=request.url.path,
        query=tuple(request.query_params.multi_items()),
        csrf=getattr(request.state, "csrf", None),
    )
    language = visit.language
    response = Response(
        render(filled.template, language, frame=frame, **filled.values),
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
