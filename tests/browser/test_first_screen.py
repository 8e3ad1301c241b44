"""What a page concludes is read without scrolling: by where it stands, on three screens."""

from __future__ import annotations

import pytest

from browser_site import Site
from real_browser import Look, Surroundings, keep_screenshot, opened, settled

DESK = Surroundings(width=1440, height=900)
LAPTOP = Surroundings(language="zh", scheme="dark")
PHONE = Surroundings(scheme="dark", width=390, height=844)
PHONE_ZH = Surroundings(language="zh", width=390, height=844)
SCREENS = (DESK, LAPTOP, PHONE, PHONE_ZH)

# What has to be seen of each page: all of it, above the fold.
CONCLUSIONS = {
    "run": ("/runs/{rich}", "h1.conclusion"),
    "run-comparison": ("/runs/{rich}?comparison=1", "h1.conclusion, #trust-orders_agree"),
    "run-plain": ("/runs/{plain}", "h1.conclusion, #trust-orders_agree, svg.outcome-bar"),
    "pair": ("/runs/{rich}/pairs/8", ".bar .outcome"),
    "pair-raw": ("/runs/{rich}/pairs/20?judge=hasty&view=raw", ".bar .outcome"),
    "rank": ("/rank?run={rich}", "h1.conclusion, table.board tbody tr:first-child"),
    "audit": ("/runs/{rich}/audit", "h1.conclusion"),
}


@pytest.mark.parametrize("set_up", SCREENS, ids=lambda each: each.name)
@pytest.mark.parametrize("which", CONCLUSIONS)
def test_conclusion_is_on_the_first_screen(
    which: str, set_up: Surroundings, look: Look, site: Site
) -> None:
    address, wanted = CONCLUSIONS[which]
    page = opened(look, site, address, set_up)
    settled(page)
    keep_screenshot(page, f"first-{which}-{set_up.name}")
    for selector in wanted.split(", "):
        box = page.locator(selector).first.bounding_box()
        assert box is not None, selector
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= set_up.height, (selector, box)
        assert box["x"] + box["width"] <= set_up.width + 1


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
