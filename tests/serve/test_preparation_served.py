"""Preparation over HTTP and on pages: asked for by the client, or as the judge is offered."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from evenhand.report.records import read_run
from evenhand.store import open_store
from http_service import PAIR, HttpService, StartService, start_service
from run_data import adds_up, sums
from servers import Reply, SeenRequest, chat_reply

__all__ = ["start_service"]


def writes_and_adds(request: SeenRequest) -> Reply:
    """Writes what it is asked for, and judges sums."""
    system = request.messages[0]["content"]
    if "Write the few questions" in system:
        return chat_reply("1. Is the sum <right>?")
    if "You analyse one response" in system:
        return chat_reply("It counts.")
    return adds_up(request)


@pytest.fixture
def service(start_service: StartService) -> HttpService:
    return start_service(writes_and_adds)


def asked(service: HttpService) -> list[str]:
    assert service.judge is not None
    return [request.messages[0]["content"][:30] for request in service.judge.requests]


def test_a_client_asks_for_what_is_written_before_the_judging(service: HttpService) -> None:
    answer = service.client.post("/v1/compare?prepare=metrics,analysis", json=PAIR).json()
    assert answer["winner"] == "A"
    told = [(each["kind"], each["response"]) for each in answer["metadata"]["artefacts"]]
    assert told == [("metrics", None), ("analysis", "A"), ("analysis", "B")]
    # Three texts and two passes, each of 11 tokens in and 7 out.
    assert answer["metadata"]["usage"]["inputTokens"] == 5 * 11
    assert len(asked(service)) == 5
    assert "prepared" in answer["metadata"]["promptVersion"]


def test_without_asking_nothing_is_written(service: HttpService) -> None:
    answer = service.client.post("/v1/compare", json=PAIR).json()
    assert "artefacts" not in answer["metadata"]
    assert len(asked(service)) == 2


@pytest.mark.parametrize("given", ["poetry", "metrics,poetry", "&prepare=", "metrics&prepare="])
def test_what_cannot_be_prepared_is_refused(service: HttpService, given: str) -> None:
    answer = service.client.post(f"/v1/compare?prepare={given}", json=PAIR)
    assert answer.status_code == 422
    assert "prepare" in answer.json()["detail"]


def finished(service: HttpService, run: str) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        status: dict[str, Any] = service.client.get(f"/v1/runs/{run}").json()
        if status["state"] in ("finished", "failed", "stopped"):
            return status
        time.sleep(0.05)
    raise AssertionError("the run did not end")


def test_a_run_prepares_and_its_pairs_show_what_was_written(service: HttpService) -> None:
    rows = [each | {"criteria": ["accuracy"]} for each in sums(3)]
    body = {"pairs": rows, "prepare": ["metrics"], "name": "prepared"}
    started = service.client.post("/v1/runs", json=body)
    assert started.status_code in (201, 202), started.text
    status = finished(service, started.json()["id"])
    assert (status["state"], status["winsA"], status["winsB"]) == ("finished", 2, 1)
    # One text a prompt, two passes a pair.
    assert status["calls"] == 3 + 6
    page = service.client.get(f"/runs/{status['id']}/pairs/1").text
    assert "1. Is the sum &lt;right&gt;?" in page
    # What is shared is counted once, with the run: rows have their passes' own.
    with open_store(service.config.store) as store:
        assert [row.input_tokens for row in read_run(store, "prepared")] == [22, 22, 22]


def test_forms_offer_what_may_be_prepared(service: HttpService) -> None:
    for path in ("/new", "/try"):
        page = service.client.get(path).text
        assert '<option value="metrics,reference">' in page
    form = {
        "prompt": PAIR["prompt"],
        "responseA": PAIR["response_a"],
        "responseB": PAIR["response_b"],
        "criteria": "accuracy",
        "prepare": "metrics",
        "allowTie": "yes",
        "swapPositions": "yes",
    }
    (csrf,) = re.findall(r'name="csrf" value="([^"]*)"', service.client.get("/try").text) or [""]
    sent = {**form, "csrf": csrf}
    page = service.client.post("/try", data=sent, headers={"Origin": service.url}).text
    assert "1. Is the sum &lt;right&gt;?" in page
    assert '<option value="metrics" selected>' in page
