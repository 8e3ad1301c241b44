"""`/try`: a comparison by hand, with and without our script."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.serve.config import Token
from html_reading import Html, harm_in
from http_service import StartService, start_service
from page_visits import Visitor, seen, serving
from run_data import adds_up, sums
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

__all__ = ["start_service"]

PASSES = ("A shown first", "B shown first")
HOSTILE = "</textarea><script>alert(1)</script>"
LINES = "application/x-ndjson"


def fields(**more: Any) -> dict[str, Any]:
    row = sums(1)[0]
    return {
        "prompt": row["prompt"],
        "responseA": row["response_a"],
        "responseB": row["response_b"],
        "criteria": "accuracy: is the sum right?",
        "judge": "good",
        "allowTie": "yes",
        "swapPositions": "yes",
        "act": "compare",
    } | more


def answers(request: SeenRequest) -> Reply:
    if "mumble" in request.prompt:
        return chat_reply("I would rather not say.")
    if "first one" in request.prompt:
        return chat_reply(answer_json("A", criteria=[("accuracy", "A")]))
    if HOSTILE in request.prompt:
        return chat_reply(answer_json("A", reasoning=HOSTILE, criteria=[("accuracy", "A")]))
    return adds_up(request)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("try"), answers, judges=("good", "other")) as visitor:
        yield visitor


def watched(visitor: Visitor, given: dict[str, Any]) -> list[Html]:
    """The parts of the page, in the order in which they came."""
    headers = {"Origin": visitor.service.url.rstrip("/"), "Accept": LINES}
    with visitor.client.stream("POST", "/try", data=given, headers=headers) as answer:
        assert answer.headers["content-type"] == LINES
        parts = [Html(json.loads(line)["html"]) for line in answer.iter_lines()]
    for part in parts:
        assert harm_in(part) == []
    return parts


def test_the_form_offers_the_judges_by_name(visitor: Visitor) -> None:
    page = visitor.see("/try")
    offered = [each.text for each in page.all("option")]
    # The judges, then what may be prepared.
    assert offered[:3] == ["good", "other", "the judge’s default"]
    assert page.by_id("outcome").text.startswith("Paste a prompt")
    chinese = visitor.see("/try", language="zh")
    assert "粘贴一个提示词" in chinese.one("h1").text
    assert "准确性" in chinese.text


def test_without_script_the_page_answers_with_the_verdict(visitor: Visitor) -> None:
    page = seen(visitor.send("/try", fields()))
    outcome = page.by_id("outcome").text
    assert "A won" in outcome
    assert "0.90" in outcome
    assert outcome.startswith("Response A is better.")
    # Before the form, and as on a pair's page: the passes in columns, a row for each criterion.
    assert page.elements.index(page.by_id("outcome")) < page.elements.index(page.one("form"))
    passes = page.one("table", class_="passes")
    heads = [each.text for each in page.all("th") if passes in each.within]
    assert [any(head.startswith(name) for head in heads) for name in PASSES] == [True, True]
    # The form keeps what it was given.
    assert sums(1)[0]["prompt"] in page.one("textarea", name="prompt").text


def test_with_script_each_pass_comes_as_soon_as_it_is_made(visitor: Visitor) -> None:
    waiting, *passes, verdict = watched(visitor, fields())
    assert len(waiting.all("progress")) == 2
    ids = [each.elements[0].attributes["id"] for each in passes]
    assert sorted(ids) == ["pass-original-1", "pass-swapped-1"]
    for each in ids:
        waiting.by_id(each)
    assert "A won" in verdict.by_id("outcome").text
    assert len(verdict.all("table", class_="passes")) == 1
    assert [each.text for each in verdict.all("h1")] == ["Response A is better."]


def test_a_pass_is_told_while_the_other_is_still_waited_for(start_service: StartService) -> None:
    gate = threading.Event()

    def halting(request: SeenRequest) -> Reply:
        own, other = (
            request.prompt.index(sums(1)[0][name]) for name in ("response_a", "response_b")
        )
        if own > other:
            assert gate.wait(20)
        return adds_up(request)

    visitor = Visitor(start_service(halting))
    headers = {"Origin": visitor.service.url.rstrip("/"), "Accept": LINES}
    with visitor.client.stream("POST", "/try", data=fields(), headers=headers) as answer:
        lines = answer.iter_lines()
        next(lines)
        first = Html(json.loads(next(lines))["html"])
        assert first.elements[0].attributes["id"] == "pass-original-1"
        gate.set()
        assert [Html(json.loads(line)["html"]).elements[0].tag for line in lines] == [
            "div",
            "section",
        ]


def test_exchanged_responses_get_the_mirrored_verdict(visitor: Visitor) -> None:
    swapped = seen(visitor.send("/try", fields(act="swap")))
    assert swapped.all("table", class_="passes") == []
    given = fields(
        responseA=swapped.one("textarea", name="responseA").text,
        responseB=swapped.one("textarea", name="responseB").text,
    )
    assert given["responseA"] == fields()["responseB"]
    assert "B won" in seen(visitor.send("/try", given)).by_id("outcome").text


def test_a_winner_that_changes_with_the_order_is_inconsistent(visitor: Visitor) -> None:
    outcome = seen(visitor.send("/try", fields(prompt="Which, the first one?"))).by_id("outcome")
    assert "inconsistent" in outcome.text
    assert outcome.text.startswith("No winner: the verdict flipped with the order")


def test_no_verdict_is_invalid_and_shows_what_the_judge_said(visitor: Visitor) -> None:
    page = seen(visitor.send("/try", fields(prompt="mumble")))
    assert "invalid" in page.by_id("outcome").text
    assert "A won" not in page.by_id("outcome").text
    raw = [each.text for each in page.all("pre")]
    assert raw == ["I would rather not say.", "I would rather not say."]
    assert "invalid" in watched(visitor, fields(prompt="mumble"))[-1].by_id("outcome").text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"prompt": ""}, "prompt is empty"),
        ({"criteria": " \n "}, "criteria"),
        ({"criteria": "clarity\nclarity"}, "clarity"),
        ({"judge": "none of ours"}, "does not offer"),
    ],
)
def test_what_is_wrong_with_the_form_stands_on_the_page(
    visitor: Visitor, given: dict[str, Any], told: str
) -> None:
    page = seen(visitor.send("/try", fields(**given)), 422)
    assert told in page.by_id("outcome").text
    assert told in watched(visitor, fields(**given))[-1].by_id("outcome").text


def test_one_order_alone_has_one_pass(visitor: Visitor) -> None:
    given = fields()
    del given["swapPositions"]
    waiting, *passes, verdict = watched(visitor, given)
    assert (len(waiting.all("progress")), len(passes)) == (1, 1)
    assert "Asking the judge: 1 call." in waiting.text
    assert "A won" in verdict.text
    assert verdict.one("h1").text == (
        "Response A is better. Judged in one order only, so position may have decided."
    )


def test_hostile_texts_stay_texts(visitor: Visitor) -> None:
    page = seen(visitor.send("/try", fields(prompt=HOSTILE, responseA=HOSTILE, context=HOSTILE)))
    assert HOSTILE in page.one("textarea", name="prompt").text
    assert HOSTILE in page.by_id("outcome").text
    assert HOSTILE in watched(visitor, fields(prompt=HOSTILE))[-1].text


def test_the_form_is_taken_from_our_own_page_alone(visitor: Visitor) -> None:
    answer = visitor.client.post("/try", data=fields(), headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403


def test_a_server_without_a_judge_says_so(start_service: StartService) -> None:
    visitor = Visitor(start_service(adds_up, judges=()))
    page = visitor.see("/try")
    assert "has no judge" in page.text
    assert page.all("textarea") == []


def test_behind_a_token_the_form_needs_its_session(start_service: StartService) -> None:
    service = start_service(adds_up, tokens=(Token("ann", "a-long-secret-of-ann"),))
    visitor = Visitor(service)
    assert visitor.ask("/try").status_code in (303, 401)
    visitor.send("/login", {"token": "a-long-secret-of-ann"})
    page = visitor.see("/try")
    assert visitor.send("/try", fields()).status_code == 403
    (csrf, *_) = page.all("input", name="csrf")
    answer = visitor.send("/try", fields(csrf=csrf.attributes["value"]))
    assert "A won" in seen(answer).by_id("outcome").text
