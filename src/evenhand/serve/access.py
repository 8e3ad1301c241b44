"""Which addresses are pages, and what each kind of visitor may ask for."""

from __future__ import annotations

import re

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
