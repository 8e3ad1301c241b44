"""What is looked at of each page in a real browser, and how it is opened."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from browser_site import Site
from evenhand.serve.pages.vote import NAME_COOKIE
from real_browser import Look, Surroundings

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
FILES = ("csv", "jsonl", "parquet", "json")


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
