from __future__ import annotations

import sys

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from evenhand.serve.config import ServerConfig, ServerLimits
from evenhand.serve.http.problems import Problem
from evenhand.serve.security.connections import protocol_class
from evenhand.serve.security.guard import Guard
from evenhand.serve.security.policy import RequestPolicy
from live_server import LiveServer


@pytest.fixture
def without_httptools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httptools", None)
    monkeypatch.delitem(sys.modules, "uvicorn.protocols.http.httptools_impl", raising=False)


def served(limits: ServerLimits) -> LiveServer:
    async def echo(request: Request) -> JSONResponse:
        return JSONResponse({"length": len(await request.body())})

    config = ServerConfig(limits=limits)
    door = RequestPolicy(config)
    app = Starlette(
        routes=[Route("/v1/compare", echo, methods=["POST"])],
        middleware=[Middleware(Guard, policy=door)],
    )
    app.state.policy = door
    return LiveServer(app, config)


def test_without_the_parser_in_c_the_same_limits_hold(
    without_httptools: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "H11Protocol" in [each.__name__ for each in protocol_class(ServerConfig()).__mro__]
    monkeypatch.setattr("evenhand.serve.security.connections.HEAD_TIMEOUT_S", 0.5)
    json = {"Content-Type": "application/json"}
    with served(ServerLimits(body_bytes=1000)) as server:
        assert server.ask("POST", "/v1/compare", headers=json, body=b"x" * 900).status == 200
        assert server.ask("POST", "/v1/compare", headers={"Host": "evil.example"}).status == 403
        endless = (b"x" * 500 for _ in range(1000))
        refused = server.ask("POST", "/v1/compare", headers=json, chunks=endless)
        assert refused.status == 413
        with server.connect() as connection:
            connection.sendall(b"POST /v1/compare HTTP/1.1\r\nHost: loc")
            assert connection.recv(1000) == b""


def test_two_kinds_of_length_in_one_request_are_refused() -> None:
    """Request smuggling: what a proxy before us takes for a body we must not take for a request."""
    with served(ServerLimits()) as server, server.connect() as connection:
        connection.sendall(
            b"POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
            b"0\r\n\r\nGET /v1/runs HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        answer = b""
        while chunk := connection.recv(10_000):
            answer += chunk
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("parser", ["httptools", "h11"])
@pytest.mark.parametrize(
    "sent",
    [
        "GET /v1/runs?name=Köln HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "this is no request\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : localhost\r\nContent-Length: x\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_in_the_servers_one_shape(
    sent: str, parser: str, request: pytest.FixtureRequest
) -> None:
    if parser == "h11":
        request.getfixturevalue("without_httptools")
    with served(ServerLimits()) as server, server.connect() as connection:
        connection.sendall(sent.encode())
        told = b""
        while block := connection.recv(65536):
            told += block
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Content-Type: application/problem+json" in head
    problem = Problem.model_validate_json(body)
    assert (problem.status, problem.error.kind) == (400, "input")
