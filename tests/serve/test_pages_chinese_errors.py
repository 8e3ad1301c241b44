"""What a visitor may do wrong is told in the page's language, and in the page's own terms."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from evenhand.messages import Message
from evenhand.present.html.rendering import PageTranslator
from evenhand.serve.security.policy import too_large
from html_reading import Element, Html
from page_visits import Visitor, seen, serving
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

ROW = {"id": "1", "prompt": "p", "response_a": "a", "response_b": "b"}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# What a command line has and a page has not.
OF_COMMANDS = re.compile(
    r"--[a-z]|(?<!\w)-[a-z] |\bevenhand (?:run|rank|label|votes)|[a-z]+=COLUMN"
)
# As the API calls its fields.
OF_PROGRAMS = re.compile(r"badRows|maxCost|maxCalls|\bmap \w+=")


def judge(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", confidence=0.7, criteria=[("accuracy", "A")]))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("errors"), judge) as visitor:
        visitor.start([ROW, ROW | {"id": "2", "prompt": "q"}], name="there")
        yield visitor


def lines(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def told(page: Html) -> str:
    """The one error of a page; nothing of it is marked as being in another language."""
    # What a run has not is told where it would stand, and what went wrong as an error.
    empty = [*page.all("p", class_="empty"), *inside_empty(page)]
    wrong = [*page.all("h1", class_="error"), *page.all("p", class_="error")]
    error, *_ = [*(each for each in wrong if each.text), *empty]
    inside = [each for each in page.elements if error in each.within]
    assert [each.attributes.get("lang") for each in inside] == [None]
    return error.text


def inside_empty(page: Html) -> list[Element]:
    return [each for each in page.all("p") if each.within[-1].attributes.get("class") == "empty"]


def assert_in_both_languages(english: Html, chinese: Html) -> None:
    assert CHINESE.search(told(chinese))
    for said in (told(english), told(chinese)):
        assert not OF_COMMANDS.search(said), said
        assert not OF_PROGRAMS.search(said), said


UPLOADS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "does not change it": ("x.jsonl", b"", {}),
    "no JSON": ("x.jsonl", b"hello\n", {}),
    "other columns": ("x.csv", b"q,w\n1,2\n", {}),
    "a text": ("x.txt", b"hello\n", {}),
    "a picture": ("x.png", b"\x89PNG\r\n\x1a\n" + bytes(50), {}),
    "damaged Parquet": ("x.parquet", b"PAR1xxxx", {}),
    "damaged gzip": ("x.jsonl.gz", b"\x1f\x8bxxxx", {}),
    "a response is missing": ("x.jsonl", lines({"prompt": "p", "response_a": "a"}), {}),
    "a number for a text": ("x.jsonl", lines(ROW | {"prompt": 5}), {}),
    "no label that there is": ("x.jsonl", lines(ROW | {"label": "xx"}), {}),
    "no UTF-8": ("x.jsonl", b'{"prompt": "\xff"}\n', {}),
    "an id twice": ("x.jsonl", lines(ROW, ROW | {"prompt": "z"}), {}),
    "no criteria": ("x.jsonl", lines(ROW), {"criteria": ""}),
    "a criterion twice": ("x.jsonl", lines(ROW), {"criteria": "a, a"}),
    "no number": ("x.jsonl", lines(ROW), {"maxCost": "much"}),
    "below nothing": ("x.jsonl", lines(ROW), {"maxCost": "-1"}),
    "a cap that cannot be kept": ("x.jsonl", lines(ROW), {"maxCost": "1"}),
    "nobody's name": ("x.jsonl", lines(ROW), {"judges": "nobody"}),
    "a name that is taken": ("x.jsonl", lines(ROW), {"name": "there"}),
}


@pytest.mark.parametrize("wrong", UPLOADS)
def test_a_file_that_cannot_be_judged_is_refused_in_both_languages(
    visitor: Visitor, wrong: str
) -> None:
    name, content, fields = UPLOADS[wrong]

    def sent(language: str) -> httpx.Response:
        origin = visitor.service.url.rstrip("/")
        return visitor.client.post(
            "/runs",
            files={"file": (name, content)},
            data={"criteria": "accuracy"} | fields,
            headers={"Origin": origin, "Accept-Language": language},
        )

    answers = [sent(language) for language in ("en", "zh")]
    assert_in_both_languages(*(seen(each, each.status_code) for each in answers))
    assert {each.status_code for each in answers} <= {409, 422}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/runs/99", 404),
        ("/runs/1/pairs/77", 404),
        ("/runs/1/pairs?outcome=x", 422),
        ("/runs/1/pairs?cursor=x", 422),
        ("/runs/1/pairs?nothing=1", 422),
        ("/runs/1/pairs?minConfidence=7", 422),
        ("/runs/1/pairs?judge=x", 422),
        ("/runs/1/pairs?modelWins=true", 422),
        ("/runs/1?level=3", 422),
        ("/runs/1/charts/x.svg", 404),
        ("/rank?run=1", 200),
        ("/rank?run=1&tag=x", 200),
        ("/rank?run=1&judge=x", 200),
        ("/runs/1/audit", 200),
        ("/runs/1/audit?judge=x", 200),
        ("/runs/1/calibration", 200),
    ],
)
def test_an_address_that_leads_nowhere_says_so_in_both_languages(
    visitor: Visitor, path: str, status: int
) -> None:
    if status == 200:  # figures that are worked out once
        visitor.wait(path, lambda page: "still calculating" not in page.text)
    pages = [visitor.see(path, status=status, language=language) for language in ("en", "zh")]
    assert_in_both_languages(*pages)


@pytest.mark.parametrize(
    "said",
    [
        too_large(5 * 2**20).message,
        too_large(500).message,
        Message("runs.reached_max_calls", max_calls=12),
        Message("runs.reached_max_cost", max_cost=2.5),
        Message("serve.form_of_another_session"),
        Message("serve.too_many_wrong_tokens"),
        Message("serve.voter_login_elsewhere"),
        Message("serve.no_judge"),
        Message("serve.pairs_too_long", limit=1000),
        Message("data.too_many_rows", title="x.jsonl", most=20_000),
        Message("serve.too_many_runs", there=3),
    ],
)
def test_what_a_server_refuses_is_told_in_both_languages(said: str) -> None:
    english, chinese = (PageTranslator(language, on_pages=True)(said) for language in ("en", "zh"))
    assert CHINESE.search(chinese)
    for each in (english, chinese):
        assert not OF_COMMANDS.search(each)
        assert "[[" not in each
