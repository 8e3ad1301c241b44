"""Idempotency-Key: what is sent again is done once, whoever asks and however often."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from evenhand.serve.config import Token
from http_service import PAIR, HttpService, StartService, problem, start_service
from run_data import adds_up
from servers import JudgeServer, Slow, error_reply, in_turn

__all__ = ["start_service"]

KEY = {"Idempotency-Key": "night-7"}
REPLAYED = "idempotency-replayed"


def compare(service: HttpService, **more: Any) -> httpx.Response:
    return service.client.post("/v1/compare", json=PAIR, **({"headers": KEY} | more))


def judge_of(service: HttpService) -> JudgeServer:
    assert service.judge is not None
    return service.judge


def test_same_request_gets_the_same_answer(start_service: StartService, address: str) -> None:
    service = start_service(adds_up, store=address)
    first, again = compare(service), compare(service)
    assert first.status_code == again.status_code == 200
    assert again.content == first.content
    assert again.headers["content-type"] == first.headers["content-type"]
    assert REPLAYED not in first.headers
    assert again.headers[REPLAYED] == "true"
    assert len(judge_of(service).requests) == 2  # the two passes of one comparison


def test_answer_outlives_the_server(start_service: StartService) -> None:
    service = start_service(adds_up)
    first = compare(service)
    service.stop()
    service.start()
    assert compare(service).content == first.content
    assert len(judge_of(service).requests) == 2


def test_key_of_another_request_is_refused(start_service: StartService) -> None:
    service = start_service(adds_up)
    assert compare(service).status_code == 200
    for other in (
        service.client.post("/v1/compare", json=PAIR | {"id": "x"}, headers=KEY),
        service.client.post("/v1/compare?judge=good", json=PAIR, headers=KEY),
        service.client.post("/v1/rank", json=PAIR, headers=KEY),
    ):
        told = problem(other, 422, "input")
        assert "'night-7' was used for another request" in told.detail


def test_of_many_at_once_one_is_done(start_service: StartService, address: str) -> None:
    service = start_service(lambda request: Slow(0.3, adds_up(request)), store=address)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: compare(service), range(8)))
    done = [answer for answer in answers if answer.status_code == 200]
    assert done
    for answer in answers:
        if answer.status_code != 200:
            assert "still running" in problem(answer, 409, "conflict").detail
            assert answer.headers["retry-after"] == "1"
    assert len({answer.content for answer in done}) == 1
    assert len(judge_of(service).requests) == 2


def test_refusal_is_an_answer_too(start_service: StartService) -> None:
    service = start_service(adds_up)
    wrong = PAIR | {"criteria": []}
    first = service.client.post("/v1/compare", json=wrong, headers=KEY)
    again = service.client.post("/v1/compare", json=wrong, headers=KEY)
    assert problem(first, 422, "input") == problem(again, 422, "input")
    assert again.headers[REPLAYED] == "true"


def test_failure_is_not_kept(start_service: StartService) -> None:
    failing, good = error_reply(500), adds_up
    fails = in_turn(failing, failing, failing)
    service = start_service(
        lambda request: fails(request) if request.count <= 2 else good(request),
        offer={"retries": 0},
    )
    problem(compare(service), 502, "judge_server_error")
    again = compare(service)
    assert again.status_code == 200
    assert REPLAYED not in again.headers


def test_keys_of_two_tokens_are_two_keys(start_service: StartService) -> None:
    tokens = (Token("one", "secret-1"), Token("two", "secret-2"))
    service = start_service(adds_up, tokens=tokens)
    for token in tokens:
        headers = KEY | {"Authorization": f"Bearer {token.secret}"}
        answer = compare(service, headers=headers)
        assert answer.status_code == 200
        assert REPLAYED not in answer.headers


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9"])
def test_key_that_is_none_is_refused(start_service: StartService, key: str) -> None:
    service = start_service(adds_up)
    headers = {"Idempotency-Key": key.encode("latin-1")}
    told = problem(compare(service, headers=headers), 422, "input")
    assert "give 1 to 255 printable ones" in told.detail
