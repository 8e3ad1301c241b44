"""Runs of prompts: two offered models answer, the judge compares, and nothing of it is lost."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from evenhand.judges.prices import Price
from evenhand.serve.values import RunStatus
from evenhand.store import open_store
from http_service import HttpService, StartService, problem, start_service
from page_visits import Visitor, seen
from run_data import adds_up, wins_b
from servers import Reply, SeenRequest, chat_reply, error_reply

__all__ = ["start_service"]

_ASKED = re.compile(r"What is (\d+) plus")
OFFERS = ("good", "old", "new")


def prompts(count: int, *, begin: int = 1) -> list[dict[str, Any]]:
    return [
        {"id": f"sum-{n}", "prompt": f"What is {n} plus {n}?"} for n in range(begin, begin + count)
    ]


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def answers(request: SeenRequest) -> Reply:
    """The model `old` is right but for every third sum, where `new` is; `good` judges."""
    model = request.json["model"].removesuffix("-1")
    if model == "good":
        return adds_up(request)
    asked = _ASKED.search(request.prompt)
    assert asked is not None
    n = int(asked[1])
    wrong = (n % 3 == 0) == (model == "old")
    return chat_reply(f"It is {2 * n + wrong}, by counting.")


def start(service: HttpService, rows: list[dict[str, Any]] | bytes, **query: Any) -> httpx.Response:
    content = rows if isinstance(rows, bytes) else lines(rows)
    wanted = {"criteria": "accuracy", "modelA": "old", "modelB": "new"} | query
    return service.client.post(
        "/v1/runs", params=wanted, files={"file": ("prompts.jsonl", content)}
    )


def status_of(service: HttpService, run_id: str) -> RunStatus:
    return RunStatus.model_validate(service.client.get(f"/v1/runs/{run_id}").json())


def wait_for(
    service: HttpService, answer: httpx.Response, fact: Callable[[RunStatus], bool]
) -> RunStatus:
    assert answer.status_code in (200, 202), answer.text
    deadline = time.monotonic() + 60
    while not fact(found := status_of(service, answer.json()["id"])):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


def ended(service: HttpService, answer: httpx.Response) -> RunStatus:
    return wait_for(service, answer, lambda run: run.at_rest)


def asked_of(service: HttpService) -> Counter[str]:
    """Requests by model."""
    assert service.judge is not None
    return Counter(each.json["model"].removesuffix("-1") for each in service.judge.requests)


@pytest.fixture
def service(start_service: StartService) -> HttpService:
    return start_service(answers, judges=OFFERS)


class Gate:
    """Answers so many requests of models, and no more until it is opened."""

    def __init__(self, answered: int) -> None:
        self._left = answered
        self._lock = threading.Lock()
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    def __call__(self, request: SeenRequest) -> Reply:
        if not request.json["model"].startswith("good"):
            with self._lock:
                self._left -= 1
                waits = self._left < 0
            if waits:
                self._open.wait(30)
        return answers(request)


def test_two_models_answer_and_the_judge_compares(
    start_service: StartService, address: str
) -> None:
    service = start_service(answers, judges=OFFERS, store=address)
    status = ended(service, start(service, prompts(12), name="twelve"))
    assert (status.state, status.name, status.judges) == ("finished", "twelve", ("good",))
    assert (status.pairs, status.wins_a, status.wins_b) == (12, 12 - wins_b(12), wins_b(12))
    # Each model once for each prompt, the judge in both orders.
    assert asked_of(service) == {"old": 12, "new": 12, "good": 24}
    assert (status.calls, status.answers) == (48, None)
    verdicts = service.client.get(f"/v1/runs/{status.id}/verdicts?full=true").json()["verdicts"]
    assert {(each["modelA"], each["modelB"]) for each in verdicts} == {("old", "new")}
    again = start(service, prompts(12))
    assert (again.status_code, again.json()["id"]) == (200, status.id)
    assert sum(asked_of(service).values()) == 48
    with open_store(address) as store:
        assert store.jobs.prompts(int(status.id)) is None  # their pairs are there


def test_one_model_with_two_system_prompts_is_two_sides(service: HttpService) -> None:
    sides = {
        "modelA": "old",
        "modelB": "old",
        "systemB": "Be brief.",
        "templateA": "Q: {{ prompt }}",
    }
    status = ended(service, start(service, prompts(3), **sides))
    assert status.state == "finished"
    assert service.judge is not None
    sent = [each.messages for each in service.judge.requests if each.json["model"] == "old-1"]
    assert sorted(len(each) for each in sent) == [1, 1, 1, 2, 2, 2]
    assert {each[0]["content"] for each in sent if len(each) == 2} == {"Be brief."}
    assert all(each[0]["content"].startswith("Q: What") for each in sent if len(each) == 1)
    verdict = service.client.get(f"/v1/runs/{status.id}/verdicts").json()["verdicts"][0]
    assert (verdict["modelA"], verdict["modelB"]) == ("old (A)", "old (B)")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"modelA": "openai:gpt-5"}, "does not offer"),
        ({"modelB": "http://127.0.0.1:1/v1"}, "does not offer"),
        ({"modelB": "/etc/passwd"}, "does not offer"),
        ({"modelB": "command:id"}, "does not offer"),
        ({"modelA": "new"}, "both sides are new"),
        ({"modelA": ""}, "modelA is '', which this server does not offer"),
        ({"templateA": "no place for it"}, "the template of old has no {{ prompt }}"),
        ({"baseUrlA": "http://127.0.0.1:1"}, "baseUrlA"),
        ({"judge": "nobody"}, "does not offer"),
        ({"criteria": []}, "criteria"),
        ({"maxCost": "1"}, "the price of openai:good-1 is unknown"),
    ],
)
def test_a_client_names_what_the_server_offers_and_nothing_else(
    query: dict[str, str], told: str, service: HttpService
) -> None:
    answer = start(service, prompts(2), **query)
    assert told in problem(answer, 422, answer.json()["error"]["kind"]).detail
    assert asked_of(service) == {}
    assert service.client.get("/v1/runs").json()["runs"] == []


@pytest.mark.parametrize("name", ["modelA", "modelB", "systemA", "templateB"])
def test_half_of_two_models_is_refused(name: str, service: HttpService) -> None:
    answer = service.client.post(
        "/v1/runs",
        params={"criteria": "accuracy", name: "old"},
        files={"file": ("prompts.jsonl", lines(prompts(2)))},
    )
    assert f"{name} needs both models" in problem(answer, 422, "input").detail


def test_a_judge_that_writes_nothing_is_no_model(start_service: StartService) -> None:
    service = start_service(answers, judges=OFFERS)
    offers = service.config.judges
    assert [each.name for each in offers] == list(OFFERS)
    from evenhand.judging.config import JudgeConfig
    from evenhand.serve.config import JudgeOffer, ServerConfig
    from evenhand.serve.judges import JudgeCatalog
    from evenhand.settings import Settings

    rule = JudgeOffer("longer", JudgeConfig(judge="baseline:longer"))
    catalog = JudgeCatalog(ServerConfig(judges=(*offers, rule)), Settings())
    assert catalog.answering() == list(OFFERS)
    with pytest.raises(Exception, match="longer cannot write answers"):
        catalog.model("longer")


@pytest.mark.parametrize(
    ("content", "status", "told"),
    [
        (b"", 422, "prompts.jsonl"),
        (b"no json", 422, "prompts.jsonl, row 1"),
        (b'{"response": "x"}\n', 422, "no column for prompt"),
        (b'{"prompt": " "}\n', 422, "row 1"),
        (b'{"prompt": "a", "id": 1}\n{"prompt": "b", "id": 1}\n', 422, "row 2"),
        (lines([{"prompt": "x" * 1001}]), 422, "1,001 characters"),
        (lines([{"prompt": f"{n}"} for n in range(61)]), 413, "more than 60 rows"),
        (lines([{"prompt": "x" * 900, "id": n} for n in range(40)]), 413, "in memory"),
    ],
)
def test_prompts_are_held_to_the_servers_limits(
    content: bytes, status: int, told: str, start_service: StartService
) -> None:
    service = start_service(
        answers, judges=OFFERS, run_pairs=60, field_chars=1000, body_bytes=40_000
    )
    answer = start(service, content)
    assert told in problem(answer, status, answer.json()["error"]["kind"]).detail
    assert service.client.get("/v1/runs").json()["runs"] == []
    assert asked_of(service) == {}


def test_a_template_that_repeats_the_prompt_is_held_to_the_limit_of_a_text(
    start_service: StartService,
) -> None:
    """A few kilobytes would else be gigabytes in each call."""
    service = start_service(answers, judges=OFFERS, field_chars=1000)
    content = lines([{"prompt": "x" * 90}])
    answer = start(service, content, templateA="{{ prompt }}" * 11)  # 132 + 11 · 90
    told = problem(answer, 422, answer.json()["error"]["kind"]).detail
    assert "templateA" in told
    assert "1,122 characters" in told
    assert asked_of(service) == {}
    assert start(service, content, templateA="{{ prompt }}" * 9).status_code == 202


def test_rows_that_are_no_prompts_are_skipped_and_counted(service: HttpService) -> None:
    rows = [*prompts(3), {"response": "no prompt"}]
    status = ended(service, start(service, rows, badRows="skip"))
    assert (status.state, status.pairs, status.skipped_rows) == ("finished", 3, 1)


def test_two_files_are_no_prompts(service: HttpService) -> None:
    answer = service.client.post(
        "/v1/runs",
        params={"criteria": "accuracy", "modelA": "old", "modelB": "new"},
        files={"a": ("a.jsonl", lines(prompts(2))), "b": ("b.jsonl", lines(prompts(2)))},
    )
    assert "two files of outputs" in problem(answer, 422, "input").detail


def test_progress_says_answers_and_a_run_is_stopped_and_goes_on_among_them(
    start_service: StartService,
) -> None:
    """Of 24 answers 10 come, and what was in flight when it was stopped; none is asked twice."""
    gate = Gate(10)
    service = start_service(gate, judges=OFFERS)
    begun = start(service, prompts(12))
    status = wait_for(service, begun, lambda run: run.answers is not None and run.answers.done > 9)
    assert (status.state, status.pairs, status.remaining_s) == ("answering", 0, None)
    assert status.answers is not None
    assert (status.answers.done, status.answers.total) == (10, 24)
    assert status.calls >= 10
    page = Visitor(service).see(f"/runs/{status.id}")
    shown = page.by_id("progress").text
    assert "answering" in shown
    assert "10 of 24 answers" in shown
    assert "0 of 0" not in page.text
    assert page.all("p", class_="error") == []
    listed = Visitor(service).see("/").by_id(f"run-{status.id}-state").text
    assert "10 of 24 answers" in listed
    threading.Timer(0.3, gate.open).start()
    service.client.post(f"/v1/runs/{status.id}/cancel")
    stopped = wait_for(service, begun, lambda run: run.state == "stopped")
    assert (stopped.stopped_by, stopped.pairs) == ("cancel", 0)
    assert stopped.answers is not None
    assert stopped.answers.done >= 10
    before = asked_of(service)
    assert (
        Visitor(service).see(f"/runs/{status.id}").one("form", action=f"/runs/{status.id}/resume")
    )
    assert service.client.post(f"/v1/runs/{status.id}/resume").status_code == 200
    done = ended(service, begun)
    assert (done.state, done.pairs, done.wins_b, done.calls) == ("finished", 12, wins_b(12), 48)
    assert asked_of(service) == {"old": 12, "new": 12, "good": 24}
    assert before["good"] == 0


def test_a_servers_end_among_answers_loses_none(start_service: StartService) -> None:
    gate = Gate(9)
    service = start_service(gate, judges=OFFERS)
    begun = start(service, prompts(12))
    wait_for(service, begun, lambda run: run.answers is not None and run.answers.done == 9)
    threading.Timer(0.3, gate.open).start()
    service.stop()
    service.start()
    done = ended(service, begun)
    assert (done.state, done.pairs, done.calls) == ("finished", 12, 48)
    assert asked_of(service) == {"old": 12, "new": 12, "good": 24}


def test_caps_hold_over_answers_and_verdicts_together(start_service: StartService) -> None:
    """12 prompts take 24 calls for answers and 24 for verdicts, each at 1,000 tokens in and 100
    out: 1,000 x 1 $ + 100 x 10 $ for a million are 0.002 $ a call."""

    def priced(request: SeenRequest) -> Reply:
        reply = answers(request)
        reply.body["usage"] = {"prompt_tokens": 1000, "completion_tokens": 100}
        return reply

    service = start_service(priced, judges=OFFERS, offer={"price": Price(1, 10)})
    first = ended(service, start(service, prompts(12), maxCalls=10))
    assert (first.state, first.stopped_by, first.calls) == ("stopped", "max-calls", 10)
    assert sum(asked_of(service).values()) == 10
    assert first.answers is not None
    assert (first.answers.done, first.answers.total) == (10, 24)
    assert first.cost_usd == pytest.approx(10 * 0.002)
    # Resumed, the client's cap counts anew: 10 more each time.
    for calls in (20, 30):
        resumed = service.client.post(f"/v1/runs/{first.id}/resume")
        status = ended(service, resumed)
        assert (status.stopped_by, status.calls) == ("max-calls", calls)
    assert asked_of(service) == {"old": 12, "new": 12, "good": 6}
    assert status.answers is None
    assert status.cost_usd == pytest.approx(30 * 0.002)
    # 0.06 $ are 30 calls, and 24 of them go to answers.
    other = ended(service, start(service, prompts(12, begin=100), maxCost=0.06))
    assert (other.state, other.stopped_by) == ("stopped", "max-cost")
    assert other.cost_usd is not None
    assert 0.05 <= other.cost_usd <= 0.06


def test_a_servers_own_cap_outlives_a_resume(start_service: StartService) -> None:
    service = start_service(answers, judges=OFFERS, run_max_calls=30)
    begun = start(service, prompts(12))
    assert (ended(service, begun).calls, ended(service, begun).stopped_by) == (30, "max-calls")
    service.client.post(f"/v1/runs/{begun.json()['id']}/resume")
    status = ended(service, begun)
    assert (status.calls, status.stopped_by) == (30, "max-calls")


def test_a_model_that_fails_stops_the_run_with_a_reason_and_no_address(
    start_service: StartService,
) -> None:
    def refuses(request: SeenRequest) -> Reply:
        model = request.json["model"]
        return error_reply(401, "no such key") if model == "new-1" else answers(request)

    service = start_service(refuses, judges=OFFERS)
    status = ended(service, start(service, prompts(4)))
    assert (status.state, status.pairs) == ("failed", 0)
    assert status.error is not None
    assert "no such key" in status.error.message
    assert "127.0.0.1" not in status.error.message


def test_answers_that_are_none_are_no_losses(start_service: StartService) -> None:
    """B says nothing to every second prompt: 6 pairs, 6 rows skipped, and a note."""

    def silent(request: SeenRequest) -> Reply:
        asked = _ASKED.search(request.prompt)
        assert asked is not None
        if request.json["model"] == "new-1" and int(asked[1]) % 2 == 0:
            return chat_reply("")
        return answers(request)

    service = start_service(silent, judges=OFFERS)
    status = ended(service, start(service, prompts(12)))
    assert (status.state, status.pairs, status.skipped_rows) == ("finished", 6, 6)
    assert any("new" in note and "6" in note for note in status.notes)


def test_what_clients_see_of_the_models_has_no_address(service: HttpService) -> None:
    status = ended(service, start(service, prompts(3)))
    for path in ("", "/report", "/verdicts?full=true"):
        body = service.client.get(f"/v1/runs/{status.id}{path}").text
        assert service.judge is not None
        assert service.judge.url not in body
        assert "base_url" not in body


def test_texts_of_a_stopped_run_can_be_forgotten(start_service: StartService) -> None:
    gate = Gate(2)
    service = start_service(gate, judges=OFFERS)
    begun = start(service, prompts(4), systemA="A secret instruction.")
    run = wait_for(service, begun, lambda run: run.answers is not None and run.answers.done == 2)
    threading.Timer(0.3, gate.open).start()
    service.client.post(f"/v1/runs/{run.id}/cancel")
    wait_for(service, begun, lambda run: run.state == "stopped")
    with open_store(service.config.store) as store:
        kept = store.jobs.prompts(int(run.id))
        assert kept is not None
        assert kept.sides == {"system_a": "A secret instruction."}
        job = store.jobs.find(int(run.id))
        assert job is not None
        assert "secret" not in json.dumps(job.options)
        store.deletion.forget_texts(run.name)
        assert store.jobs.prompts(int(run.id)) is None
    service.client.post(f"/v1/runs/{run.id}/resume")
    status = ended(service, begun)
    assert status.state == "failed"
    assert status.error is not None
    assert "start it again with the same file" in status.error.message


def test_other_models_under_the_same_names_do_not_go_on(start_service: StartService) -> None:
    gate = Gate(4)
    service = start_service(gate, judges=OFFERS)
    begun = start(service, prompts(6))
    run = wait_for(service, begun, lambda run: run.answers is not None and run.answers.done == 4)
    threading.Timer(0.3, gate.open).start()
    service.client.post(f"/v1/runs/{run.id}/cancel")
    wait_for(service, begun, lambda run: run.state == "stopped")
    store = service.config.store
    service.stop()
    other = start_service(answers, judges=OFFERS, store=store)  # at another address
    other.client.post(f"/v1/runs/{run.id}/resume")
    status = ended(other, begun)
    assert status.state == "failed"
    assert asked_of(other) == {}
    service.start()


# Pages


def post(visitor: Visitor, content: bytes, **fields: str) -> httpx.Response:
    form = {"kind": "models", "criteria": "accuracy", "modelA": "old", "modelB": "new"}
    return visitor.upload(content, form | fields, name="prompts.jsonl")


def test_prompts_are_looked_at_before_models_answer(service: HttpService) -> None:
    visitor = Visitor(service)
    page = seen(post(visitor, lines(prompts(6)), act="preview"))
    shown = page.by_id("preview").text
    # Two answers and two passes for each prompt.
    assert "Prompts6" in shown
    assert "Calls24 12 for answers, 12 for verdicts" in shown
    assert asked_of(service) == {}
    assert visitor.ask("/v1/runs").json()["runs"] == []


def test_the_form_of_models_starts_a_run_and_keeps_what_was_filled_in(
    service: HttpService,
) -> None:
    visitor = Visitor(service)
    form = visitor.see("/new?kind=models")
    chosen = [each.text for each in form.all("option") if "selected" in each.attributes]
    assert chosen[:2] == ["good", "old"]
    kept = seen(post(visitor, b"no json", systemB="Be <b>brief</b>.", name="Kept"), 422)
    assert kept.one("textarea", name="systemB").text == "Be <b>brief</b>."
    chosen = [each.text for each in kept.all("option") if "selected" in each.attributes]
    assert chosen[:2] == ["old", "new"]
    assert kept.one("input", name="kind").attributes["value"] == "models"
    assert (
        "choose one for A and one for B"
        in seen(post(visitor, lines(prompts(2)), modelA=""), 422).text
    )
    answer = post(visitor, lines(prompts(6)), name="Models")
    assert answer.status_code == 303, answer.text
    page = visitor.wait(answer.headers["location"], lambda page: "finished" in page.text)
    assert page.one("a", class_="name").text == "Models"
    assert "new" in page.one("h1").text


def test_the_page_is_in_chinese_too(service: HttpService) -> None:
    page = Visitor(service).see("/new?kind=models", language="zh")
    assert "模型 A" in page.text
