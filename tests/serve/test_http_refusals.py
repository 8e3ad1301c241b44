"""Whatever the server refuses, it refuses in one shape."""

from __future__ import annotations

import logging
import socket
from typing import Any

import httpx
import pytest

from evenhand.serve.app import make_app
from evenhand.serve.config import ServerConfig, Token
from http_service import PAIR, HttpService, StartService, problem, start_service
from run_data import adds_up

__all__ = ["start_service"]


@pytest.fixture
def service(start_service: StartService) -> HttpService:
    return start_service(adds_up)


@pytest.mark.parametrize(
    "path", ["/nope", "/v1/", "/v1/runs/", "/v1/runs/1/nope", "/docs", "/redoc"]
)
def test_address_that_leads_nowhere(service: HttpService, path: str) -> None:
    told = problem(service.client.get(path), 404, "not_found")
    assert "/openapi.json" in told.detail


def test_wrong_method_is_told_the_right_ones(service: HttpService) -> None:
    answer = service.client.delete("/v1/rank")
    told = problem(answer, 405, "wrong_method")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert told.detail == "/v1/rank takes GET, HEAD, OPTIONS, POST, not DELETE; use one of those"
    assert service.client.get("/v1/compare").headers["allow"] == "OPTIONS, POST"


def test_options_tell_the_methods(service: HttpService) -> None:
    answer = service.client.options("/v1/runs/1")
    assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS")


def test_head_is_the_head_of_get(service: HttpService) -> None:
    got, head = (service.client.request(method, "/v1/judges") for method in ("GET", "HEAD"))
    assert head.status_code == 200
    assert head.content == b""
    for name in ("content-length", "content-type"):
        assert head.headers[name] == got.headers[name]
    assert service.client.head("/nope").status_code == 404
    # The connection is still in step: what comes next is the next answer.
    assert service.client.get("/healthz").json() == {"status": "ok"}


OPERATIONS = [
    (method, path, [each["name"] for each in taken.get("parameters", ()) if each["in"] == "query"])
    for path, item in make_app(ServerConfig()).openapi()["paths"].items()
    for method, taken in item.items()
]


@pytest.mark.parametrize(("method", "path", "known"), OPERATIONS)
def test_no_endpoint_takes_an_unknown_query_parameter(
    service: HttpService, method: str, path: str, known: list[str]
) -> None:
    path = path.replace("{id}", "1")
    body: dict[str, str] | None = {} if method == "post" else None
    answer = service.client.request(method, path, params={"nonsense": "1"}, json=body)
    told = problem(answer, 422, "input")
    use = f"use {', '.join(known)}" if known else "none are accepted here"
    assert told.detail == f"unknown query parameter 'nonsense'; {use}"


def test_fault_of_the_server_tells_and_logs_no_texts(
    service: HttpService, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*args: Any, **kwargs: Any) -> None:
        raise ValueError(f"cannot digest {args}")

    monkeypatch.setattr(service.app.state.service.comparisons, "compare", fails)
    with caplog.at_level(logging.INFO):
        answer = service.client.post("/v1/compare", json=PAIR | {"prompt": "hush, a secret"})
    told = problem(answer, 500, "error")
    assert told.detail.startswith("internal server error; see the server's")
    logged = caplog.text
    assert "ValueError in fails" in logged
    assert "secret" not in logged + answer.text
    assert "cannot digest" not in logged + answer.text


def test_client_that_leaves_in_the_middle_of_a_body_is_no_fault(
    service: HttpService, caplog: pytest.LogCaptureFixture
) -> None:
    url = httpx.URL(service.url)
    head = "Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    with caplog.at_level(logging.WARNING):
        with socket.create_connection((url.host, url.port)) as connection:
            connection.sendall(f"POST /v1/compare HTTP/1.1\r\n{head}".encode())
        service.stop()
    service.start()
    assert "failed" not in caplog.text


def test_token_that_is_missing_or_wrong(start_service: StartService) -> None:
    service = start_service(adds_up, tokens=(Token("me", "right-secret"),))
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer = service.client.post("/v1/compare", json=PAIR, headers=headers)
        problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    right = {"Authorization": "Bearer right-secret"}
    assert service.client.post("/v1/compare", json=PAIR, headers=right).status_code == 200
    assert service.client.get("/healthz").status_code == 200


def test_page_of_another_host_is_refused(service: HttpService) -> None:
    headers = {"Origin": "https://evil.example"}
    problem(service.client.get("/v1/judges", headers=headers), 403, "forbidden")
