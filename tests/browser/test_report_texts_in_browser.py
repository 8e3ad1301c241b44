"""Judged texts in a report that is one file: Markdown as on the served pages, and nothing runs.

The report is opened once and read from pair to pair, as its readers do; a test fails for what the
page said, asked for or did while it was looked at.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from cases import each_case
from evenhand.present.html.one_file import write_html_report
from evenhand.present.html.texts import show_text
from evenhand.report.conclusions import conclude
from evenhand.store import open_store
from html_reading import ATTACKS, HARM, Html
from one_files import finished_run, hostile_rows, rows_of
from real_browser import PHONE, Look, wider_than_the_window

MARKDOWN = (
    "# Head\n\nA *b* **c** `d` ~~e~~\nnext  \nbroken",
    "- a\n- b\n  - c\n- d\n\nAfter.",
    "3. three\n4. four",
    "> quoted\n> more\n\nAfter.",
    "```python\ndef f(x):\n    return x\n```\nAfter.",
    "| a | b |\n|---|--:|\n| 1 | **2** |",
    "snake_case_word and __init__ and 2 * 3 * 4",
    "[one](https://example.org/a) [two](javascript:alert(1)) <https://example.org>",
    "***both*** and \\*none\\* and **open",
    "Title\n=====\n\nSub\n---\n\n    code\n\n***\nEnd.",
)
# Characters by name and by number: text wherever they stand, and never the beginning of markup.
REFERENCES = (
    "R&amp;D, 3 &lt; 4, it&#39;s, it&#x27;s, caf&eacute;, a&nbsp;b, &hellip; &AMP; &ngE;",
    f"&lt;script&gt;{HARM}&lt;/script&gt;",
    f"&#60;img src=x onerror={HARM}&#62; and &#x3C;svg onload={HARM}&#x3E;",
    "&amp;lt;script&amp;gt; is decoded once",
    f"&amp;#60;script&amp;#62;{HARM}",
    "no semicolon &amp &lt &copy, no such &thing; &constructor; &__proto__; &#; &#x; &;",
    "&#0; &#xD800; &#x110000; &#128; &#xFDD0; &#xFFFF; &#99999999; &#x1F600;",
    "`&amp; in code` and ``&lt;``",
    "```\n&lt;b&gt; in a fence\n```\n\n    &lt;i&gt; indented",
    "&#42;no emphasis&#42; and *&amp;* and **a&nbsp;b**",
    "\\&amp; is escaped, &#92;&amp; is not",
    "&#35; no heading\n\n&#45; no item\n\n&#62; no quote\n\n&#9;no code",
    "two blanks by number&#32;&#32;\nbreak no line",
    "| a&#124;b | &lt; |\n|---|---|\n| &gt; | `&gt;` |",
    "[a &amp; b](https://example.org/?x=1&amp;y=2) <https://example.org/?x&amp;y>",
    f"[a](javascript&colon;{HARM}) [b](&#106;avascript:{HARM}) [c](java&Tab;script:{HARM})",
    f"[out](https://example.org/&quot;onmouseover=&quot;{HARM}) [gt](https://example.org/&gt;)",
    f"![a &lt; b &amp; *c*](https://example.org/a.png) ![x](javascript&colon;{HARM})",
    "## Head &amp; tail\n\n- item &lt;1&gt;\n- &copy;\n\n> quoted &raquo;",
)


# Made before the browser, whose loop counts as running while it is there.
@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`hostile` and `markdown`."""
    directory = tmp_path_factory.mktemp("reports")
    written = [
        replace(row, key=f"m{n}", pair={"prompt": "?", "response_a": text, "response_b": "b"})
        for n, (row, text) in enumerate(
            zip(rows_of("A" * 99), (*MARKDOWN, *REFERENCES), strict=False), start=1
        )
    ]
    with open_store(directory / "evenhand.db") as store:
        for name, rows in (("hostile", hostile_rows()), ("markdown", written)):
            finished_run(store, name, rows)
            write_html_report(store, conclude(store, name), directory / f"{name}.html")
    return directory


@pytest.fixture
def page(request: pytest.FixtureRequest, look: Look, reports: Path) -> Page:
    """Opened once for all its texts, and fitting."""
    page = look((reports / f"{request.param}.html").as_uri(), PHONE)
    expect(page.locator("#live tbody tr").first).to_be_visible()
    assert wider_than_the_window(page, whole=False) == []
    return page


def turn_to(page: Page, asked: str) -> None:
    page.evaluate("(asked) => { location.hash = asked; }", asked)


@pytest.mark.parametrize("page", ["markdown"], indirect=True)
@each_case(
    ("number", "text"),
    list(enumerate((*MARKDOWN, *REFERENCES), start=1)),
    ids=lambda case: f"{case[0]} {case[1][:24].strip()}",
)
def test_text_reads_as_on_the_served_pages(number: int, text: str, page: Page) -> None:
    """Kinds of elements, addresses and the text in them, whichever of the two makes them."""
    turn_to(page, f"#pairs?pair={number}")
    expect(page.locator("#pair-title")).to_contain_text(re.compile(rf"\bm{number}$"))
    shown = page.locator("article.reader .side-A .markdown")
    ours = Html(f"<main>{show_text(text, rendered=True).html}</main>")
    made = shown.evaluate(
        "box => Array.from(box.querySelectorAll('*'), (each) => [each.tagName, each.href])"
    )
    kinds = [kind.lower() for kind, _ in made if kind not in ("DIV", "MARK")]
    assert kinds == [each.tag for each in ours.elements if each.tag != "main"]
    links = [address for kind, address in made if kind == "A"]
    theirs = [each.attributes["href"] for each in ours.elements if each.tag == "a"]
    assert links == page.evaluate("all => all.map((each) => new URL(each).href)", theirs)
    # Where blocks end, one has a line's end that the other has not.
    told = re.sub(r"[ \n\t]", "", shown.text_content() or "")
    assert told == re.sub(r"[ \n\t]", "", "".join(ours.elements[0].texts))


@pytest.mark.parametrize("page", ["hostile"], indirect=True)
@each_case("number", range(1, len(ATTACKS) + 1), ids=lambda number: ATTACKS[number - 1].name)
def test_hostile_pair_shows_as_text(number: int, page: Page) -> None:
    attack = ATTACKS[number - 1]
    turn_to(page, f"#pairs?pair={number}&view=raw")
    first = page.locator("article.reader .side-A pre.response")
    expect(first).to_contain_text(f"A of {attack.name}:")
    assert first.text_content() == f"A of {attack.name}: {attack.text}"
    turn_to(page, f"#pairs?pair={number}")
    rendered = page.locator("article.reader .side-A .response.markdown")
    expect(rendered).to_contain_text(f"A of {attack.name}")
    active = "main script, main iframe, main object, main style, main math, main base, main meta"
    assert page.locator(active).count() == 0
    attributes = page.eval_on_selector_all(
        "article.reader *", "all => all.flatMap((each) => each.getAttributeNames())"
    )
    assert not [name for name in attributes if name.startswith("on") or name == "style"]
    links = page.eval_on_selector_all(
        "article.reader a", "all => all.map((each) => each.getAttribute('href'))"
    )
    assert all(re.match(r"#pairs|https?://|mailto:", str(link)) for link in links)
    # Marks that are stacked on one letter have no place where they could be broken.
    assert wider_than_the_window(page, whole=False) == []
