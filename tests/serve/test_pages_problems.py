"""What goes wrong is told to people on a page, and to programs as problem+json."""

from __future__ import annotations

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from evenhand.errors import EvenhandError
from evenhand.serve.app import make_app
from evenhand.serve.config import ServerConfig
from evenhand.serve.http.problems import MEDIA_TYPE, RespondTo, UnexpectedErrors, problem_response

PEOPLE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.mark.parametrize(
    ("path", "headers", "kind", "message"),
    [
        ("/nowhere", PEOPLE, "text/html; charset=utf-8", "Page not found"),
        ("/nowhere", {}, MEDIA_TYPE, "nothing at '/nowhere'; see /openapi.json"),
        ("/v1/nowhere", PEOPLE, MEDIA_TYPE, "nothing at '/v1/nowhere'; see /openapi.json"),
    ],
)
async def test_an_address_that_is_not_there_is_told_to_each_in_their_way(
    path: str, headers: dict[str, str], kind: str, message: str
) -> None:
    app = make_app(ServerConfig(judges=()))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get(path, headers=headers)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == kind
    assert message in answer.text


async def _failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("what a client sent")


async def answered(tell: RespondTo) -> bytes:
    said: list[Message] = []

    async def send(message: Message) -> None:
        said.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    await UnexpectedErrors(_failing, respond=tell)(scope, receive, send)
    assert said[0]["status"] == 500
    return b"".join(each.get("body", b"") for each in said)


async def test_what_nobody_foresaw_is_told_even_where_its_page_fails() -> None:
    def page_fails(scope: Scope, error: EvenhandError) -> object:
        raise ValueError("no page either")

    for tell in (lambda scope, error: problem_response(error), page_fails):
        body = await answered(tell)  # type: ignore[arg-type]
        assert b"internal server error" in body
        assert b"what a client sent" not in body


@pytest.mark.parametrize(("headers", "status"), [(PEOPLE, 303), ({}, 405)])
async def test_the_address_of_a_form_leads_a_browser_to_the_runs(
    headers: dict[str, str], status: int
) -> None:
    transport = httpx.ASGITransport(app=make_app(ServerConfig(judges=())))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get("/runs", headers=headers)
    assert answer.status_code == status
    if status == 303:
        assert answer.headers["location"] == "/"
    else:
        assert answer.headers["content-type"] == MEDIA_TYPE
        assert answer.headers["allow"] == "OPTIONS, POST"
