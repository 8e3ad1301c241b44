"""Whatever is sent: no 500, and no answer that the document does not foresee."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from evenhand.serve.app import make_app
from evenhand.serve.config import ServerConfig
from http_service import HttpService, judge_offer
from run_data import sums
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, chat_reply, forget_proxies

EXAMPLES = 30
CHECKS: list[Any] = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.missing_required_header,
    checks.unsupported_method,
]


OPERATIONS = [
    operation
    for item in make_app(ServerConfig()).openapi()["paths"].values()
    for operation in item.values()
]


def _takes_something(operation: Any) -> bool:
    sent = [each for each in operation["parameters"] if each["in"] != "header"]
    return bool(sent or "requestBody" in operation)


def ties_all(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("TIE"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    """One for all: what one request leaves behind, others meet."""
    with pytest.MonkeyPatch.context() as monkeypatch, JudgeServer(ties_all) as judge:
        forget_proxies(monkeypatch)
        offer = judge_offer("good", "openai:good-1", base_url=judge.url)
        store = str(tmp_path_factory.mktemp("service") / "service.db")
        served = HttpService(ServerConfig(judges=(offer,), store=store, port=0))
        served.start()
        yield served
        served.close()


@pytest.fixture(scope="module")
def run_id(service: HttpService) -> str:
    return finished_run(service)


def finished_run(service: HttpService) -> str:
    rows = [row | {"modelA": "x", "modelB": "y", "label": "A"} for row in sums(3)]
    body = {"pairs": rows, "criteria": ["accuracy"]}
    run_id: str = service.client.post("/v1/runs", json=body).json()["id"]
    while service.client.get(f"/v1/runs/{run_id}").json()["state"] != "finished":
        time.sleep(0.05)
    return run_id


@pytest.mark.filterwarnings("default")  # of the tool's own, on what it makes up
@pytest.mark.parametrize(
    ("mode", "name"),
    [
        pytest.param(mode, each["operationId"], id=f"{mode.value}-{each['operationId']}")
        for mode in GenerationMode
        for each in OPERATIONS
        if mode.is_positive or _takes_something(each)  # else there is nothing to get wrong
    ],
)
def test_no_failure_and_no_answer_outside_the_document(
    service: HttpService, run_id: str, mode: GenerationMode, name: str
) -> None:
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    operation = schema.find_operation_by_id(name)
    cases: st.SearchStrategy[Any] = operation.as_strategy(generation_mode=mode)
    # By chance alone none would name a run that is there.
    real: dict[str, Any] = {
        "rankRuns": {"query": {"runs": [run_id]}},
        "auditRun": {"query": {"run": run_id}},
    }
    if "{id}" in operation.path:
        real[name] = {"path_parameters": {"id": run_id}}
    if name in real:
        cases |= operation.as_strategy(generation_mode=mode, **real[name])

    @given(case=cases)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def hold(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=30)

    hold()
    assert service.client.get("/healthz").status_code == 200
