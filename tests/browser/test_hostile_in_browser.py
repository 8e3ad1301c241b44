"""Judged texts are hostile: whatever a page shows of them, it shows as text.

`look` fails where one of them ran, opened a dialog, asked the network or broke the policy.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser_site import HOSTILE_NAME, Site
from html_reading import ATTACKS, Attack
from real_browser import PHONE, Look, wider_than_the_window

NUMBERED = [pytest.param(n, attack, id=attack.name) for n, attack in enumerate(ATTACKS, start=1)]
# Made by markup alone: a judged text that gets one of these has become more than a text.
_ACTIVE = "script:not([src^='/static/']), iframe, object, embed, base, style, math, .response form"


def poke(page: Page) -> None:
    """What a reader might do by accident: point at links and press them."""
    # On a phone the responses are shown one at a time.
    for tab in [None, *page.locator(".switch label").all()]:
        if tab is not None and tab.is_visible():
            tab.click()
        for link in page.locator(".response a").all():
            if link.is_visible():
                link.hover()
    assert page.locator(_ACTIVE).count() == 0
    handlers = page.evaluate(
        """() => Array.from(document.querySelectorAll("main *"))
          .flatMap((each) => Array.from(each.attributes, (one) => one.name))
          .filter((name) => name.startsWith("on"))"""
    )
    assert handlers == []
    targets = page.evaluate(
        "() => Array.from(document.links, (link) => link.protocol).filter("
        "(each) => !['http:', 'https:', 'mailto:'].includes(each))"
    )
    assert targets == []


@pytest.mark.parametrize(("number", "attack"), NUMBERED)
def test_pair_shows_it_as_text(number: int, attack: Attack, look: Look, site: Site) -> None:
    page = look(f"{site.run('hostile')}/pairs/{number}?view=raw", PHONE)
    told = page.locator(".side-A pre.response").text_content()
    assert told is not None
    assert told.strip("\n") == f"{attack.text}\n\nA of {attack.name}"
    poke(page)
    assert wider_than_the_window(page, whole=False) == []
    page.goto(f"{site.run('hostile')}/pairs/{number}")
    expect(page.locator(".side-B")).to_contain_text(f"B of {attack.name}")
    poke(page)
    assert wider_than_the_window(page, whole=False) == []


@pytest.mark.parametrize(
    "address", ["/", "{run}", "{run}/pairs", "{run}/pairs?sort=length&descending=true"]
)
def test_lists_show_names_and_tags_as_text(address: str, look: Look, site: Site) -> None:
    page = look(site.url + address.format(run=f"/runs/{site.runs['hostile']}"), PHONE)
    expect(page.locator("body")).to_contain_text(HOSTILE_NAME)
    poke(page)
    assert wider_than_the_window(page, whole=False) == []


@pytest.mark.parametrize(
    "attack", ["<script>window.harmed=true</script>", "'\"><img src=x onerror=window.harmed=true>"]
)
@pytest.mark.parametrize("place", ["query", "tag", "cursor", "lang", "unknown"])
def test_address_shows_as_text(attack: str, place: str, look: Look, site: Site) -> None:
    """Whether it is a search that finds nothing or a parameter that is refused."""
    look.watch.allowed |= {400, 404, 422}
    page = look(None)
    page.goto(f"{site.run()}/pairs")
    page.evaluate("([name, value]) => { location.search = new URLSearchParams([[name, value]]) }",
                  [place, attack])  # fmt: skip
    page.wait_for_url("**/pairs?*")
    poke(page)
