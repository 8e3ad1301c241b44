"""`/login` and `/logout`: a token is sent once, and a cookie says from then on who it was."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from evenhand.errors import EvenhandError, RateLimited, Unauthorized
from evenhand.serve.config import Token
from evenhand.serve.http.problems import problem_of
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.security.access import LASTS_S, LOGIN, LOGOUT, SESSION_COOKIE, is_vote, way_back
from evenhand.serve.security.policy import RequestPolicy

_FROM_ELSEWHERE = ("cross-site", "same-site")


async def show_login(visit: Visit) -> Filled | Response:
    session = visit.session
    back = way_back(visit.request.query_params.get("next"))
    token = session.token if session else None
    if not _policy(visit).config.tokens or (token and _goes_to(token, back)):
        return _sent_to(_goes_to(token, back) or "/")
    # A strict cookie stays away from what a page of another site links to, even by way of us:
    # opened once more, from here, the same address brings it.
    again = not session and visit.request.headers.get("sec-fetch-site") in _FROM_ELSEWHERE
    return _form(back, token=token, again=again)


async def log_in(visit: Visit) -> Filled | Response:
    fields = await visit.form()
    back = way_back(fields.get("next"))
    client = visit.request.client
    try:
        token = _policy(visit).log_in(client.host if client else "-", fields.get("token") or "")
    except (Unauthorized, RateLimited) as error:
        return _form(back, error=error)
    response = _sent_to(_goes_to(token, back) or LOGIN)
    response.set_cookie(
        SESSION_COOKIE,
        _policy(visit).sessions.begin(token),
        max_age=LASTS_S,
        httponly=True,
        samesite="strict",
        secure=_is_secure(visit.request),
    )
    return response


async def log_out(visit: Visit) -> Filled | Response:
    await visit.form()
    session = visit.session
    if session is not None:
        await asyncio.to_thread(
            visit.service.store.requests.end_session, session.id, ends_at=float(session.ends_at)
        )
    response = _sent_to(LOGIN)
    response.delete_cookie(
        SESSION_COOKIE, httponly=True, samesite="strict", secure=_is_secure(visit.request)
    )
    return response


def _goes_to(token: Token | None, back: str | None) -> str | None:
    """Voters are let in to vote alone, so that there is nowhere to send them but there."""
    if token is None or not token.votes_only:
        return back or "/"
    return back if back and is_vote(back.partition("?")[0]) else None


def _form(
    back: str | None,
    *,
    token: Token | None = None,
    error: EvenhandError | None = None,
    again: bool = False,
) -> Filled:
    problem = problem_of(error) if error else None
    kind = problem.error.kind if problem else None
    address = f"{LOGIN}?next={quote(back)}" if back else LOGIN
    return Filled(
        "login.html",
        {
            "back": back,
            "who": token.name if token else None,
            "wrong": kind,
            "again": address if again else None,
        },
        status=problem.status if problem else 200,
    )


def _sent_to(address: str) -> RedirectResponse:
    return RedirectResponse(address, status_code=303)


def _is_secure(request: Request) -> bool:
    """Over TLS, also where a proxy ends it and does not say so: the browser's own word on it."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or origin.lower().startswith("https://")


def _policy(visit: Visit) -> RequestPolicy:
    policy: RequestPolicy = visit.request.app.state.policy
    return policy


PAGES = (
    Page(path=LOGIN, name="loginPage", work=show_login),
    Page(path=LOGIN, name="logIn", work=log_in, method="POST"),
    Page(path=LOGOUT, name="logOut", work=log_out, method="POST"),
)
