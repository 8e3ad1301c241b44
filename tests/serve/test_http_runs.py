"""Runs over the wire: started, followed, paged through, stopped and resumed."""

from __future__ import annotations

import base64
import gzip
import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenhand.serve.values import RunStatus
from http_service import PAIR, HttpService, StartService, problem, start_service
from run_data import adds_up, sums, wins_b
from scripted import answer_json
from servers import Reply, SeenRequest, Slow, chat_reply

__all__ = ["start_service"]

LINES = {"Content-Type": "application/x-ndjson"}
QUERY = {"criteria": "accuracy"}


def lines(rows: list[dict[str, Any]], *, end: str = "\n") -> bytes:
    return "".join(json.dumps(row) + end for row in rows).encode()


def start(
    service: HttpService, rows: list[dict[str, Any]], *, status: int = 202, **query: Any
) -> RunStatus:
    answer = service.client.post(
        "/v1/runs", params=QUERY | query, content=lines(rows), headers=LINES
    )
    return started(answer, status)


def started(answer: httpx.Response, status: int = 202) -> RunStatus:
    assert answer.status_code == status, answer.text
    found = RunStatus.model_validate(answer.json())
    assert answer.headers["location"] == f"/v1/runs/{found.id}"
    return found


def status_of(service: HttpService, run_id: str) -> RunStatus:
    return RunStatus.model_validate(service.client.get(f"/v1/runs/{run_id}").json())


def wait_for(
    service: HttpService, run_id: str, fact: Callable[[RunStatus], bool], *, within_s: float = 60
) -> RunStatus:
    deadline = time.monotonic() + within_s
    while not fact(found := status_of(service, run_id)):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def ended(service: HttpService, run_id: str) -> RunStatus:
    return wait_for(service, run_id, lambda run: run.at_rest)


def events_of(answer: httpx.Response) -> Iterator[dict[str, str]]:
    block: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            block[name] = value
        elif block:
            yield block
            block = {}


@pytest.fixture
def service(start_service: StartService) -> HttpService:
    return start_service(adds_up)


def test_a_run_in_one_random_order_takes_half_the_calls_and_says_so(service: HttpService) -> None:
    rows = sums(30)
    once = ended(service, start(service, rows, orders="random", bothOrders=0, seed=3).id)
    assert (once.calls, once.wins_b) == (30, wins_b(30))
    report = service.client.get(f"/v1/runs/{once.id}/report").json()["conclusions"]
    (claim,) = report["conclusions"]
    assert claim["winRate"]["drawnOrder"] == 30
    assert "30 of 30 pairs were judged in one random order." in claim["sentence"]
    # The same pairs in both orders are another run, which asks only the other half.
    both = ended(service, start(service, rows).id)
    assert (both.id != once.id, both.calls) == (True, 30)


class Gate:
    """A judge that answers so many calls at once, and others slowly until it is opened."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    def __call__(self, request: SeenRequest) -> Reply | Slow:
        if request.count <= self._calls or self._open.is_set():
            return adds_up(request)
        return Slow(0.3, adds_up(request))


def test_lines_are_judged_in_the_background(start_service: StartService, address: str) -> None:
    service = start_service(adds_up, store=address)
    begun = start(service, sums(12), name="twelve")
    assert (begun.name, begun.pairs, begun.judges) == ("twelve", 12, ("good",))
    run = ended(service, begun.id)
    assert (run.state, run.done, run.wins_a, run.wins_b) == ("finished", 12, 12 - wins_b(12), 4)
    assert (run.pending, run.calls) == (0, 24)
    assert service.client.get("/v1/runs/twelve").json()["id"] == begun.id


def test_same_data_find_the_same_run(service: HttpService) -> None:
    first = start(service, sums(3))
    ended(service, first.id)
    again = start(service, sums(3), status=200)
    assert again.id == first.id
    assert service.judge is not None
    assert len(service.judge.requests) == 6


def test_pairs_as_json_with_their_options_beside_them(service: HttpService) -> None:
    body = {"pairs": sums(2), "criteria": ["accuracy"], "judges": ["good"], "name": "two"}
    begun = started(service.client.post("/v1/runs", json=body))
    assert (begun.name, begun.pairs) == ("two", 2)
    assert ended(service, begun.id).state == "finished"


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.jsonl.gz", "pairs.json"])
def test_file_of_any_format_is_read_by_its_ending(service: HttpService, name: str) -> None:
    rows = sums(2)
    table = "id,prompt,response_a,response_b\n" + "".join(
        ",".join(json.dumps(value) for value in row.values()) + "\n" for row in rows
    )
    content = {
        "pairs.csv": table.encode(),
        "pairs.jsonl.gz": gzip.compress(lines(rows)),
        "pairs.json": json.dumps(rows).encode(),
    }[name]
    files = {"file": (name, content, "application/octet-stream")}
    begun = started(service.client.post("/v1/runs", params=QUERY, files=files))
    assert begun.pairs == 2


def test_gzipped_lines_marks_and_line_ends_of_windows_do_no_harm(service: HttpService) -> None:
    content = gzip.compress(b"\xef\xbb\xbf" + lines(sums(3), end="\r\n\r\n"))
    headers = LINES | {"Content-Encoding": "gzip"}
    answer = service.client.post("/v1/runs", params=QUERY, content=content, headers=headers)
    assert started(answer).pairs == 3


def test_small_upload_that_unpacks_to_a_large_one_is_refused(start_service: StartService) -> None:
    service = start_service(adds_up, upload_bytes=100_000)
    content = gzip.compress(b"\n" * 10_000_000)
    headers = LINES | {"Content-Encoding": "gzip"}
    answer = service.client.post("/v1/runs", params=QUERY, content=content, headers=headers)
    problem(answer, 413, "too_large")


def test_small_parquet_that_becomes_a_large_store_is_refused(start_service: StartService) -> None:
    """A text of 100,000 characters and 20 references to it: 2 MB, of 1 MB at most."""
    service = start_service(adds_up, upload_bytes=1_000_000)
    arrow = import_module("pyarrow")
    text = arrow.DictionaryArray.from_arrays(
        arrow.array([0] * 20, arrow.int32()), arrow.array(["p" * 100_000])
    )
    sink = io.BytesIO()
    columns = {"prompt": text, "responseA": ["a"] * 20, "responseB": ["b"] * 20}
    import_module("pyarrow.parquet").write_table(arrow.table(columns), sink)
    assert len(sink.getvalue()) < 20_000
    files = {"file": ("pairs.parquet", sink.getvalue(), "application/octet-stream")}
    answer = service.client.post("/v1/runs", params=QUERY, files=files)
    problem(answer, 413, "too_large")
    assert service.client.get("/v1/runs").json()["runs"] == []


@pytest.mark.parametrize(
    ("content", "media_type", "status", "kind", "message"),
    [
        (b"", "application/x-ndjson", 422, "data", "has no rows"),
        (b"\r\n", "application/x-ndjson", 422, "data", "has no rows"),
        (b"not json\n", "application/x-ndjson", 422, "data", "row 1: the line is not JSON"),
        (
            b'{"prompt": "p"}\n',
            "application/x-ndjson",
            422,
            "data",
            "row 1: no column for response_a",
        ),
        (lines(sums(1)), "text/csv", 415, "wrong_media_type", "send pairs as application/x-ndjson"),
        (b"{}", "application/json", 422, "input", "pairs is missing"),
    ],
)
def test_upload_that_is_no_pairs_is_refused(
    service: HttpService, content: bytes, media_type: str, status: int, kind: str, message: str
) -> None:
    query = {} if media_type == "application/json" else QUERY
    answer = service.client.post(
        "/v1/runs", params=query, content=content, headers={"Content-Type": media_type}
    )
    assert message in problem(answer, status, kind).detail
    assert service.client.get("/v1/runs").json()["runs"] == []


def test_unknown_field_and_misplaced_option_are_named(service: HttpService) -> None:
    body = {"pairs": sums(1), "criteria": ["accuracy"], "path": "/etc/passwd"}
    told = problem(service.client.post("/v1/runs", json=body), 422, "input")
    assert told.detail.startswith("path is not a known field; the fields are judge, judges")
    del body["path"]
    answer = service.client.post("/v1/runs?name=x", json=body)
    assert "put it in the body" in problem(answer, 422, "input").detail


def test_run_started_again_under_its_key_is_one_run(service: HttpService) -> None:
    headers = LINES | {"Idempotency-Key": "k"}
    content = lines(sums(3))
    first, again = (
        service.client.post("/v1/runs", params=QUERY, content=content, headers=headers)
        for _ in range(2)
    )
    assert started(first).id == started(again).id
    assert again.headers["idempotency-replayed"] == "true"
    other = service.client.post("/v1/runs", params=QUERY, content=content + b"\n", headers=headers)
    problem(other, 422, "input")


def test_runs_are_listed_newest_first_page_by_page(service: HttpService) -> None:
    begun = [start(service, sums(1, begin=10 * n)).id for n in range(1, 6)]
    for run_id in begun:
        ended(service, run_id)
    listed: list[str] = []
    query: dict[str, Any] = {"limit": 2, "state": "finished"}
    while True:
        page = service.client.get("/v1/runs", params=query).raise_for_status().json()
        assert len(page["runs"]) <= 2
        listed += [run["id"] for run in page["runs"]]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert listed == begun[::-1]
    assert service.client.get("/v1/runs?state=failed").json() == {"runs": [], "next": None}


@pytest.mark.parametrize("run_id", ["7", "nope", "-1", "1e3", "%00", "9" * 300, "a%0Ab", "☃"])
def test_run_that_is_not_there(service: HttpService, run_id: str) -> None:
    for method, path in (
        ("GET", ""),
        ("GET", "/events"),
        ("GET", "/verdicts"),
        ("GET", "/report"),
        ("POST", "/cancel"),
        ("POST", "/resume"),
    ):
        problem(service.client.request(method, f"/v1/runs/{run_id}{path}"), 404, "not_found")


def test_verdicts_come_page_by_page_and_by_filter(service: HttpService) -> None:
    run = start(service, sums(9))
    ended(service, run.id)
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 4}
    while True:
        page = service.client.get(f"/v1/runs/{run.id}/verdicts", params=query).json()
        assert len(page["verdicts"]) <= 4
        found += page["verdicts"]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert [line["id"] for line in found] == [f"sum-{n}" for n in range(1, 10)]
    won_by_b = service.client.get(f"/v1/runs/{run.id}/verdicts?winner=B&outcome=win").json()
    assert [line["id"] for line in won_by_b["verdicts"]] == ["sum-3", "sum-6", "sum-9"]
    (whole,) = service.client.get(f"/v1/runs/{run.id}/verdicts?full=true&limit=1").json()[
        "verdicts"
    ]
    assert whole["prompt"] == "What is 1 plus 1?"
    assert whole["verdict"]["winner"] == "A"
    told = problem(service.client.get(f"/v1/runs/{run.id}/verdicts?winner=C"), 422, "input")
    assert told.detail == "the query parameter winner is 'C'; it should be 'A', 'B' or 'TIE'"
    problem(service.client.get(f"/v1/runs/{run.id}/verdicts?cursor=x"), 422, "input")


def test_report_ranking_and_audit_of_a_run(service: HttpService) -> None:
    rows = [
        row | {"model_a": "old", "model_b": "new", "label": "A" if n % 3 else "B"}
        for n, row in enumerate(sums(9), start=1)
    ]
    run = start(service, rows)
    ended(service, run.id)
    report = service.client.get(f"/v1/runs/{run.id}/report?side=A").raise_for_status().json()
    (conclusion,) = report["conclusions"]["conclusions"]
    assert conclusion["side"] == "A"
    got = service.client.get("/v1/rank", params={"runs": run.id}).raise_for_status().json()
    posted = service.client.post("/v1/rank", json={"runs": [run.id]}).raise_for_status().json()
    assert got == posted
    asked: dict[str, Any] = {"run": run.id, "minAccuracy": 0.9}
    audit = service.client.post("/v1/audits", json=asked).raise_for_status().json()
    assert audit == service.client.get("/v1/audits", params=asked).json()
    assert audit["accuracy"]["value"] == 1.0
    told = problem(service.client.post("/v1/rank", json={"run": "1"}), 422, "input")
    assert "runs is missing" in told.detail or "run is not a known field" in told.detail


@pytest.mark.slow
def test_run_is_stopped_and_goes_on(start_service: StartService) -> None:
    gate = Gate(calls=6)
    service = start_service(gate)
    run = start(service, sums(1000))
    wait_for(service, run.id, lambda found: found.done >= 1)
    stopped = service.client.post(f"/v1/runs/{run.id}/cancel")
    assert stopped.status_code == 200
    rest = ended(service, run.id)
    assert rest.state == "stopped"
    assert rest.pending > 0
    gate.open()
    assert service.client.post(f"/v1/runs/{run.id}/resume", json={}).status_code == 200
    done = wait_for(service, run.id, lambda found: found.state == "finished")
    assert (done.done, done.wins_b) == (1000, wins_b(1000))
    # A run at rest stays as it is.
    assert service.client.post(f"/v1/runs/{run.id}/cancel").json()["state"] == "finished"
    told = problem(service.client.post(f"/v1/runs/{run.id}/cancel", json={"x": 1}), 422, "input")
    assert "takes no body" in told.detail


def test_events_tell_the_run_to_its_end(start_service: StartService) -> None:
    gate = Gate(calls=6)
    service = start_service(gate)
    run = start(service, sums(10))
    with service.client.stream("GET", f"/v1/runs/{run.id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = []
        for block in events_of(answer):
            told.append(block)
            gate.open()
    events = [block["event"] for block in told if "event" in block]
    assert set(events[:-1]) == {"progress"}
    assert events[-1] == "end"
    last = RunStatus.model_validate_json(told[-1]["data"])
    assert (last.state, last.done) == ("finished", 10)
    counts = [json.loads(block["data"])["done"] for block in told if "data" in block]
    assert counts == sorted(counts)
    # Whoever comes back is told no more.
    headers = {"Last-Event-ID": told[-1]["id"]}
    again = service.client.get(f"/v1/runs/{run.id}/events", headers=headers)
    assert again.status_code == 204
    assert service.client.head(f"/v1/runs/{run.id}/events").status_code == 200


def test_follower_that_goes_away_leaves_nothing_behind(start_service: StartService) -> None:
    gate = Gate(calls=0)
    service = start_service(gate)
    run = start(service, sums(1000))
    door = service.app.state.policy
    with service.client.stream("GET", f"/v1/runs/{run.id}/events") as answer:
        told = events_of(answer)
        next(told)
        assert len(door.streams) == 1
    deadline = time.monotonic() + 10
    while door.streams:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gate.open()


@pytest.mark.slow
def test_server_that_ends_ends_its_streams(start_service: StartService) -> None:
    gate = Gate(calls=0)
    service = start_service(gate)
    run = start(service, sums(500))
    with service.client.stream("GET", f"/v1/runs/{run.id}/events") as answer:
        told = events_of(answer)
        next(told)
        stopping = threading.Thread(target=service.stop)
        stopping.start()
        events = [block.get("event") for block in told]
        stopping.join(30)
    assert "end" not in events
    gate.open()
    service.start()
    assert ended(service, run.id).done == 500


def test_event_streams_are_bounded_and_leave_room_for_others(start_service: StartService) -> None:
    service = start_service(lambda request: Slow(1.0, adds_up(request)), event_streams=2)
    run_id = service.client.post(
        "/v1/runs", json={"pairs": sums(400), "criteria": ["accuracy"]}
    ).json()["id"]
    path = f"/v1/runs/{run_id}/events"
    try:
        with service.client.stream("GET", path) as one, service.client.stream("GET", path) as two:
            reading = [each.iter_raw() for each in (one, two)]  # held: let go, they would close
            assert [next(each)[:6] for each in reading] == [b"retry:", b"retry:"]
            refused = service.client.get(path)
            assert refused.status_code == 429
            assert "2 event streams are open" in refused.json()["detail"]
            assert service.client.get(f"/v1/runs/{run_id}").status_code == 200
    finally:
        service.client.post(f"/v1/runs/{run_id}/cancel")


def test_a_key_that_the_judge_echoes_comes_back_to_no_client_and_into_no_store(
    start_service: StartService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = "sk-of-the-operator-0123456789"
    monkeypatch.setenv("OPERATORS_KEY", key)

    def echoes(request: SeenRequest) -> Reply:
        sent = request.headers["authorization"]
        assert sent == f"Bearer {key}"
        answer = json.loads(answer_json("A", confidence=0.9, criteria=[("accuracy", "A")]))
        answer["result"]["reasoning"] = f"I was sent {sent}."
        answer["comparison"][0]["reasoning"] = base64.b64encode(sent.encode()).decode()
        return chat_reply(json.dumps(answer), model=sent, request_id=sent)

    service = start_service(echoes, offer={"api_key_env": "OPERATORS_KEY"})
    answer = service.client.post("/v1/compare", json=PAIR)
    assert answer.status_code == 200
    assert "I was sent Bearer ***." in answer.text
    run = ended(service, start(service, sums(2)).id)
    shown = [
        answer.text,
        *(service.client.get(f"{path}").text for path in (f"/v1/runs/{run.id}", f"/runs/{run.id}")),
        service.client.get(f"/v1/runs/{run.id}/pairs").text,
    ]
    service.stop()
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.glob("service.db*")]
    service.start()
    assert len(shown) >= 5
    for text in shown:
        assert key not in text
        # What stands in base64 for the key's middle, at each of the three places it may begin.
        for before in ("", "x", "xx"):
            assert base64.b64encode(f"{before}{key}".encode()).decode()[4:-4] not in text


def test_two_runs_are_compared(start_service: StartService) -> None:
    service = start_service(adds_up)
    runs = []
    for criteria in ("accuracy", "clarity"):
        run = start(service, sums(8), criteria=criteria)
        runs.append(wait_for(service, run.id, lambda found: found.at_rest).id)
    asked: dict[str, Any] = {"against": runs[0], "fromOutcome": "A", "limit": 2}
    found = service.client.get(f"/v1/runs/{runs[1]}/diff", params=asked).raise_for_status().json()
    # The judge knows sums by either criterion.
    assert (found["change"]["pairs"], found["change"]["changed"]) == (8, 0)
    assert found["matched"]["texts"] == 8
    assert found["store"] == "this server"
    refused: list[tuple[dict[str, str], int]] = [
        ({"against": "nobody"}, 404),
        ({}, 422),
        ({"against": runs[1]}, 422),
    ]
    for bad, status in refused:
        answer = service.client.get(f"/v1/runs/{runs[1]}/diff", params=bad)
        assert answer.status_code == status, answer.text


def test_pairs_are_flagged_filtered_by_and_unflagged(start_service: StartService) -> None:
    service = start_service(adds_up)
    run = start(service, sums(4), name="flags")
    wait_for(service, run.id, lambda found: found.at_rest)
    flags = f"/v1/runs/{run.id}/flags"
    note = {"pair": "2", "comment": "<b>sic</b>"}
    told = service.client.post(flags, json=note).raise_for_status().json()
    assert (told["number"], told["flagged"], told["comment"]) == (2, True, "<b>sic</b>")
    asked = {"flagged": True, "full": True}
    found = service.client.get(f"/v1/runs/{run.id}/verdicts", params=asked).json()["verdicts"]
    assert [(row["id"], row["comment"]) for row in found] == [(told["id"], "<b>sic</b>")]
    gone = service.client.request("DELETE", flags, params={"pair": told["id"]})
    assert (gone.status_code, gone.json()["flagged"]) == (200, False)
    for body in ({}, {"pair": "99"}, {"pair": "2", "comment": "x" * 4001}, {"pair": 2}):
        problem(service.client.post(flags, json=body), 422, "input")
    problem(service.client.post("/v1/runs/none/flags", json=note), 404, "not_found")
