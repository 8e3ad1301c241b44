"""The whole server, attacked through what clients may send: each test is an attempt."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenhand.serve.config import Token
from evenhand.serve.logs import configure_logs
from http_service import PAIR, HttpService, StartService, start_service
from live_server import wait_until
from run_data import adds_up, sums
from servers import JudgeServer, Reply, SeenRequest, Slow, chat_reply, error_reply

__all__ = ["start_service"]

KEY = "sk-judge-0123456789abcdef"
SECRET = "token-0123456789abcdef"
CANARY = "canary-in-a-file-that-nobody-may-read"


@pytest.fixture
def trap(start_server: Any) -> JudgeServer:
    """The attacker's own server: whatever comes here has got out."""
    server: JudgeServer = start_server(lambda _: chat_reply(CANARY))
    return server


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    """A file of the server's machine, in the forms that our readers take."""
    path = tmp_path / "private" / "secret.jsonl"
    path.parent.mkdir()
    row = {"prompt": CANARY, "response_a": CANARY, "response_b": CANARY, "criteria": ["c"]}
    path.write_text(json.dumps(row) + "\n", "utf-8")
    return path


def reaching(trap: JudgeServer, file: Path) -> Iterator[tuple[str, Any]]:
    """What an attacker would set, in either case of names, to make the server go there."""
    for name in ("base_url", "baseUrl", "api_base", "url", "endpoint", "proxy", "callback"):
        yield name, trap.url
    for name in ("template", "judge_file", "file", "path", "calibration", "store", "config"):
        yield name, str(file)
        yield name, f"file://{file}"
    for name in ("source", "data", "pairsUrl", "questions", "baseline"):
        yield name, "s3://evil-bucket/pairs.jsonl"
        yield name, trap.origin
    for judge in (
        f"local:{file}",
        f"replay:{file}",
        "openai:gpt-4o",
        "anthropic:claude",
        f"openai:m@{trap.url}",
        trap.url,
        f"good?base_url={trap.url}",
    ):
        yield "judge", judge
        yield "judges", [judge]
    for name in ("api_key", "apiKey", "api_key_env", "headers", "model", "mode", "locale"):
        yield name, "OPENAI_API_KEY"


def refused(answer: httpx.Response, told: Any) -> None:
    assert 400 <= answer.status_code < 500, (told, answer.status_code, answer.text)
    assert CANARY not in answer.text


@pytest.mark.slow
def test_a_client_cannot_make_the_server_call_an_address_or_read_a_file(
    start_service: StartService, trap: JudgeServer, secret_file: Path
) -> None:
    service = start_service(adds_up)
    rows = sums(2, criteria=["accuracy"])
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    ndjson = {"Content-Type": "application/x-ndjson"}
    started = service.client.post("/v1/runs", content=lines, headers=ndjson)
    run = started.json()["id"]
    for name, value in reaching(trap, secret_file):
        told = (name, value)
        query = {name: json.dumps(value) if isinstance(value, list) else value}
        if name != "judges":
            body = PAIR | {name: value}
            refused(service.client.post("/v1/compare", json=body), told)
            refused(service.client.post("/v1/compare", json=PAIR, params=query), told)
        body = {"pairs": rows, name: value}
        refused(service.client.post("/v1/runs", json=body), told)
        sent = service.client.post("/v1/runs", content=lines, headers=ndjson, params=query)
        refused(sent, told)
        for path in ("/v1/rank", "/v1/audits"):
            asked: dict[str, Any] = {"runs": [run]} if path == "/v1/rank" else {"run": run}
            if name != "judge":  # there it is a filter over what is stored
                refused(service.client.post(path, json=asked | {name: value}), told)
        for path in (f"/v1/runs/{run}/report", f"/v1/runs/{run}", "/v1/runs"):
            refused(service.client.get(path, params=query), told)
    assert trap.requests == []


@pytest.mark.parametrize(
    "where", ["/etc/passwd", "file:///etc/passwd", "s3://bucket/x.jsonl", "http://127.0.0.1:1/x"]
)
def test_a_string_in_the_place_of_pairs_is_no_file_name(
    start_service: StartService, where: str
) -> None:
    service = start_service(adds_up)
    for pairs in (where, [where], [{"file": where}], {"path": where}):
        answer = service.client.post("/v1/runs", json={"pairs": pairs, "criteria": ["accuracy"]})
        refused(answer, pairs)
    for run in (where, f"../../{where}", "..", "%2e%2e%2f"):
        refused(service.client.post("/v1/rank", json={"runs": [run]}), run)
        refused(service.client.post("/v1/audits", json={"run": run}), run)
        refused(service.client.get(f"/v1/runs/{run}"), run)


@pytest.mark.parametrize(
    "name", ["../../../../tmp/evil.jsonl", "/etc/passwd.jsonl", "..\\evil.csv", "a\0b.jsonl"]
)
def test_an_uploads_own_name_leads_to_no_file(
    start_service: StartService, tmp_path: Path, name: str
) -> None:
    service = start_service(adds_up)
    before = sorted(tmp_path.rglob("*"))
    content = "".join(json.dumps(row) + "\n" for row in sums(2))
    answer = service.client.post(
        "/v1/runs", params={"criteria": "accuracy"}, files={"file": (name, content)}
    )
    assert answer.status_code in (202, 400, 415, 422), answer.text
    assert "passwd:" not in answer.text
    after = [p for p in tmp_path.rglob("*") if not p.name.startswith("service.db")]
    assert after == [p for p in before if not p.name.startswith("service.db")]


def test_agents_cannot_name_addresses_or_files_either(
    start_service: StartService, trap: JudgeServer, secret_file: Path
) -> None:
    service = start_service(adds_up)
    for name, value in reaching(trap, secret_file):
        for tool, arguments in (
            ("pairwiseCompare", PAIR | {name: value}),
            ("startRun", {"pairs": [PAIR], name: value}),
            (
                "rankResponses",
                {"prompt": "p", "responses": ["a", "b"], "criteria": ["c"], name: value},
            ),
        ):
            call = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": tool, "arguments": arguments},
            }
            accepts = {"Accept": "application/json, text/event-stream"}
            answer = service.client.post("/mcp", json=call, headers=accepts)
            assert CANARY not in answer.text
            assert '"winner":"A"' not in answer.text.replace(" ", ""), (tool, name, value)
    assert trap.requests == []
    assert service.judge is not None
    assert service.judge.requests == []


def test_the_judges_on_offer_are_told_without_their_addresses(
    start_service: StartService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    service = start_service(adds_up, offer={"api_key_env": "JUDGE_KEY"})
    assert service.judge is not None
    for path in ("/v1/judges", "/openapi.json", "/readyz", "/metrics", "/healthz"):
        text = service.client.get(path).text
        assert KEY not in text
        # Not inside a longer number: examples in the document have many digits.
        assert re.search(rf"(?<![\d.]){service.judge.port}(?!\d)", text) is None


# -- Sizes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["prompt", "response_a", "response_b", "context", "reference"])
def test_a_field_beyond_its_limit_is_refused(start_service: StartService, field: str) -> None:
    service = start_service(adds_up, field_chars=1000)
    answer = service.client.post("/v1/compare", json=PAIR | {field: "字" * 1001})
    assert answer.status_code in (413, 422)
    assert "1000" in answer.text.replace(",", "")
    assert "字字字字字字字字字字字字字字字字字字字字字" not in answer.text
    assert service.judge is not None
    assert service.judge.requests == []


def test_more_criteria_than_it_takes_are_refused(start_service: StartService) -> None:
    service = start_service(adds_up, criteria=3)
    for criteria, statuses in ((["a", "b", "c", "d"], (413, 422)), (["accuracy"], (200,))):
        answer = service.client.post("/v1/compare", json=PAIR | {"criteria": criteria})
        assert answer.status_code in statuses


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"prompt": ' + b"9" * 100_000 + b"}",
        b"\xff\xfe\x00",
        b"",
        b"null",
        b'{"prompt": "\\ud800"}',
    ],
)
def test_what_is_no_pair_is_an_error_and_no_fault(start_service: StartService, body: bytes) -> None:
    service = start_service(adds_up)
    answer = service.client.post(
        "/v1/compare", content=body, headers={"Content-Type": "application/json"}
    )
    refused(answer, body[:20])
    assert len(answer.text) < 3000


def test_a_flood_fills_the_queue_and_no_more(start_service: StartService) -> None:
    """Everything accepted is answered; everything else is told when to come again."""
    let_go = threading.Event()

    def held(request: SeenRequest) -> Reply:
        let_go.wait(20)
        return adds_up(request)

    service = start_service(held, compares=2, compare_queue=3)
    with ThreadPoolExecutor(30) as pool:
        asked = [pool.submit(service.client.post, "/v1/compare", json=PAIR) for _ in range(30)]
        assert wait_until(lambda: sum(each.done() for each in asked) == 25)
        let_go.set()
        answers = [each.result() for each in asked]
    by_status: dict[int, int] = {}
    for answer in answers:
        by_status[answer.status_code] = by_status.get(answer.status_code, 0) + 1
    assert by_status == {200: 5, 429: 25}
    busy = [answer for answer in answers if answer.status_code == 429]
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in busy)
    assert all(answer.json()["error"]["kind"] == "busy" for answer in busy)
    text = service.client.get("/metrics").text
    assert 'evenhand_comparisons_total{judge="good",outcome="win"} 5.0' in text
    assert 'evenhand_comparison_failures_total{judge="good",kind="busy"} 25.0' in text
    assert 'outcome="failed"' not in text
    assert 'evenhand_runs{state="judging"} 0.0' in text


def test_a_flood_of_runs_is_bounded_too(start_service: StartService) -> None:
    let_go = threading.Event()

    def held(request: SeenRequest) -> Reply:
        let_go.wait(20)
        return adds_up(request)

    service = start_service(held, background_runs=1, queued_runs=2, run_pairs=10)
    statuses = []
    for number in range(8):
        rows = sums(2, begin=1 + 10 * number, criteria=["accuracy"])
        statuses.append(service.client.post("/v1/runs", json={"pairs": rows}).status_code)
    let_go.set()
    assert set(statuses) == {202, 429}
    assert statuses.count(202) <= 4
    too_many = {"pairs": sums(11, begin=500, criteria=["accuracy"])}
    assert service.client.post("/v1/runs", json=too_many).status_code in (413, 422, 429)


def test_a_comparison_that_takes_too_long_is_ended(start_service: StartService) -> None:
    def slow(request: SeenRequest) -> Slow:
        return Slow(20, adds_up(request))

    service = start_service(slow, compare_timeout_s=0.5)
    answer = service.client.post("/v1/compare", json=PAIR)
    assert answer.status_code in (503, 504)
    assert answer.json()["error"]["retryable"] is True
    assert "winner" not in answer.json()


# -- Secrets and texts -----------------------------------------------------------------------


@pytest.fixture
def quiet_loggers() -> Iterator[None]:
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


PRIVATE = "my-private-words"


def barrage(service: HttpService) -> list[httpx.Response]:
    """Requests of every kind of end, all of which hold the private words."""
    client = service.client
    bearer = {"Authorization": f"Bearer {SECRET}"}
    # The scripted judge looks for its sums in the prompt; the private words go beside them.
    pair = PAIR | {"context": PRIVATE, "id": PRIVATE}
    json_type = {"Content-Type": "application/json"}
    call = {"jsonrpc": "2.0", "id": PRIVATE, "method": PRIVATE}
    return [
        client.post("/v1/compare", json=pair, headers=bearer),
        client.post("/v1/compare", json=pair, headers={"Authorization": f"Bearer {PRIVATE}"}),
        client.post("/v1/compare", json=pair | {"criteria": PRIVATE}, headers=bearer),
        client.post("/v1/compare", json=pair | {PRIVATE: 1}, headers=bearer),
        client.post("/v1/compare", json=pair, params={"judge": PRIVATE}, headers=bearer),
        client.post("/v1/compare", content=f"{{{PRIVATE}", headers=bearer | json_type),
        client.get(f"/{PRIVATE}", headers=bearer),
        client.get(f"/v1/runs/{PRIVATE}%20", headers=bearer),
        client.post("/v1/runs", json={"pairs": [pair], "name": PRIVATE}, headers=bearer),
        client.post("/v1/audits", json={"run": PRIVATE}, headers=bearer),
        client.post("/mcp", json=call, headers=bearer),
    ]


@pytest.mark.parametrize("failing", [False, True])
def test_no_log_error_or_metric_holds_a_secret_and_no_log_a_text(
    start_service: StartService,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quiet_loggers: None,
    failing: bool,
) -> None:
    """Also where the judge's server repeats the key that it was sent, as some do."""
    monkeypatch.setenv("JUDGE_KEY", KEY)

    def repeats_the_key(request: SeenRequest) -> Reply:
        said = f"wrong key {request.headers['authorization']} for {PRIVATE}"
        return error_reply(401, said)

    service = start_service(
        repeats_the_key if failing else adds_up,
        tokens=(Token("ci", SECRET),),
        offer={"api_key_env": "JUDGE_KEY"},
    )
    configure_logs(service.config)
    answers = barrage(service)
    assert answers[0].status_code == (502 if failing else 200)
    metrics = service.client.get("/metrics", headers={"Authorization": f"Bearer {SECRET}"})
    assert metrics.status_code == 200
    service.stop()
    log = capsys.readouterr().err
    assert "POST /v1/compare" in log
    for secret in (KEY, SECRET):
        for answer in (*answers, metrics):
            assert secret not in answer.text
            assert secret not in str(answer.headers)
        assert secret not in log
    assert PRIVATE not in metrics.text
    assert PRIVATE not in log


def test_each_outcome_is_counted_apart(start_service: StartService) -> None:
    """win, tie, inconsistent, invalid and failed: five counters, none folded into another."""
    from scripted import answer_json

    def judge(request: SeenRequest) -> Reply:
        prompt = request.prompt
        if "give a tie" in prompt:
            return chat_reply(answer_json("TIE", criteria=[("accuracy", "TIE")]))
        if "say the first" in prompt:
            return chat_reply(answer_json("A", criteria=[("accuracy", "A")]))
        if "say nothing" in prompt:
            return chat_reply("I would rather not.")
        if "fail" in prompt:
            return error_reply(401, "no")
        return adds_up(request)

    service = start_service(judge)
    for context, status in (
        (None, 200),
        ("give a tie", 200),
        ("say the first", 200),
        ("say nothing", 422),
        ("fail", 502),
    ):
        answer = service.client.post("/v1/compare", json=PAIR | {"context": context})
        assert answer.status_code == status, answer.text
    text = service.client.get("/metrics").text
    for outcome in ("win", "tie", "inconsistent", "invalid", "failed"):
        line = f'evenhand_comparisons_total{{judge="good",outcome="{outcome}"}} 1.0'
        assert line in text, outcome
    assert (
        'evenhand_comparison_failures_total{judge="good",kind="judge_authentication"} 1.0' in text
    )
    assert "evenhand_comparisons_in_flight 0.0" in text
    assert "evenhand_judge_calls_total" in text
