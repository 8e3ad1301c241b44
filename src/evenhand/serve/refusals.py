"""What the guard answers with where it lets nobody in: JSON for programs, a page for people."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from evenhand.errors import EvenhandError, Unauthorized
from evenhand.serve.access import LOGIN, is_vote, way_back
from evenhand.serve.doorway import Asked
from evenhand.serve.problems import problem_response


def refusal_of(asked: Asked, scope: Scope, error: EvenhandError) -> Response:
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


def _login_for(asked: Asked, scope: Scope) -> str:
    """A form cannot be sent again after the login; the page that it was on can be opened."""
    if asked.method not in ("GET", "HEAD"):
        wanted: str | None = asked.path if is_vote(asked.path) else None
    else:
        query = scope.get("query_string", b"").decode("latin-1")
        wanted = way_back(quote(asked.path) + (f"?{query}" if query else ""))
    return LOGIN if wanted in (None, "/") else f"{LOGIN}?next={quote(wanted or '')}"
