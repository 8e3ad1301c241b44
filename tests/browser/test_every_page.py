"""Every page in both languages, light and dark, wide and on a phone."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import cycle

import pytest
from playwright.sync_api import Page, expect

from browser_site import Site
from evenhand.serve.pages.addresses import PAGES
from evenhand.serve.pages.vote import NAME_COOKIE
from real_browser import (
    EVERY,
    PLAIN,
    Look,
    Surroundings,
    accessibility_faults,
    keep_screenshot,
    wider_than_the_window,
)

# What is looked at of each page, by its path: a name for the screenshot, and an address. The first
# is looked at in two surroundings, or in every one, the others in one each.
VISITS: dict[str, dict[str, str]] = {
    "/": {"runs": "/"},
    "/runs/{id}": {
        "run": "/runs/{rich}",
        "run-plain": "/runs/{plain}?side=A",
        "run-failed": "/runs/{failed}",
    },
    "/runs/{id}/pairs": {
        "pairs": "/runs/{rich}/pairs",
        "pairs-filtered": "/runs/{rich}/pairs?tag=中文&judgesDiffer=true&sort=confidence",
        "pairs-model": "/runs/{rich}/pairs?model=borealis&modelWins=true&ending=valid&named=two",
        "pairs-none": "/runs/{rich}/pairs?query=zygomorphic",
    },
    "/runs/{id}/pairs/{number}": {
        "pair": "/runs/{rich}/pairs/8",
        "pair-chinese": "/runs/{rich}/pairs/20?judge=hasty&view=raw",
        "pair-invalid": "/runs/{rich}/pairs/4",
    },
    "/rank": {
        "rank": "/rank?run={rich}",
        "rank-tag": "/rank?run={rich}&tag=science",
        "rank-choose": "/rank",
    },
    "/rank/pairs": {"rank-pairs": "/rank/pairs?run={rich}&run={plain}&model=borealis&ending=valid"},
    "/runs/{id}/audit": {"audit": "/runs/{rich}/audit", "audit-none": "/runs/{plain}/audit"},
    "/runs/{id}/probes": {"probes": "/runs/{rich}/probes"},
    "/runs/{id}/calibration": {
        "calibration": "/runs/{rich}/calibration",
        "calibration-none": "/runs/{plain}/calibration",
    },
    "/runs/{id}/vote": {"vote": "/runs/{rich}/vote", "vote-name": "/runs/{rich}/vote?rename=1"},
    "/runs/{id}/votes": {"votes": "/runs/{rich}/votes", "votes-none": "/runs/{plain}/votes"},
    "/try": {"try": "/try"},
}
# Answers that are no page for a reader: files, pictures, parts of pages, ways to a page.
NO_PAGES = {
    "/static/{name}",
    "/progress",
    "/runs/{id}/progress",
    "/runs/{id}/pair",
    "/runs/{id}/charts/{file}",
    "/rank/charts/{file}",
    "/login",  # goes on to the runs where no token is needed; test_login_in_browser.py
}
_FILES = ("csv", "jsonl", "parquet", "json")

# The first visit of each kind in both languages and both schemes, wide or as on a phone in turns;
# `make verify` takes it in every surroundings.
_BOTH = cycle(((EVERY[0], EVERY[2]), (EVERY[1], EVERY[3])))
_TURNS = cycle(EVERY)
_EVERYWHERE = "EVENHAND_EVERY_LOOK" in os.environ
LOOKS = [
    pytest.param(address, set_up, id=f"{name}-{set_up.name}")
    for visits in VISITS.values()
    for place, (name, address) in enumerate(visits.items())
    for set_up in ((EVERY if _EVERYWHERE else next(_BOTH)) if place == 0 else (next(_TURNS),))
]


def test_no_page_is_forgotten_here() -> None:
    paths = {page.path for page in PAGES if page.method == "GET"}
    pages = {path for path in paths if not path.endswith(tuple(f".{each}" for each in _FILES))}
    assert pages == VISITS.keys() | NO_PAGES


def opened(look: Look, site: Site, address: str, set_up: Surroundings) -> Page:
    """As somebody who has given a name to vote by."""
    page = look(None, set_up)
    page.context.add_cookies([{"name": NAME_COOKIE, "value": "eve", "url": site.url}])
    page.goto(site.url + address.format(**site.runs))
    return page


def settled(page: Page) -> None:
    """Figures that were being worked out are there, and so is every picture."""
    expect(page.locator("[data-live], [data-again]")).to_have_count(0, timeout=60_000)
    page.evaluate(
        """() => Promise.all(Array.from(document.images, (picture) => {
          picture.loading = "eager";
          return picture.decode();
        }))"""
    )


@pytest.mark.parametrize(("address", "set_up"), LOOKS)
def test_page_is_sound_and_fits(
    address: str, set_up: Surroundings, look: Look, site: Site, request: pytest.FixtureRequest
) -> None:
    """No word on the console, no request refused, nothing that axe-core finds, no sideways scroll;
    `look` itself fails for the first two."""
    page = opened(look, site, address, set_up)
    settled(page)
    keep_screenshot(page, request.node.callspec.id)
    assert (
        page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[set_up.language]
    )
    assert accessibility_faults(page) == []
    assert wider_than_the_window(page) == []


@pytest.mark.parametrize("address", [next(iter(visits.values())) for visits in VISITS.values()])
def test_page_reads_the_same_without_script(address: str, look: Look, site: Site) -> None:
    """Each heading and each field of the page is there before a script has run."""
    lively = opened(look, site, address, PLAIN)
    expect(lively.locator("[data-live], [data-again]")).to_have_count(0, timeout=60_000)
    still = opened(look, site, address, replace(PLAIN, script=False))
    parts = "main h1, main h2, main h3, main label, main th, main button"
    told, read = (page.locator(parts).all_inner_texts() for page in (lively, still))
    assert told == read
