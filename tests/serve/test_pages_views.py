"""Saved views on the table of pairs, as a reader without JavaScript uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.store import Store, open_store
from html_reading import Html
from page_visits import Visitor, rows_of, seen, serving
from run_data import adds_up, sums

HOSTILE = "<img src=x onerror=alert(1)> “B” & 响应"


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with serving(tmp_path_factory.mktemp("pages"), adds_up, judges=("good", "other")) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def run(visitor: Visitor) -> str:
    return visitor.start(sums(6), judges=["good"])


@pytest.fixture(scope="module")
def later(visitor: Visitor) -> str:
    """Of other data, by another judge."""
    return visitor.start(sums(9), judges=["other"])


@pytest.fixture(autouse=True)
def _no_views(visitor: Visitor) -> Iterator[None]:
    yield
    with opened(visitor) as store:
        for view in store.views():
            store.remove_view(view.name)


def opened(visitor: Visitor) -> Store:
    address = visitor.service.config.store
    assert address is not None
    return open_store(address)


def chips(page: Html) -> dict[str, tuple[str, bool]]:
    """Of each view, what its chip says behind the name, and whether it is the one shown."""
    found: dict[str, tuple[str, bool]] = {}
    for link in page.all("a"):
        views = [each for each in link.within if each.attributes.get("class") == "views"]
        if views:
            (name,) = [each.text for each in page.all("bdi") if link in each.within]
            rest = link.text.removeprefix(name).strip()
            found[name] = (rest, link.attributes.get("aria-current") == "true")
    return found


def chip_address(page: Html, name: str) -> str:
    (found,) = [
        each.within[-1].attributes["href"]
        for each in page.all("bdi")
        if each.text == name and each.within[-1].tag == "a"
    ]
    assert found is not None
    return found


def save_form(page: Html) -> str:
    (form,) = {
        each.within[-1].attributes["action"]
        for each in page.all("label")
        if "/views" in (each.within[-1].attributes.get("action") or "")
    }
    assert form is not None
    return form


def test_filters_are_saved_under_a_name_and_opened_on_every_run(
    visitor: Visitor, run: str, later: str
) -> None:
    """The judge is right: B wins every third pair, that is 2 of 6 and 3 of 9."""
    assert "Save this view" not in visitor.see(f"{run}/pairs").text  # there is nothing to save
    asked = f"{run}/pairs?winner=B&sort=length&descending=true"
    answer = visitor.send(save_form(visitor.see(asked)), {"name": HOSTILE})
    assert (answer.status_code, answer.headers["location"]) == (303, asked)
    assert chips(visitor.see(asked)) == {HOSTILE: ("2", True)}
    assert chips(visitor.see(f"{run}/pairs")) == {HOSTILE: ("2", False)}
    other = visitor.see(f"{later}/pairs")
    assert chips(other) == {HOSTILE: ("3", False)}
    page = visitor.see(chip_address(other, HOSTILE))
    assert rows_of(page) == [9, 6, 3]
    assert chips(page) == {HOSTILE: ("3", True)}


def test_a_view_is_deleted_from_the_table_that_is_shown(visitor: Visitor, run: str) -> None:
    visitor.send(f"{run}/views?winner=B", {"name": "one"})
    visitor.send(f"{run}/views?winner=A", {"name": HOSTILE})
    page = visitor.see(f"{run}/pairs?outcome=win")
    (button,) = [
        each for each in page.all("button", name="remove") if each.attributes["value"] == HOSTILE
    ]
    assert button.attributes["aria-label"] == f"Delete {HOSTILE}"
    answer = visitor.send(f"{run}/views?outcome=win", {"remove": HOSTILE})
    assert answer.headers["location"] == f"{run}/pairs?outcome=win"
    assert list(chips(visitor.see(f"{run}/pairs"))) == ["one"]
    assert visitor.send(f"{run}/views", {"remove": HOSTILE}).status_code == 303  # gone already


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "the view has no name"),
        ("taken", "there is a view named 'taken' already"),
        ("x" * 81, "81 characters; give 80 at most"),
        ("a\u202eb", "U+202E"),
    ],
)
def test_a_name_that_cannot_be_is_said_on_the_table(
    name: str, told: str, visitor: Visitor, run: str
) -> None:
    visitor.send(f"{run}/views?winner=B", {"name": "taken"})
    page = seen(visitor.send(f"{run}/views?winner=A", {"name": name}), 422)
    assert told in page.one("p", role="alert").text
    assert rows_of(page) == [1, 2, 4, 5]
    assert page.one("input", name="name").attributes["value"] == name
    assert list(chips(visitor.see(f"{run}/pairs"))) == ["taken"]


@pytest.mark.parametrize(
    ("stored", "rows", "told"),
    [
        ('{"outcome":"win","colour":"red","winner":"B"}', [3, 6], "left out: colour"),
        ('{"winner":"B","minConfidence":7,"sort":[1]}', [3, 6], "left out: minConfidence, sort"),
        ('{"winner":"B","modelWins":true}', [3, 6], "left out: modelWins"),
        ('{"judge":"other","winner":"B"}', [3, 6], "left out: judge"),
        ('{"outcome":', [1, 2, 3, 4, 5, 6], "cannot be read"),
        ("[]", [1, 2, 3, 4, 5, 6], "cannot be read"),
        ('{"<b>":1}', [1, 2, 3, 4, 5, 6], "left out: <b>"),
    ],
)
def test_a_view_that_is_damaged_or_of_elsewhere_opens_with_a_note(
    stored: str, rows: list[int], told: str, visitor: Visitor, run: str
) -> None:
    with opened(visitor) as store:
        store.save_view(HOSTILE, {})
        with store._writing() as connection:
            write: Any = "UPDATE saved_views SET filters = ?"
            connection.exec_driver_sql(write, (stored,))
    page = visitor.see(f"{run}/pairs")
    assert chips(page)[HOSTILE] == (f"⚠ {len(rows)}", False)
    found = visitor.see(chip_address(page, HOSTILE))
    assert rows_of(found) == rows
    note = found.one("p", class_="note").text
    assert HOSTILE in note
    assert told in note


def test_an_address_that_names_a_view_that_is_gone_shows_its_filters(
    visitor: Visitor, run: str
) -> None:
    page = visitor.see(f"{run}/pairs?winner=B&saved=nothing")
    assert rows_of(page) == [3, 6]
    assert page.all("p", class_="note") == []


def test_words_of_a_view_are_forgotten_with_their_run(visitor: Visitor) -> None:
    run = visitor.start(sums(2, begin=40), judges=["good"], name="to be forgotten")
    visitor.send(f"{run}/views?query=plus", {"name": "words"})
    visitor.send(f"{run}/views?winner=A", {"name": "plain"})
    assert chips(visitor.see(f"{run}/pairs"))["words"] == ("2", False)
    with opened(visitor) as store:
        store.forget_texts("to be forgotten")
        assert [view.name for view in store.views()] == ["plain"]
