"""A pair of any size is shown: its beginning, as it is, in a box of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenhand.present.html.texts import LONGEST, MOST_MARKS, MOST_SHOWN, is_renderable
from html_reading import Element, Html
from page_visits import Visitor, serving
from scripted import answer_json
from servers import Reply, SeenRequest, chat_reply

WORD = "a" * 200_000
LINES = "".join(f"line {number}\n" for number in range(50_000))
TEXTS = {
    "a megabyte": ("word " * 200_000, "other " * 160_000),
    "one word": (WORD, WORD[:100_000] + "b" + WORD[100_001:]),
    "many lines": (LINES, LINES.replace("7", "seven")),
    "nothing but marks": ("[" * 29_000, "*a " * 9_500),
    "a page of prose": ("A sentence of *prose*. " * 300, "A sentence of prose. " * 300),
    "a few words": ("It is **four**.", "It is five."),
}
NUMBERS = {name: number for number, name in enumerate(TEXTS, start=1)}


def judge(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", confidence=0.7, criteria=[("accuracy", "A")]))


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    rows = [
        {"id": name, "prompt": "p", "response_a": a, "response_b": b}
        for name, (a, b) in TEXTS.items()
    ]
    with serving(tmp_path_factory.mktemp("huge"), judge) as visitor:
        visitor.start(rows, name="huge")
        yield visitor


def responses(page: Html) -> list[Element]:
    return [
        each
        for each in page.elements
        if "response" in each.attributes.get("class", "").split()
        and any("sides" in outer.attributes.get("class", "").split() for outer in each.within)
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_the_beginning_of_a_response_is_shown_whatever_its_length(
    visitor: Visitor, name: str
) -> None:
    page = visitor.see(f"/runs/1/pairs/{NUMBERS[name]}?view=raw")
    for shown, text in zip(responses(page), TEXTS[name], strict=True):
        # Of the white space at both ends, and of breaks, the reading of a page keeps nothing.
        assert shown.text.split() == text[:MOST_SHOWN].split()
    cut = [len(text) - MOST_SHOWN for text in TEXTS[name] if len(text) > MOST_SHOWN]
    for each in cut:
        assert f"{each:,} more characters are hidden here" in page.text


@pytest.mark.parametrize("name", TEXTS)
def test_a_long_response_moves_in_a_box_that_keys_reach(visitor: Visitor, name: str) -> None:
    page = visitor.see(f"/runs/1/pairs/{NUMBERS[name]}")
    found = responses(page)
    assert len(found) == 2
    for each in found:
        long = "long" in each.attributes["class"].split()
        assert long == (name != "a few words")
        assert not long or each.attributes["tabindex"] == "0"


@pytest.mark.parametrize(
    ("text", "renderable"),
    [
        ("a" * LONGEST, True),
        ("a" * (LONGEST + 1), False),
        ("[" * MOST_MARKS, True),
        ("[" * (MOST_MARKS + 1), False),
        ("*a* _b_ `c` " * (MOST_MARKS // 6 + 1), False),
        ("| a | b |\n" * 2_000, True),  # a table has its bars
    ],
)
def test_what_would_take_long_to_render_is_shown_as_it_is(text: str, renderable: bool) -> None:
    assert is_renderable(text) == renderable


def test_differences_of_huge_texts_are_not_looked_for(visitor: Visitor) -> None:
    for name in ("a megabyte", "many lines"):
        page = visitor.see(f"/runs/1/pairs/{NUMBERS[name]}")
        assert page.all("mark") == []
        assert "too long" in page.text
    assert visitor.see(f"/runs/1/pairs/{NUMBERS['a few words']}").all("mark")
