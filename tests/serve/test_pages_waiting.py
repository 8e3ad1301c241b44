"""While something is not there yet, a page says what is going on, how far it is, and asks again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.errors import ServerBusy
from evenhand.messages import Message
from evenhand.serve import verdicts as browsing
from evenhand.serve.indexing import IndexCoverage
from evenhand.serve.report_cache import CachedFigure, Figure, ReportCache
from evenhand.serve.reports import RunTotals
from evenhand.serve.service import Service
from evenhand.store.verdict_index import Coverage
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
        assert page.one("h1").text == "There is nothing to conclude from yet."
        assert page.all("ul", class_="trust") == []
        assert page.all("svg", class_="histogram") == []
        assert page.all("ul", class_="legend") == []
        assert "0 of 6" in page.by_id("progress").text
        assert "to go" not in page.text


@pytest.fixture
def half_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of every run hold a part, for as long as the test looks."""
    part = IndexCoverage(table=Coverage(3, 12), words=Coverage(2, 9))
    monkeypatch.setattr(browsing, "fill_some", lambda *_, **__: part)


def bars(page: Html) -> list[tuple[str | None, str | None]]:
    found = [each for each in page.all("progress") if "filling" in _outer(each)]
    assert all(each.attributes["aria-label"] for each in found)
    return [(each.attributes.get("value"), each.attributes.get("max")) for each in found]


def _outer(element: Element) -> str:
    return element.within[-1].attributes.get("class", "")


def lives(page: Html) -> list[str]:
    return [e.attributes["data-live"] for e in page.elements if "data-live" in e.attributes]


@pytest.mark.usefixtures("half_filled")
def test_a_table_says_how_much_of_it_there_is_and_fills_by_itself(visitor: Visitor) -> None:
    page = visitor.see("/runs/1/pairs?outcome=win")
    assert "3 of 12 verdicts can be filtered so far" in page.text
    assert bars(page) == [("3", "12")]
    assert lives(page) == ["/runs/1/pairs?outcome=win"]
    page = visitor.see("/runs/1/pairs?query=plus", language="zh")
    assert "12 个裁决中的 3 个" in page.text
    assert bars(page) == [("3", "12"), ("2", "9")]
    assert any(each.attributes.get("http-equiv") == "refresh" for each in page.all("meta"))


@pytest.mark.usefixtures("half_filled")
def test_counts_of_several_runs_say_so_too(visitor: Visitor) -> None:
    page = visitor.see("/rank/pairs?run=1&run=2&model=ada")
    assert bars(page) == 2 * [("3", "12")]
    assert lives(page) == ["/rank/pairs?run=1&run=2&model=ada"]


def test_a_table_that_is_whole_says_nothing_of_it(visitor: Visitor) -> None:
    for path in ("/runs/1/pairs", "/rank/pairs?run=1&run=2&model=ada"):
        page = visitor.see(path)
        assert bars(page) == []
        assert lives(page) == []


def test_a_run_says_that_its_flags_are_of_a_part(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunTotals, "whole", property(lambda _: False))
    page = visitor.see("/runs/1")
    assert bars(page) == [("6", "6")]
    assert "are counted among these flags so far" in page.text
    assert lives(page) == ["/runs/1"]


@pytest.mark.parametrize(
    ("path", "figure"),
    [
        ("/runs/1/audit", "audit"),
        ("/rank?run=1", "ranking"),
    ],
)
def test_figures_that_are_worked_out_move_a_bar(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, path: str, figure: str
) -> None:
    get = ReportCache.get

    async def computing(cache: ReportCache, asked: Figure[Any]) -> CachedFigure[Any]:
        if asked.what != figure:
            return await get(cache, asked)
        return CachedFigure(value=None, error=None, at=None, stale=False, computing=True)

    monkeypatch.setattr(ReportCache, "get", computing)
    page = visitor.see(path)
    assert bars(page) == [(None, None)]  # of what nobody knows the end
    assert lives(page) == [path]


def test_a_busy_server_is_asked_again_by_the_page(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_: Any, **__: Any) -> Any:
        raise ServerBusy(Message("serve.too_many_requests", in_flight=4), retry_after_s=6.2)

    monkeypatch.setattr(browsing.VerdictBrowser, "page", busy)
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
