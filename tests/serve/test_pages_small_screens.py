"""Tables that become cards on a small screen carry their columns' names in the cells."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from html_reading import Element, Html
from page_visits import Visitor, serving
from run_data import sums
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply


def judge(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", confidence=0.7, criteria=[("accuracy", "A")]))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    rows = [
        row | {"modelA": "ada", "modelB": "bob", "tags": ["t"] if place % 2 else []}
        for place, row in enumerate(sums(8))
    ]
    directory = tmp_path_factory.mktemp("small")
    with serving(directory, judge, judges=("good", "other")) as visitor:
        visitor.start(rows, judges=["good", "other"], name="small")
        yield visitor


def _classes(element: Element) -> list[str]:
    return element.attributes.get("class", "").split()


def cells(page: Html, tag: str) -> list[list[Element]]:
    """Of each row of the body of the one table that stacks."""
    (table,) = [each for each in page.all("table") if "stacks" in _classes(each)]
    rows: dict[int, list[Element]] = {}
    for each in page.elements:
        if each.tag in ("td", "th") and table in each.within:
            inside = [outer.tag for outer in each.within]
            if tag in inside:
                rows.setdefault(id(each.within[-1]), []).append(each)
    return list(rows.values())


# What a card shows needs no name: what it begins with, tags that look like tags, and sentences.
SELF_EXPLAINING = {
    "/": {"Select", "Run"},
    "/runs/1/pairs": {"Number ↑", "Prompt and reason", "Tags and notes"},
    "/rank?run=1": {"Rank", "Model", "Scores on one scale"},
}


@pytest.mark.parametrize("path", SELF_EXPLAINING)
def test_a_cell_says_which_column_it_is_of(visitor: Visitor, path: str) -> None:
    page = visitor.wait(path, lambda page: "still calculating" not in page.text)
    (head,) = cells(page, "thead")
    names = [each.text for each in head]
    assert len(names) > 5
    for row in cells(page, "tbody"):
        assert len(row) == len(names)
        for name, cell in zip(names, row, strict=True):
            told = cell.attributes.get("data-label")
            assert told == (None if name in SELF_EXPLAINING[path] else name)


def test_a_card_leaves_out_what_is_not_there(visitor: Visitor) -> None:
    """Half of the pairs have no tags, and none has a label: then there is no column of labels."""
    page = visitor.see("/runs/1/pairs?outcome=inconsistent")
    (head,) = cells(page, "thead")
    names = [each.text for each in head]
    assert "Label" not in names
    bare = [
        [name for name, cell in zip(names, row, strict=True) if _is_bare(cell)]
        for row in cells(page, "tbody")
    ]
    assert bare == [
        each for place in range(8) for each in 2 * [[] if place % 2 else ["Tags and notes"]]
    ]


def _is_bare(cell: Element) -> bool:
    return "bare" in _classes(cell)


def test_what_stays_a_table_can_be_moved_by_keys(visitor: Visitor) -> None:
    for path in ("/runs/1", "/rank?run=1", "/runs/1/votes", "/runs/1/pairs"):
        page = visitor.wait(path, lambda page: "still calculating" not in page.text)
        for table in [*page.all("table"), *page.all("img")]:
            (region,) = [outer for outer in table.within if "scroll" in _classes(outer)]
            assert region.attributes["tabindex"] == "0"
            assert {"aria-label", "aria-labelledby"} & region.attributes.keys()


def test_filters_are_folded_and_those_that_are_set_can_be_taken_out(visitor: Visitor) -> None:
    page = visitor.see("/runs/1/pairs?outcome=inconsistent&judge=good")
    (fold,) = page.all("details", class_="more")
    assert "open" not in fold.attributes
    (summary,) = [each for each in page.all("summary") if fold in each.within]
    assert summary.text == "More (2)"
    words = next(e for e in page.all("input") if e.attributes.get("name") == "query")
    assert fold not in words.within
    labels = {each.attributes.get("aria-label"): each.attributes["href"] for each in page.all("a")}
    assert labels["Remove Outcome: inconsistent"] == "/runs/1/pairs?judge=good"
    assert labels["Remove Judge: good"] == "/runs/1/pairs?outcome=inconsistent"
