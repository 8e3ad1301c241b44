"""While something is not there yet, a page says what is going on, how far it is, and asks again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.errors import ServerBusy
from evenhand.messages import Message
from evenhand.serve.figures import CachedFigure, Figure, FigureCache
from evenhand.serve.service import Service
from evenhand.serve.verdicts import VerdictBrowser
from html_reading import Element, Html
from page_visits import Visitor, seen, serving
from run_data import sums
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply, error_reply


def judge(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", confidence=0.7, criteria=[("accuracy", "A")]))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    rows = [row | {"modelA": "ada", "modelB": "bob"} for row in sums(6)]
    with serving(tmp_path_factory.mktemp("waiting"), judge) as visitor:
        visitor.start(rows, name="one")
        visitor.start(rows[:3], name="two")
        yield visitor


def test_before_the_first_verdict_no_zeros_stand_in_cards(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def refuses(request: SeenRequest) -> Reply:
        return error_reply(401, "no such key")

    with serving(tmp_path_factory.mktemp("refused"), refuses) as visitor:
        run = visitor.begin(sums(6), name="refused")
        page = visitor.wait(run, lambda page: "failed" in page.by_id("progress").text)
        assert page.one("h1").text == "No conclusion yet."
        assert page.all("ul", class_="trust") == []
        assert page.all("svg", class_="histogram") == []
        assert page.all("ul", class_="legend") == []
        assert "0 of 6" in page.by_id("progress").text
        assert "to go" not in page.text


def bars(page: Html) -> list[tuple[str | None, str | None]]:
    found = [each for each in page.all("progress") if "filling" in _outer(each)]
    assert all(each.attributes["aria-label"] for each in found)
    return [(each.attributes.get("value"), each.attributes.get("max")) for each in found]


def _outer(element: Element) -> str:
    return element.within[-1].attributes.get("class", "")


def lives(page: Html) -> list[str]:
    return [e.attributes["data-live"] for e in page.elements if "data-live" in e.attributes]


def test_a_search_says_that_its_words_are_being_indexed(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def searchable(*_: object) -> bool:
        return False

    monkeypatch.setattr(VerdictBrowser, "_is_searchable", searchable)
    page = visitor.see("/runs/1/pairs?query=plus")
    assert "Indexing the texts for this search" in page.text
    assert bars(page) == [(None, None)]
    assert lives(page) == ["/runs/1/pairs?query=plus"]
    page = visitor.see("/runs/1/pairs?query=plus", language="zh")
    assert "正在为搜索建立索引" in page.text
    assert any(each.attributes.get("http-equiv") == "refresh" for each in page.all("meta"))


def test_a_table_that_is_whole_says_nothing_of_it(visitor: Visitor) -> None:
    for path in ("/runs/1/pairs", "/rank/pairs?run=1&run=2&model=ada"):
        page = visitor.see(path)
        assert bars(page) == []
        assert lives(page) == []


@pytest.mark.parametrize(
    ("path", "figure"),
    [
        ("/runs/1/audit", "audit"),
        ("/rank?run=1", "rank"),
    ],
)
def test_figures_that_are_worked_out_move_a_bar(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, path: str, figure: str
) -> None:
    get = FigureCache.get

    async def computing(cache: FigureCache, asked: Figure[Any]) -> CachedFigure[Any]:
        if asked.name != figure:
            return await get(cache, asked)
        return CachedFigure(value=None, error=None, at=None, stale=False, computing=True)

    monkeypatch.setattr(FigureCache, "get", computing)
    page = visitor.see(path)
    assert bars(page) == [(None, None)]  # of what nobody knows the end
    assert lives(page) == [path]


def test_a_busy_server_is_asked_again_by_the_page(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_: Any, **__: Any) -> Any:
        raise ServerBusy(Message("serve.too_many_requests", in_flight=4), retry_after_s=6.2)

    monkeypatch.setattr(VerdictBrowser, "page", busy)
    answer = visitor.ask("/runs/1/pairs", **{"Accept-Language": "zh"})
    assert answer.headers["retry-after"] == "7"
    page = seen(answer, 429)
    (waits,) = [each for each in page.elements if "data-again" in each.attributes]
    assert waits.attributes["data-again"] == "7"
    assert "7 秒后" in waits.text
    assert "4 个请求" in page.text


def test_a_form_that_a_busy_server_refused_is_not_sent_again(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_: Any, **__: Any) -> Any:
        raise ServerBusy("3 runs wait; try again later", retry_after_s=30)

    monkeypatch.setattr(Service, "refuse_when_full", busy)
    answer = visitor.upload(b"{}", {"criteria": "accuracy"})
    assert answer.headers["retry-after"] == "30"
    page = seen(answer, 429)
    assert not any("data-again" in each.attributes for each in page.elements)
    assert not any(each.attributes.get("http-equiv") == "refresh" for each in page.all("meta"))
