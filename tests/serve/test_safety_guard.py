"""The door, attacked: each test is what somebody would try, against a real server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from evenhand.serve.config import ServerConfig, ServerLimits, Token
from evenhand.serve.logs import configure_logs
from evenhand.serve.running import HEAD_BYTES
from evenhand.serve.security.guard import Guard
from evenhand.serve.security.policy import RequestPolicy
from http_service import judge_offer
from live_server import LiveServer, read_answer, wait_until

SECRET, OTHER = "right-0123456789abcdef", "second-0123456789abcdef"
JSON = {"Content-Type": "application/json"}


class Seen:
    """What came through the door."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.tokens: list[str | None] = []
        self.let_go = threading.Event()


def guarded(config: ServerConfig, seen: Seen | None = None) -> Starlette:
    seen = seen or Seen()

    async def echo(request: Request) -> Response:
        body = await request.body()
        seen.bodies.append(body)
        seen.tokens.append(request.state.token)
        return JSONResponse({"length": len(body)})

    async def slow(request: Request) -> Response:
        await asyncio.to_thread(seen.let_go.wait, 20)
        return JSONResponse({})

    async def stream(request: Request) -> Response:
        async def events() -> Any:
            while True:
                yield "data: on\n\n"
                await asyncio.sleep(0.02)

        return StreamingResponse(events(), media_type="text/event-stream")

    async def much(request: Request) -> Response:
        async def blocks() -> Any:
            for _ in range(1000):
                yield b"x" * 100_000

        return StreamingResponse(blocks())

    async def careless(request: Request) -> Response:
        """Swallows what its body raises, as frameworks do."""
        try:
            await request.body()
        except Exception:  # that is the point
            return JSONResponse({"fine": True})
        return JSONResponse({})

    door = RequestPolicy(config)
    app = Starlette(
        routes=[
            Route("/healthz", echo, methods=["GET", "POST"]),
            Route("/v1/compare", echo, methods=["GET", "POST"]),
            Route("/v1/runs", echo, methods=["GET", "POST"]),
            Route("/v1/runs/{run_id}", echo),
            Route("/mcp", echo, methods=["GET", "POST"]),
            Route("/careless", careless, methods=["POST"]),
            Route("/slow", slow),
            Route("/much", much),
            Route("/stream", stream),
        ],
        middleware=[Middleware(Guard, policy=door)],
    )
    app.state.policy = door
    return app


def start(seen: Seen | None = None, **config: Any) -> LiveServer:
    chosen = ServerConfig(**config)
    return LiveServer(guarded(chosen, seen), chosen)


@pytest.fixture(scope="module")
def local() -> Iterator[LiveServer]:
    with start() as server:
        yield server


@pytest.fixture(scope="module")
def tokened() -> Iterator[LiveServer]:
    config: dict[str, Any] = {
        "tokens": (Token("ci", SECRET), Token("anna", OTHER)),
        "limits": ServerLimits(failures_per_minute=1_000_000),
    }
    with start(**config) as server:
        yield server


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


# -- Host: DNS rebinding ---------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/compare", "/mcp", "/healthz", "/nothing"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8321",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8321",
        "evil.example@127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1/evil.example",
        "127.0.0.1:80:evil",
        "192.168.0.1",
        "0.0.0.0",
        "2130706433",  # 127.0.0.1 as one number, as browsers read it
        "0x7f.1",
        "",
    ],
)
def test_a_page_whose_name_was_pointed_at_this_machine_reaches_nothing(
    local: LiveServer, path: str, host: str
) -> None:
    answer = local.ask("GET", path, headers={"Host": host, "Origin": f"http://{host}"})
    assert answer.status == 403
    assert answer.json["error"]["kind"] == "forbidden"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost:8321", "LOCALHOST", "[::1]:8321", "localhost.", "127.0.0.2"]
)
def test_this_machines_own_names_are_answered(local: LiveServer, host: str) -> None:
    assert local.ask("GET", "/v1/compare", headers={"Host": host}).status == 200


def test_two_hosts_are_not_chosen_from(local: LiveServer) -> None:
    both = [("Host", "127.0.0.1"), ("Host", "evil.example")]
    assert local.ask("GET", "/v1/compare", headers=both).status in (400, 403)


def test_a_name_that_the_operator_allows_is_answered_and_no_other() -> None:
    with start(allowed_hosts=("judge.example.org",)) as server:
        for host, status in (
            ("judge.example.org", 200),
            ("Judge.Example.org:443", 200),
            ("localhost", 200),
            ("sub.judge.example.org", 403),
            ("judge.example.org.evil.example", 403),
        ):
            assert server.ask("GET", "/v1/compare", headers={"Host": host}).status == status, host


# -- Origin: pages of other sites ------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost:3000",
        "file://",
        "chrome-extension://abcdef",
        "http://127.0.0.1@evil.example",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/v1/compare", "/mcp"])
def test_a_web_page_of_another_origin_is_refused(local: LiveServer, origin: str, path: str) -> None:
    for method in ("POST", "GET", "OPTIONS"):
        answer = local.ask(method, path, headers={**JSON, "Origin": origin}, body=b"{}")
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers


def test_the_servers_own_pages_may_call_it(local: LiveServer) -> None:
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{local.port}"
        headers = {**JSON, "Host": host, "Origin": f"http://{host}"}
        assert local.ask("POST", "/v1/compare", headers=headers, body=b"{}").status == 200


def test_a_cross_site_form_post_of_plain_text_is_refused(local: LiveServer) -> None:
    """What a form sends without asking first, its body made to look like JSON."""
    body = b'{"prompt": "p", "responseA": "=", "responseB": "b"}'
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "text/plain; x=json"):
        headers = {"Content-Type": content_type}
        for origin in ({"Origin": "http://evil.example"}, {"Origin": "null"}):
            answer = local.ask("POST", "/v1/compare", headers=headers | origin, body=body)
            assert answer.status == 403
        # Even one that says no origin, as old browsers did.
        answer = local.ask("POST", "/v1/compare", headers=headers, body=body)
        assert answer.status == 415
        assert "application/json" in answer.json["detail"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket"])
def test_what_a_page_embeds_is_refused_though_it_names_no_origin(
    local: LiveServer, site: str, mode: str
) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    assert local.ask("GET", "/v1/runs", headers=headers).status == 403


def test_a_link_from_elsewhere_may_be_followed(local: LiveServer) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert local.ask("GET", "/v1/runs", headers=headers).status == 200
    posted = local.ask("POST", "/v1/runs", headers={**headers, **JSON}, body=b"{}")
    assert posted.status == 403


def test_an_allowed_origin_gets_what_its_browser_asks_for_and_no_other_does() -> None:
    with start(allowed_origins=("https://app.example.org",)) as server:
        origin = {"Origin": "https://app.example.org", "Sec-Fetch-Site": "cross-site"}
        wanted = {"Access-Control-Request-Method": "POST"}
        preflight = server.ask("OPTIONS", "/v1/compare", headers=origin | wanted)
        assert preflight.status == 204
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        answer = server.ask("POST", "/v1/compare", headers=JSON | origin, body=b"{}")
        assert answer.status == 200
        for each in (preflight, answer):
            assert each.headers["access-control-allow-origin"] == "https://app.example.org"
        for other in ("https://app.example.org.evil", "http://app.example.org"):
            refused = server.ask("POST", "/v1/compare", headers=JSON | {"Origin": other})
            assert refused.status == 403


def test_a_websocket_leads_nowhere(local: LiveServer) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": "http://evil.example",
    }
    assert local.ask("GET", "/v1/compare", headers=headers).status == 403


# -- Tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer(SECRET[:-1]),
        bearer(SECRET + "x"),
        bearer(SECRET.upper()),
        bearer(f"ci={SECRET}"),
        bearer(f"{SECRET},{OTHER}"),
        {"Authorization": SECRET},
        {"Authorization": f"Basic {SECRET}"},
        {"X-Api-Key": SECRET},
        {"Cookie": f"token={SECRET}"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/compare", "/mcp", "/v1/runs/1", "/nothing", "/healthz/"])
def test_nobody_comes_in_without_a_right_token(
    tokened: LiveServer, headers: dict[str, str], path: str
) -> None:
    answer = tokened.ask("GET", path, headers=headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert SECRET not in answer.body.decode()


def test_a_token_in_the_query_is_none(tokened: LiveServer) -> None:
    assert tokened.ask("GET", f"/v1/compare?token={SECRET}").status == 401


def test_two_authorizations_are_not_chosen_from(tokened: LiveServer) -> None:
    both = [("Authorization", f"Bearer {SECRET}"), ("Authorization", "Bearer x")]
    assert tokened.ask("GET", "/v1/compare", headers=both).status == 401


def test_each_of_several_tokens_comes_in_by_its_name() -> None:
    seen = Seen()
    with start(seen, tokens=(Token("ci", SECRET), Token("anna", OTHER))) as server:
        for secret in (SECRET, OTHER):
            assert server.ask("GET", "/v1/compare", headers=bearer(secret)).status == 200
    assert seen.tokens == ["ci", "anna"]


def test_health_alone_is_free_of_tokens(tokened: LiveServer) -> None:
    assert tokened.ask("GET", "/healthz").status == 200


def test_guessing_is_slow_and_the_right_guess_looks_like_a_wrong_one() -> None:
    limits = ServerLimits(failures_per_minute=3)
    with start(tokens=(Token("ci", SECRET),), limits=limits) as server:
        statuses = [
            server.ask("GET", "/v1/compare", headers=bearer(f"guess-{n:020}")).status
            for n in range(6)
        ]
        assert statuses == [401, 401, 401, 429, 429, 429]
        right = server.ask("GET", "/v1/compare", headers=bearer(SECRET))
        assert right.status == 429
        assert 1 <= int(right.headers["retry-after"]) <= 20  # 60 s / 3
        assert server.ask("GET", "/healthz").status == 200


def test_a_client_cannot_lie_about_its_address_to_go_on_guessing() -> None:
    limits = ServerLimits(failures_per_minute=2)
    with start(tokens=(Token("ci", SECRET),), limits=limits) as server:
        statuses = []
        for number in range(4):
            forged = {"X-Forwarded-For": f"192.0.2.{number}", "Forwarded": f"for=192.0.2.{number}"}
            answer = server.ask("GET", "/v1/compare", headers=bearer("wrong" * 5) | forged)
            statuses.append(answer.status)
        assert statuses == [401, 401, 429, 429]


def test_a_trusted_proxys_clients_are_told_apart() -> None:
    config: dict[str, Any] = {
        "tokens": (Token("ci", SECRET),),
        "limits": ServerLimits(failures_per_minute=1),
        "trusted_proxies": ("127.0.0.1",),
    }
    with start(**config) as server:
        for secret, client, status in (
            ("wrong" * 5, "192.0.2.1", 401),
            (SECRET, "192.0.2.1", 429),
            (SECRET, "192.0.2.2", 200),
        ):
            headers = bearer(secret) | {"X-Forwarded-For": client}
            assert server.ask("GET", "/v1/compare", headers=headers).status == status


def test_one_token_asks_too_often_and_the_other_does_not_pay_for_it() -> None:
    limits = ServerLimits(requests_per_minute=3)
    tokens = (Token("ci", SECRET), Token("anna", OTHER))
    with start(tokens=tokens, limits=limits) as server:
        answers = [server.ask("GET", "/v1/compare", headers=bearer(SECRET)) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].json["error"]["kind"] == "rate_limited"
        assert answers[-1].json["error"]["retryable"] is True
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 20
        assert server.ask("GET", "/v1/compare", headers=bearer(OTHER)).status == 200


# -- Bodies ----------------------------------------------------------------------------------


def test_a_body_beyond_the_limit_is_refused_by_its_length_before_it_is_read() -> None:
    seen = Seen()
    with start(seen, limits=ServerLimits(body_bytes=1000)) as server:
        headers = {**JSON, "Content-Length": "1000000000"}
        answer = server.ask("POST", "/v1/compare", headers=headers)
        assert answer.status == 413
        assert answer.json["error"]["kind"] == "too_large"
        assert "1000 bytes" in answer.json["detail"]
        at_the_limit = server.ask("POST", "/v1/compare", headers=JSON, body=b"x" * 1000)
        assert at_the_limit.status == 200
    assert seen.bodies == [b"x" * 1000]


@pytest.mark.parametrize("path", ["/v1/compare", "/mcp", "/careless"])
def test_a_body_without_a_length_is_counted_as_it_comes(path: str) -> None:
    seen = Seen()
    with start(seen, limits=ServerLimits(body_bytes=100_000)) as server:
        endless = (b"x" * 20_000 for _ in range(500))
        answer = server.ask("POST", path, headers=JSON, chunks=endless)
        assert answer.status == 413
        assert answer.json["error"]["kind"] == "too_large"
        assert server.ask("GET", "/healthz").status == 200
    assert not [body for body in seen.bodies if body]


def test_an_upload_may_be_larger_but_not_endless_nor_may_json_pose_as_one() -> None:
    limits = ServerLimits(body_bytes=1000, upload_bytes=50_000)
    with start(limits=limits) as server:
        lines = {"Content-Type": "application/x-ndjson"}
        for headers, path, size, status in (
            (lines, "/v1/runs", 40_000, 200),
            (lines, "/v1/runs", 60_000, 413),
            (JSON, "/v1/runs", 40_000, 413),
            (lines, "/v1/compare", 40_000, 413),
            ({"Content-Type": "multipart/form-data; boundary=x"}, "/v1/runs", 40_000, 200),
        ):
            for sent in ({"body": b"x" * size}, {"chunks": [b"x" * 10_000] * (size // 10_000)}):
                answer = server.ask("POST", path, headers=headers, **sent)
                assert answer.status == status


def test_many_bodies_together_do_not_fill_the_memory() -> None:
    limits = ServerLimits(body_bytes=100_000, bodies_bytes=150_000, body_timeout_s=20)
    with start(limits=limits) as server:
        with server.connect() as holding:
            head = "POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n"
            holding.sendall(
                f"{head}Content-Type: application/json\r\n\r\n".encode() + b"x" * 80_000
            )
            door = server.app.state.policy
            assert wait_until(lambda: door.held.now == 80_000)
            answer = server.ask("POST", "/v1/compare", headers=JSON, body=b"x" * 80_000)
            assert answer.status == 429
            assert answer.headers["retry-after"]
            holding.sendall(b"x" * 10_000)
            assert read_answer(holding).status == 200
        assert wait_until(lambda: door.held.now == 0)
        answer = server.ask("POST", "/v1/compare", headers=JSON, body=b"x" * 80_000)
        assert answer.status == 200


@pytest.mark.slow
def test_a_body_that_drips_is_given_up_on() -> None:
    with start(limits=ServerLimits(body_timeout_s=0.3)) as server, server.connect() as connection:
        head = "POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        dripping = threading.Thread(target=_drip, args=(connection,))
        dripping.start()
        answer = read_answer(connection)
        assert answer.status == 408
        assert answer.json["error"]["kind"] == "too_slow"
        dripping.join()


def _drip(connection: socket.socket) -> None:
    try:
        for _ in range(40):
            connection.sendall(b"x")
            time.sleep(0.05)
    except OSError:
        return


def test_an_upload_that_keeps_coming_is_not_given_up_on() -> None:
    limits = ServerLimits(body_timeout_s=0.6)
    with start(limits=limits) as server:

        def slowly() -> Iterator[bytes]:
            for _ in range(8):
                yield b"x" * 70_000
                time.sleep(0.15)

        headers = {"Content-Type": "application/x-ndjson"}
        answer = server.ask("POST", "/v1/runs", headers=headers, chunks=slowly())
        assert answer.json == {"length": 560_000}


# -- Connections -----------------------------------------------------------------------------


def test_a_head_that_never_ends_is_cut_off(local: LiveServer) -> None:
    with local.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        sent = 0
        try:
            while sent < 400 * HEAD_BYTES:
                connection.sendall(b"X-Filler: " + b"x" * 8000 + b"\r\n")
                sent += 8012
            assert not connection.recv(1)
        except OSError:
            pass
        assert sent < 400 * HEAD_BYTES
    assert local.ask("GET", "/healthz").status == 200


def test_behind_a_trusted_proxy_requests_are_counted_by_the_client_that_it_names() -> None:
    seen = Seen()
    limits = ServerLimits(requests_per_address=2)
    with start(seen, limits=limits, trusted_proxies=("127.0.0.1",)) as server:
        held = [server.connect() for _ in range(2)]
        asking = "GET {} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {}\r\n\r\n"
        for connection in held:
            connection.sendall(asking.format("/slow", "192.0.2.1").encode())
        assert wait_until(lambda: server.app.state.policy.in_flight == 2)
        for client, path, status in (
            ("192.0.2.1", "/v1/compare", 429),
            ("192.0.2.1", "/healthz", 200),
            ("192.0.2.2", "/v1/compare", 200),
        ):
            answer = server.ask("GET", path, headers={"X-Forwarded-For": client})
            assert answer.status == status, (client, path)
        seen.let_go.set()
        for connection in held:
            assert read_answer(connection).status == 200
            connection.close()


def test_requests_in_a_line_are_not_queued_without_end() -> None:
    seen = Seen()
    with start(seen) as server, server.connect() as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):  # nobody takes in what comes meanwhile
            while sent < 50_000_000:
                sent += connection.send(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
        assert sent < 50_000_000
        assert len(seen.bodies) == 0
        seen.let_go.set()
    with start() as server, server.connect() as connection:  # a few are answered, in their order
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        reader = connection.makefile("rb")
        for _ in range(20):
            assert reader.readline() == b"HTTP/1.1 200 OK\r\n"
            while (line := reader.readline()) != b"\r\n":
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            assert json.loads(reader.read(length)) == {"length": 0}


def test_what_stands_in_a_trailer_is_no_header() -> None:
    with start(tokens=(Token("ci", SECRET),)) as server, server.connect() as connection:
        connection.sendall(
            b"POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/json\r\n\r\n2\r\n{}\r\n0\r\n"
            b"Authorization: Bearer " + SECRET.encode() + b"\r\n\r\n"
        )
        assert read_answer(connection).status == 401


@pytest.mark.parametrize("filler", [b"X: " + b"x" * 8000 + b"\r\n", b"x" * 8000])
def test_trailers_that_never_end_are_cut_off(local: LiveServer, filler: bytes) -> None:
    with local.connect() as connection:
        connection.sendall(
            b"POST /v1/compare HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/json\r\n\r\n2\r\n{}\r\n0\r\nX-More: "
        )
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 400 * HEAD_BYTES:
                connection.sendall(filler)
                sent += len(filler)
        assert sent < 400 * HEAD_BYTES
    assert local.ask("GET", "/healthz").status == 200


def test_more_headers_than_any_client_sends_are_refused(local: LiveServer) -> None:
    headers = [(f"X-{number}", "x") for number in range(300)]
    refused = local.ask("GET", "/v1/compare", headers=headers)
    assert (refused.status, refused.json["error"]["kind"]) == (413, "too_large")
    assert local.ask("GET", "/v1/compare", headers=headers[:150]).status == 200


def test_more_requests_than_it_answers_at_once_are_sent_away() -> None:
    seen = Seen()
    with start(seen, limits=ServerLimits(requests=3)) as server:
        held = [server.connect() for _ in range(3)]
        for connection in held:
            connection.sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        door = server.app.state.policy
        assert wait_until(lambda: door.in_flight == 3)
        refused = server.ask("GET", "/v1/compare")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        seen.let_go.set()
        for connection in held:
            assert read_answer(connection).status == 200
            connection.close()
        assert server.ask("GET", "/v1/compare").status == 200


def test_the_end_of_the_server_ends_event_streams_in_good_order() -> None:
    with start() as server, server.connect() as connection:
        connection.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"text/event-stream" in connection.recv(1000)
        server.begin_to_stop()
        came = b""
        while chunk := connection.recv(10_000):
            came += chunk
        assert came.endswith(b"0\r\n\r\n")


def test_the_end_of_the_server_waits_for_what_is_in_flight() -> None:
    seen = Seen()
    with start(seen) as server, server.connect() as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        door = server.app.state.policy
        assert wait_until(lambda: door.in_flight == 1)
        server.begin_to_stop()
        assert wait_until(lambda: _refuses(server))
        seen.let_go.set()
        assert read_answer(connection).status == 200


def _refuses(server: LiveServer) -> bool:
    try:
        server.connect().close()
    except OSError:
        return True
    return False


# -- What every answer carries, and what the log does ----------------------------------------


@pytest.mark.parametrize("path", ["/v1/compare", "/nothing"])
def test_every_answer_tells_browsers_to_keep_out(local: LiveServer, path: str) -> None:
    headers = local.ask("GET", path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


@pytest.fixture
def quiet_loggers() -> Iterator[None]:
    """`configure_logs` takes the process's loggers; give them back."""
    names = ("", "evenhand", "uvicorn")
    before = [
        (logger, logger.handlers[:], logger.level, logger.propagate)
        for logger in map(logging.getLogger, names)
    ]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate


def log_of(
    capsys: pytest.CaptureFixture[str], *, log_texts: bool = False, log_json: bool = False
) -> str:
    config: dict[str, Any] = {
        "tokens": (Token("ci", SECRET),),
        "judges": (judge_offer("m", "openai:m", api_key_env="JUDGE_KEY"),),
        "log_texts": log_texts,
        "log_json": log_json,
    }
    key = {"JUDGE_KEY": "plain-looking-key", "OTHER_API_KEY": "another-long-key"}
    with start(**config) as server:
        configure_logs(server.config, key)
        body = b'{"prompt": "my private prompt", "note": "plain-looking-key another-long-key"}'
        query = "?judge=private-query"
        server.ask("POST", f"/v1/compare{query}", headers=JSON | bearer(SECRET), body=body)
        server.ask("GET", "/v1/runs/12", headers=bearer(SECRET))
        server.ask("GET", "/v1/runs/private%20words", headers=bearer(SECRET))
        server.ask("GET", "/private/path", headers=bearer(SECRET))
        server.ask("GET", "/v1/compare", headers=bearer("wrong-secret-wrong"))
        server.ask("GET", "/v1/compare", headers={"Host": "private.example"})
        server.ask("GET", "/v1/compare", headers=bearer(SECRET) | {"X-Request-Id": "abc-1"})
        logging.getLogger("evenhand.serve").error("a fault quoting %s", SECRET)
        try:
            raise ValueError("it quotes my private prompt")
        except ValueError:
            logging.getLogger("uvicorn.error").error("Exception in ASGI", exc_info=True)
        assert wait_until(lambda: not server.connections)
    return capsys.readouterr().err


@pytest.mark.parametrize("log_json", [False, True])
def test_no_text_no_secret_and_no_query_is_in_the_log(
    capsys: pytest.CaptureFixture[str], quiet_loggers: None, log_json: bool
) -> None:
    log = log_of(capsys, log_json=log_json)
    assert "private" not in log
    for secret in (SECRET, "wrong-secret", "plain-looking-key", "another-long-key"):
        assert secret not in log
    assert "a fault quoting ***" in log
    assert "ValueError" in log
    if log_json:
        lines = [json.loads(line) for line in log.splitlines()]
        told = [
            (line["method"], line["path"], line["status"], line.get("token"), line.get("kind"))
            for line in lines
            if "path" in line
        ]
        assert told == [
            ("POST", "/v1/compare", 200, "ci", None),
            ("GET", "/v1/runs/12", 200, "ci", None),
            ("GET", "/v1/runs/{run_id}", 200, "ci", None),
            ("GET", "(no such path)", 404, "ci", None),
            ("GET", "(no such path)", 401, None, "unauthorized"),
            ("GET", "(no such path)", 403, None, "forbidden"),
            ("GET", "/v1/compare", 200, "ci", None),
        ]
        assert lines[0]["bytes_in"] == 77
        assert [line for line in lines if line.get("request_id") == "abc-1"]


def test_texts_are_in_the_log_where_the_operator_wants_them_and_secrets_are_not(
    capsys: pytest.CaptureFixture[str], quiet_loggers: None
) -> None:
    log = log_of(capsys, log_texts=True)
    assert "my private prompt" in log
    for secret in (SECRET, "wrong-secret", "plain-looking-key", "another-long-key"):
        assert secret not in log


@pytest.mark.parametrize("log_json", [False, True])
@pytest.mark.parametrize(
    "secret", ['to"ken-with-a-quote', "to\\ken-with-a-backslash", "to'ken-&-more"]
)
def test_a_token_with_signs_that_json_escapes_is_not_in_the_log(
    capsys: pytest.CaptureFixture[str], quiet_loggers: None, secret: str, log_json: bool
) -> None:
    config: dict[str, Any] = {"tokens": (Token("ci", secret),), "log_texts": True}
    with start(**config, log_json=log_json) as server:
        configure_logs(server.config, {})
        body = json.dumps({"prompt": "my private prompt", "note": secret}).encode()
        server.ask("POST", "/v1/compare", headers=JSON | bearer(secret), body=body)
        assert wait_until(lambda: not server.connections)
    log = capsys.readouterr().err
    assert "my private prompt" in log
    assert "***" in log
    assert "ken-" not in log


def test_no_metric_has_a_label_that_a_client_wrote() -> None:
    judges = (judge_offer("m", "openai:m"),)
    with start(tokens=(Token("ci", SECRET),), judges=judges) as server:
        for method, path, headers in (
            ("GET", "/v1/runs/private", bearer(SECRET)),
            ("GET", "/private?private=private", bearer(SECRET)),
            ("PRIVATE", "/v1/compare", bearer(SECRET)),
            ("GET", "/v1/compare", bearer("private-private-private")),
            ("GET", "/v1/compare", {"Host": "private.example"}),
        ):
            server.ask(method, path, headers=headers)
        metrics = server.app.state.policy.metrics
        assert wait_until(lambda: server.app.state.policy.in_flight == 0)
    text = metrics.exposition({"queued": 2}).decode()
    assert "private" not in text.lower()
    assert SECRET not in text
    assert 'route="/v1/runs/{run_id}",status="200"} 1.0' in text
    assert 'evenhand_http_refused_total{kind="unauthorized"} 1.0' in text
    assert 'evenhand_http_refused_total{kind="forbidden"} 1.0' in text
    assert 'evenhand_runs{state="queued"} 2.0' in text
