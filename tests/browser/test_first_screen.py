"""What a page concludes is read without scrolling: by where it stands, on three screens, light and
dark, in both languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Literal, get_args

import pytest
from playwright.sync_api import Page

from browser_site import Site
from evenhand.present.html.rendering import LANGUAGES
from real_browser import (
    Look,
    Surroundings,
    keep_screenshot,
    opened,
    settled,
    wider_than_the_window,
)

Scheme = Literal["light", "dark"]
SIZES = {13, 15, 17, 20, 24, 26, 32}
SCREENS = ((1440, 900), (1280, 800), (390, 844))
FIRST = Surroundings(width=1440, height=900)
# Screenshots of these; of every page in whole, test_every_page.py has some.
KEPT = {("en", "light", 1440), ("zh", "dark", 1280), ("en", "dark", 390), ("zh", "light", 390)}

# What has to be seen of each page: all of it, above the fold.
CONCLUSIONS = {
    "runs": ("/", "h1, table.runs tbody tr:first-child .name"),
    "run": ("/runs/{rich}", "h1.conclusion, table.board tbody tr:first-child"),
    "run-comparison": ("/runs/{rich}?comparison=1", "h1.conclusion, #trust-orders_agree"),
    "run-plain": ("/runs/{plain}", "h1.conclusion, #trust-orders_agree, svg.outcome-bar"),
    "pairs": ("/runs/{rich}/pairs", "table.pairs tbody tr:first-child"),
    "pair": ("/runs/{rich}/pairs/8", ".bar .outcome"),
    "pair-raw": ("/runs/{rich}/pairs/20?judge=hasty&view=raw", ".bar .outcome"),
    "compare": ("/compare?run={rich}", "h1.conclusion"),
    "rank": ("/rank?run={rich}", "h1.conclusion, table.board tbody tr:first-child"),
    "audit": ("/runs/{rich}/audit", "h1.conclusion, .warns, p.lede"),
    "calibration": ("/runs/{rich}/calibration", "h1.conclusion, ul.trust > li:first-child"),
    "probes": ("/runs/{probes}/probes", "h1.conclusion, table.probes tbody tr:first-child"),
    "votes": ("/runs/{rich}/votes", "h1.conclusion, svg.outcome-bar"),
    "vote": ("/runs/{rich}/vote", "h1.conclusion, #response-1"),
    "try": ("/try", "h1.conclusion, textarea[name=prompt]"),
}


@contextmanager
def every_surroundings(
    page: Page, address: str
) -> Iterator[Iterator[tuple[str, Scheme, int, int]]]:
    """The page in each of the twelve, one after another; it is loaded once a language."""

    def walk() -> Iterator[tuple[str, Scheme, int, int]]:
        for language in LANGUAGES:
            page.goto(f"{address}{'&' if '?' in address else '?'}lang={language}")
            settled(page)
            for scheme, (width, height) in product(get_args(Scheme), SCREENS):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": height})
                yield language, scheme, width, height

    try:
        yield walk()
    finally:
        page.emulate_media(color_scheme=FIRST.scheme)
        page.set_viewport_size({"width": FIRST.width, "height": FIRST.height})


@pytest.mark.parametrize("which", CONCLUSIONS)
def test_conclusion_is_on_the_first_screen_everywhere(which: str, look: Look, site: Site) -> None:
    address, wanted = CONCLUSIONS[which]
    page = opened(look, site, "/try", FIRST)  # with a voter's name
    walked = 0
    with every_surroundings(page, site.url + address.format(**site.runs)) as each:
        for language, scheme, width, height in each:
            walked += 1
            here = f"{language}-{scheme}-{width}"
            if (language, scheme, width) in KEPT:
                keep_screenshot(page, f"first-{which}-{here}", whole=False)
            for selector in wanted.split(", "):
                box = page.locator(selector).first.bounding_box()
                assert box is not None, (here, selector)
                assert box["y"] >= 0, (here, selector, box)
                assert box["y"] + box["height"] <= height, (here, selector, box)
                assert box["x"] + box["width"] <= width + 1, (here, selector, box)
            assert wider_than_the_window(page) == [], here
            # Charts are drawn in the page; pictures are downloads.
            assert page.locator("img").count() == 0
    assert walked == 12


@pytest.mark.parametrize("width", [1280, 390])
def test_targets_are_24_px_and_type_is_of_15_and_13(width: int, look: Look, site: Site) -> None:
    """24 px for what is pressed by itself (WCAG 2.5.8 leaves out links within sentences), and
    no other size than 15 and 13 px but in headings and key figures (17, 20, 24, 26, 32)."""
    page = opened(look, site, "/", Surroundings(width=width, height=844))
    for address, _ in CONCLUSIONS.values():
        page.goto(site.url + address.format(**site.runs))
        settled(page)
        small = page.evaluate(
            """() => Array.from(document.querySelectorAll(
                "button, select, summary, input:not([type=hidden]), .top a, .tabs a, .chips a"))
              .map((each) => [each, (each.closest("label") || each).getBoundingClientRect()])
              .filter(([, box]) => box.width && box.height && (box.height < 24 || box.width < 24))
              .map(([each, box]) => `${each.outerHTML.slice(0, 80)} ${box.width}x${box.height}`)"""
        )
        assert small == [], address
        sizes = page.evaluate(
            """() => Array.from(document.querySelectorAll("body *"))
              .filter((each) => !each.closest("svg, .markdown") && each.getClientRects().length
                && Array.from(each.childNodes).some((n) => n.nodeType === 3 && n.data.trim()))
              .map((each) => [parseFloat(getComputedStyle(each).fontSize),
                each.outerHTML.slice(0, 100)])"""
        )
        assert [each for each in sizes if each[0] not in SIZES] == [], address


def test_on_a_phone_one_response_is_shown_at_a_time_without_a_script(
    look: Look, site: Site
) -> None:
    page = look(f"{site.run()}/pairs/8", Surroundings(width=390, height=844, script=False))
    assert page.locator(".side-A").is_visible()
    assert not page.locator(".side-B").is_visible()
    page.locator(".switch label").nth(1).click()
    assert page.locator(".side-B").is_visible()
    assert not page.locator(".side-A").is_visible()


def test_pages_are_light(look: Look, site: Site) -> None:
    """Below 100 KB each, with style and script, where texts are short."""
    page = look(None)
    for path in (
        "/",
        "/runs/{rich}",
        "/runs/{rich}/pairs",
        "/runs/{rich}/pairs/8",
        "/rank?run={rich}",
    ):
        got = [
            page.request.get(site.url + each.format(**site.runs))
            for each in (path, "/static/evenhand.css", "/static/evenhand.js")
        ]
        assert sum(len(answer.body()) for answer in got) < 100_000, path
