from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from evenhand.serve.config import ServerConfig, ServerLimits
from evenhand.serve.security.guard import Guard
from evenhand.serve.security.policy import RequestPolicy
from live_server import LiveServer


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
        assert answer.startswith(b"HTTP/1.1 422")
        assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "sent",
    [
        "GET /v1/runs?name=Köln HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "this is no request\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : localhost\r\nContent-Length: x\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_before_the_app_is_asked(sent: str) -> None:
    with served(ServerLimits()) as server, server.connect() as connection:
        connection.sendall(sent.encode())
        answer = b""
        while block := connection.recv(65536):
            answer += block
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer.endswith(b"Invalid HTTP request received.")
