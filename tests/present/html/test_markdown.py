"""Markdown of strangers: what it may become, and what it may not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.present.html.texts import Document
from html_reading import Html, harm_in

_PIECES = st.sampled_from(
    [
        *"<>&\"'`*_~[]()!#|-=:\\\n ",
        "<script>",
        "</p>",
        "javascript:",
        "data:text/html,",
        "onerror=",
        "](",
        "![",
        "http://a.example",
        "```",
        "| a |",
        "|-|",
        "\t",
        "&#106;",
        "word",
    ]
)


def html(text: str) -> Html:
    return Html(f"<main>{Document(text).html()}</main>")


def test_headings_lists_code_and_tables_are_rendered() -> None:
    page = html("# Head\n\n- one\n- two\n\n`x`\n\n| a | b |\n|--:|:-:|\n| 1 | 2 |\n")
    assert page.one("p", class_="heading-1").text == "Head"
    assert [item.text for item in page.all("li")] == ["one", "two"]
    assert page.one("code").text == "x"
    assert [cell.attributes.get("class") for cell in page.all("td")] == ["to-right", "to-center"]


def test_headings_of_strangers_stay_out_of_the_pages_outline() -> None:
    page = html("# a\n## b\nc\n=\n")
    assert not [each for each in page.elements if each.tag in ("h1", "h2", "h3", "h4", "h5", "h6")]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<svg onload="alert(1)"><foreignObject><b>x</b></foreignObject></svg>',
        "<iframe srcdoc='<script>1</script>'></iframe>",
        "<style>*{display:none}</style>",
        "<!-- --><base href=//evil.example>",
    ],
)
def test_html_in_markdown_is_text(text: str) -> None:
    page = html(text)
    assert harm_in(page) == []
    assert page.text == " ".join(text.split())


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java&#115;cript:alert(1)",
        "vbscript:x",
        "data:text/html,<script>alert(1)</script>",
        "data:image/svg+xml;base64,PHN2Zz4=",
        "file:///etc/passwd",
        "//evil.example",
        "/runs/1/cancel",
        "blob:x",
    ],
)
@pytest.mark.parametrize("form", ["[x]({})", "<{}>", "![x]({})", "[x][y]\n\n[y]: {}"])
def test_links_elsewhere_than_to_pages_and_mail_are_no_links(link: str, form: str) -> None:
    page = html(form.format(link))
    assert page.links == []
    assert harm_in(page) == []


def test_a_link_to_a_page_tells_its_owner_nothing() -> None:
    link = html("[here](https://a.example/?x=1&y=2)").one("a")
    assert link.attributes["href"] == "https://a.example/?x=1&y=2"
    assert {"noopener", "noreferrer", "nofollow"} <= set(link.attributes["rel"].split())


def test_an_image_is_never_loaded() -> None:
    page = html("![who looks?](https://tracker.example/pixel.png)")
    assert page.all("img") == []
    assert page.one("a", class_="image").text == "who looks?"


def test_what_is_told_of_an_image_is_plain_text() -> None:
    page = html("![a &lt;b&gt; *c* `d`](https://tracker.example/pixel.png)")
    assert page.one("a", class_="image").text == "a <b> c d"
    assert page.all("b") == page.all("em") == page.all("code") == []


def test_a_quote_in_a_link_ends_no_attribute() -> None:
    page = html('[x](https://a.example/"onmouseover="alert(1) "t\\" onclick=\\"y")')
    assert harm_in(page) == []


def test_the_language_of_a_code_block_becomes_no_attribute() -> None:
    page = html('```x" onload="alert(1)\ncode\n```')
    assert harm_in(page) == []
    assert page.one("code").attributes == {}


@pytest.mark.parametrize("text", ["[x]()", "[x](<>)", "![x]()", "[](  )", "[x][y]\n\n[y]: <>"])
def test_an_empty_address_is_no_link(text: str) -> None:
    assert html(text).links == []


@settings(deadline=None)
@given(st.lists(_PIECES, max_size=60).map("".join))
def test_nothing_that_is_written_can_do_anything(text: str) -> None:
    page = html(text)
    assert harm_in(page) == []
    assert {each.tag for each in page.elements} <= {
        *("main", "p", "a", "code", "pre", "em", "strong", "s", "ul", "ol", "li", "blockquote"),
        *("hr", "br", "table", "thead", "tbody", "tr", "th", "td"),
    }
