"""`POST /v1/compare` over the wire: the contract's input, the contract's output."""

from __future__ import annotations

import gzip
import json
import socket
import threading

import httpx
import pytest
from jsonschema import Draft202012Validator

from evenhand import tools
from evenhand.contract import Verdict
from http_service import PAIR, HttpService, StartService, problem, start_service
from run_data import adds_up
from scripted import answer_json
from servers import Reply, SeenRequest, Slow, chat_reply, error_reply

__all__ = ["start_service"]

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def service(start_service: StartService) -> HttpService:
    return start_service(adds_up)


def test_answer_is_the_contracts_output(service: HttpService) -> None:
    answer = service.client.post("/v1/compare", json=PAIR)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    Draft202012Validator(tools.output_schema()).validate(answer.json())
    verdict = Verdict.model_validate(answer.json())
    assert (verdict.winner, verdict.outcome, verdict.metadata.id) == ("A", "win", "sum-1")
    assert answer.json()["positionConsistency"]["consistent"] is True


def test_exchanged_responses_get_the_mirrored_verdict(service: HttpService) -> None:
    mirrored = PAIR | {"response_a": PAIR["response_b"], "response_b": PAIR["response_a"]}
    there = service.client.post("/v1/compare", json=PAIR).json()
    back = service.client.post("/v1/compare", json=mirrored).json()
    assert (there["winner"], back["winner"]) == ("A", "B")
    assert there["comparison"][0]["aStrength"] == back["comparison"][0]["bStrength"].replace(
        "Response B", "Response A"
    )
    # compare(A, B)'s first prompt is compare(B, A)'s second, byte for byte.
    assert service.judge is not None
    prompts = [request.prompt for request in service.judge.requests]
    assert sorted(prompts[:2]) == sorted(prompts[2:])


def test_names_come_in_either_case(service: HttpService) -> None:
    camel = {
        "prompt": PAIR["prompt"],
        "responseA": PAIR["response_a"],
        "responseB": PAIR["response_b"],
        "criteria": ["accuracy"],
        "allowTie": False,
    }
    assert service.client.post("/v1/compare", json=camel).json()["winner"] == "A"


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\r\n\t ", b"\xef\xbb\xbf\r\n"])
def test_marks_and_line_ends_of_windows_do_no_harm(service: HttpService, before: bytes) -> None:
    body = before + json.dumps(PAIR, indent=1).replace("\n", "\r\n").encode() + b"\r\n"
    assert service.client.post("/v1/compare", content=body, headers=JSON).json()["winner"] == "A"
    charset = {"Content-Type": 'Application/JSON; Charset="UTF-8"'}
    assert service.client.post("/v1/compare", content=body, headers=charset).status_code == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is empty"),
        (b" \r\n", "the body is empty"),
        (b"{", "the body is not JSON in UTF-8"),
        (b'{"prompt": NaN}', "the body is not JSON in UTF-8"),
        (b"[" * 1_050, "the body is not JSON in UTF-8"),
        ('{"prompt": "é"}'.encode("latin-1"), "the body is not JSON in UTF-8"),
        ('{"prompt": "é"}'.encode("utf-16"), "the body is not JSON in UTF-8"),
        (b'{"prompt": "\\ud800"}', "the body is not JSON in UTF-8"),
        (b"[]", "a pair is a JSON object, not a list"),
        (b"null", "a pair is a JSON object, not null"),
        (b"{}", "prompt is missing"),
        (json.dumps(PAIR | {"criteria": []}).encode(), "criteria is empty"),
        (json.dumps(PAIR | {"criteria": "tone"}).encode(), "criteria must be a list such as"),
        (json.dumps(PAIR | {"allowTie": 1}).encode(), "allowTie must be true or false"),
        (json.dumps(PAIR | {"temperature": 1}).encode(), "temperature is not a known field"),
        (
            json.dumps(PAIR | {"responseA": "x"}).encode(),
            "response_a is also given as responseA; keep one",
        ),
    ],
)
def test_what_is_wrong_with_a_body_is_named(
    service: HttpService, body: bytes, message: str
) -> None:
    answer = service.client.post("/v1/compare", content=body, headers=JSON)
    assert message in problem(answer, 422, "input").detail


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"Content-Type": "text/plain"}, "application/json"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "application/json"),
        ({"Content-Type": "text/xml"}, "the body's content type is text/xml; send JSON"),
        ({"Content-Type": "application/json; charset=utf-16"}, "charset is utf-16; send UTF-8"),
        (JSON | {"Content-Encoding": "gzip"}, "content encoding is gzip; send it"),
    ],
)
def test_what_is_no_plain_json_is_refused_with_the_remedy(
    service: HttpService, headers: dict[str, str], message: str
) -> None:
    body = gzip.compress(json.dumps(PAIR).encode())
    answer = service.client.post("/v1/compare", content=body, headers=headers)
    assert message in problem(answer, 415, "wrong_media_type").detail


def test_judge_that_is_not_offered_is_refused(service: HttpService) -> None:
    answer = service.client.post("/v1/compare?judge=openai:gpt-4o", json=PAIR)
    assert "does not offer; it offers good" in problem(answer, 422, "input").detail


def test_body_beyond_the_limit_is_refused(start_service: StartService) -> None:
    service = start_service(adds_up, body_bytes=1000)
    answer = service.client.post("/v1/compare", json=PAIR | {"context": "x" * 1000})
    problem(answer, 413, "too_large")


@pytest.mark.parametrize(
    ("reply", "status", "kind"),
    [
        (error_reply(401), 502, "judge_authentication"),
        (error_reply(400, "no such model"), 502, "judge_rejected"),
        (chat_reply("I would rather not say."), 422, "invalid"),
    ],
)
def test_failure_of_the_judge_is_no_made_up_verdict(
    start_service: StartService, reply: Reply, status: int, kind: str
) -> None:
    service = start_service(lambda request: reply, offer={"retries": 0, "repairs": 0})
    told = problem(service.client.post("/v1/compare", json=PAIR), status, kind)
    assert told.metadata.outcome == "invalid"
    assert "winner" not in service.client.post("/v1/compare", json=PAIR).json()


def test_judge_that_is_asked_too_often_says_when_to_come_again(
    start_service: StartService,
) -> None:
    service = start_service(lambda request: error_reply(429), offer={"retries": 0})
    answer = service.client.post("/v1/compare", json=PAIR)
    assert problem(answer, 503, "judge_rate_limited").error.retryable
    assert int(answer.headers["retry-after"]) >= 1


def test_odd_characters_of_a_judge_come_through(start_service: StartService) -> None:
    odd = answer_json("A", reasoning="half of a pair: \ud83d, a null: \0, a line end: \u2028")

    def says_odd_things(request: SeenRequest) -> Reply:
        return chat_reply(json.dumps(json.loads(odd)))

    service = start_service(says_odd_things)
    answer = service.client.post("/v1/compare", json=PAIR)
    assert answer.status_code in (200, 422)  # a verdict, or none; never a failure of the server
    assert answer.json()["success"] is (answer.status_code == 200)


def send_and_leave(service: HttpService, headers: dict[str, str]) -> None:
    """Ask for a comparison, and hang up once the judge has been asked."""
    body = json.dumps(PAIR).encode()
    lines = {"Host": "127.0.0.1", **JSON, "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    url = httpx.URL(service.url)
    judge = service.judge
    assert judge is not None
    with socket.create_connection((url.host, url.port)) as connection:
        connection.sendall(f"POST /v1/compare HTTP/1.1\r\n{head}\r\n".encode() + body)
        assert judge.wait_until(lambda: len(judge.requests) >= 2)


def test_client_that_goes_away_ends_its_comparison(start_service: StartService) -> None:
    service = start_service(lambda request: Slow(60, adds_up(request)))
    send_and_leave(service, {})
    # Its calls are broken off: nobody waits a minute for them.
    assert service.judge is not None
    assert service.judge.wait_until_idle()


def test_comparison_with_a_key_goes_on_without_its_client(start_service: StartService) -> None:
    let_go = threading.Event()

    def waits(request: SeenRequest) -> Slow | Reply:
        return adds_up(request) if let_go.is_set() else Slow(1, adds_up(request))

    service = start_service(waits)
    send_and_leave(service, {"Idempotency-Key": "k"})
    let_go.set()
    key = {"Idempotency-Key": "k", **JSON}
    judge = service.judge
    assert judge is not None
    while True:
        answer = service.client.post("/v1/compare", content=json.dumps(PAIR), headers=key)
        if answer.status_code != 409:
            break
        assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["winner"] == "A"
    assert answer.headers["idempotency-replayed"] == "true"
    assert len(judge.requests) == 2


def test_a_key_that_stands_twice_is_refused_by_name(service: HttpService) -> None:
    body = b'{"prompt":"p","responseA":"a","responseA":"b","responseB":"b","criteria":["x"]}'
    answer = service.client.post(
        "/v1/compare", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert "the key 'responseA' appears twice in one object" in answer.json()["detail"]


def test_a_body_of_values_alone_is_refused_before_it_is_parsed(service: HttpService) -> None:
    body = b"[" + b"[]," * 1_000_000 + b"[]]"
    answer = service.client.post(
        "/v1/compare", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    assert "more than 1,100 values" in answer.json()["detail"]


def test_identical_responses_are_a_tie_by_rule_without_a_call(service: HttpService) -> None:
    same = PAIR | {"response_b": PAIR["response_a"]}
    answer = service.client.post("/v1/compare", json=same).json()
    assert (answer["winner"], answer["confidence"]) == ("TIE", None)
    assert answer["metadata"]["decidedBy"] == "identical"
    assert service.judge is not None
    assert service.judge.requests == []
