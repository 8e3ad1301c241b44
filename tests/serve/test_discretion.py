"""What fails at the judge is told to clients without the judge's address, which the log has."""

from __future__ import annotations

import errno
import inspect
import json
import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from yarl import URL

from command_line import run_command
from evenhand.errors import EvenhandError, StoreError
from evenhand.judges.addresses import AddressRedactor
from evenhand.judges.redaction import Redactor
from evenhand.judges.transport import JudgeEndpoint
from http_service import PAIR, StartService, problem, start_service
from live_server import wait_until
from run_data import adds_up, sums
from servers import JudgeServer, Reply, SeenRequest, error_reply, forget_proxies

__all__ = ["start_service"]

RUN = {"pairs": [PAIR], "name": "failing"}


@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize(
    ("url", "hidden"),
    [
        ("http://10.1.2.3:8000/v1", ("10.1.2.3", "8000")),
        ("http://gpu-1.inner.example:8000/v1", ("gpu-1", "inner", "8000")),
        ("http://[fd00::1]:8000/v1", ("fd00", "8000")),
        ("https://localhost/v1", ("localhost", "443")),
    ],
)
def test_no_fault_on_the_way_to_a_judge_tells_where_it_is(
    url: str, hidden: tuple[str, ...], proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    if proxied:
        monkeypatch.setenv("http_proxy", "http://proxy-7.inner.example:3128")
        monkeypatch.setenv("https_proxy", "http://proxy-7.inner.example:3128")
    endpoint = JudgeEndpoint(URL(url), timeout_s=1, connect_timeout_s=1, redact=Redactor())
    assert (endpoint.proxy is not None) == proxied
    hide = AddressRedactor(url)
    faults = 0
    for name, method in inspect.getmembers(endpoint, inspect.ismethod):
        if name.startswith("_"):
            continue
        needed = inspect.signature(method).parameters
        error = method(*("a reason" for _ in needed))
        assert isinstance(error, EvenhandError)
        faults += 1
        told = hide(error.message)
        assert told
        for part in (*hidden, "proxy-7", "3128"):
            assert part not in told, (name, told)
    assert faults > 10


@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize(
    ("url", "hidden"),
    [
        ("http://10.1.2.3:8000/v1", ("10.1.2.3", "8000")),
        ("http://gpu-1.inner.example:8000/v1", ("gpu-1", "inner", "8000")),
        ("http://gpu7:8000/v1", ("gpu7", "8000")),
        ("http://[fd00::1]:8000/v1", ("fd00", "8000")),
    ],
)
def test_no_stored_fault_tells_where_another_server_of_its_fleet_was(
    url: str, hidden: tuple[str, ...], proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run keeps the first address alone, and the others may have come and gone."""
    forget_proxies(monkeypatch)
    if proxied:
        monkeypatch.setenv("http_proxy", "http://proxy-7.inner.example:3128")
    endpoint = JudgeEndpoint(URL(url), timeout_s=1, connect_timeout_s=1, redact=Redactor())
    hide = AddressRedactor.of_record({"base_url": "http://first.example:8000/v1"})
    for name, method in inspect.getmembers(endpoint, inspect.ismethod):
        if name.startswith("_"):
            continue
        error = method(*("a reason" for _ in inspect.signature(method).parameters))
        told = hide(f"none of the 3 servers answered; the last one: {error.message}")
        assert told.startswith("none of the 3 servers answered; the last one: ")
        for part in (*hidden, "proxy-7", "3128"):
            assert part not in told, (name, told)


def test_what_a_judge_without_an_address_said_stays() -> None:
    hide = AddressRedactor.of_record({"temperature": 0})
    assert hide("at 12:30 row:7 of x:80 failed") == "at 12:30 row:7 of x:80 failed"


def test_no_server_of_a_fleet_is_told_to_clients_and_the_log_knows_each(
    start_service: StartService, caplog: pytest.LogCaptureFixture
) -> None:
    gone = f"http://127.0.0.1:{unused_port()}/v1"
    with JudgeServer(lambda _: error_reply(500, "on fire")) as broken:
        service = start_service(adds_up, offer={"retries": 0, "base_url": (broken.url, gone)})
        answer = service.client.post("/v1/compare", json=PAIR)
    assert answer.status_code == 502
    detail = answer.json()["detail"]
    assert "none of the 2 servers answered; the last one: " in detail
    assert "127.0.0.1" not in detail
    assert str(broken.port) not in detail
    assert f"judge good: {gone} is skipped: judge_unreachable" in caplog.text
    assert "on fire" not in caplog.text


def test_the_texts_around_an_address_stay() -> None:
    hide = AddressRedactor("http://judge:8000/v1")
    assert hide("judge:8000 answered HTTP 401: the judge says no") == (
        "the judge's server answered HTTP 401: the judge says no"
    )
    assert hide("check whether the base URL http://judge:8000/v1 should end in /v1") == (
        "check whether the base URL should end in /v1"
    )
    assert hide("judge:8000 redirects to http://10.0.0.9/x (HTTP 302), which") == (
        "the judge's server redirects elsewhere (HTTP 302), which"
    )
    assert (
        AddressRedactor(None)("nothing to hide at 10.0.0.1:80") == "nothing to hide at 10.0.0.1:80"
    )


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_clients_are_told_what_failed_and_not_where(
    start_service: StartService, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    service = start_service(lambda _: error_reply(status, "no"), offer={"retries": 0})
    assert service.judge is not None
    port = str(service.judge.port)
    answer = service.client.post("/v1/compare", json=PAIR)
    assert answer.status_code in (502, 503)
    assert f"the judge's server answered HTTP {status}" in answer.json()["detail"]
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "pairwiseCompare", "arguments": PAIR},
    }
    accepts = {"Accept": "application/json, text/event-stream"}
    told = service.client.post("/mcp", json=call, headers=accepts).text
    assert "the judge's server answered HTTP" in told
    for text in (answer.text, told):
        assert port not in text
        assert "127.0.0.1" not in text
    assert f"judge good at 127.0.0.1:{port}: judge_" in caplog.text


def test_a_background_run_that_fails_does_not_tell_either(start_service: StartService) -> None:
    service = start_service(lambda _: error_reply(401, "no"), offer={"retries": 0})
    assert service.judge is not None
    run = service.client.post("/v1/runs", json=RUN).json()
    assert wait_until(
        lambda: service.client.get(f"/v1/runs/{run['id']}").json()["state"] == "failed",
        within_s=30,
    )
    for path in ("", "/verdicts", "/verdicts?full=true", "/report", "/events"):
        answer = service.client.get(f"/v1/runs/{run['id']}{path}")
        assert str(service.judge.port) not in answer.text, path
    assert (
        "the judge's server answered HTTP 401"
        in (service.client.get(f"/v1/runs/{run['id']}").json()["error"]["message"])
    )


@pytest.mark.slow
def test_what_the_command_line_kept_in_the_same_store_does_not_tell_either(
    start_service: StartService, tmp_path: Path
) -> None:
    def dislikes_some(request: SeenRequest) -> Reply:
        return error_reply(400, "too odd") if "ODD" in request.prompt else adds_up(request)

    service = start_service(dislikes_some)
    assert service.judge is not None
    rows: list[dict[str, Any]] = [row | {"criteria": ["accuracy"]} for row in sums(8)]
    rows[3]["context"] = "ODD"
    data = tmp_path / "pairs.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    store = str(service.config.store)
    judge = ["--judge", "openai:m", "--base-url", service.judge.url]
    told = ["--store", store, "--name", "by-hand"]
    run_command("run", str(data), *judge, *told, directory=tmp_path)
    port = str(service.judge.port)
    for path in ("/verdicts", "/verdicts?full=true", "/report"):
        answer = service.client.get(f"/v1/runs/by-hand{path}")
        assert answer.status_code == 200
        assert "the judge's server answered HTTP 400" in answer.text, answer.text[:2000]
        assert port not in answer.text, path


def test_the_log_tells_plain_routes_from_paths_that_lead_nowhere(
    start_service: StartService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "evenhand.serve")
    service = start_service(adds_up)
    service.client.post("/mcp", json={})
    service.client.get("/mcp")
    service.client.get("/openapi.json")
    service.client.get("/my-private-words")
    assert wait_until(lambda: "(no such path)" in caplog.text)
    for told in ("POST /mcp ", "GET /mcp ", "GET /openapi.json "):
        assert told in caplog.text
    assert "my-private-words" not in caplog.text


def test_a_store_that_fails_is_told_without_its_place(
    start_service: StartService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = start_service(adds_up)

    def fails(*_: object, **__: object) -> Any:
        raise StoreError(f"cannot read or write store {service.config.store}; check its disk")

    monkeypatch.setattr(type(service.app.state.service.store.runs), "find", fails)
    told = problem(service.client.get("/v1/runs/some"), 500, "store")
    assert told.detail == "the server's store failed; see its log, or contact its operator"
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "runStatus", "arguments": {"run": "some"}},
    }
    accepts = {"Accept": "application/json, text/event-stream"}
    by_mcp = service.client.post("/mcp", json=call, headers=accepts).text
    assert "the server's store failed" in by_mcp
    assert str(service.config.store) not in by_mcp
    assert f"cannot read or write store {service.config.store}" in caplog.text


def test_an_upload_that_finds_no_room_is_a_problem_and_no_bug(
    start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start_service(adds_up)

    def full(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for kind in ("TemporaryFile", "NamedTemporaryFile"):  # nameless where the system has them
        monkeypatch.setattr(f"evenhand.serve.uploads.tempfile.{kind}", full)
    lines = {"Content-Type": "application/x-ndjson"}
    row = json.dumps(PAIR) + "\n"
    told = problem(service.client.post("/v1/runs", content=row, headers=lines), 507, "no_room")
    assert "the server cannot store the upload (No space left on device)" in told.detail
    problem(service.client.post("/v1/runs", json=RUN), 507, "no_room")
