"""Every page in both languages, light and dark, wide and on a phone."""

from __future__ import annotations

import os
from itertools import cycle

import pytest

from browser_site import Site
from evenhand.serve.pages.routes import PAGES
from real_browser import (
    EVERY,
    FILES,
    NO_PAGES,
    VISITS,
    Look,
    Surroundings,
    accessibility_faults,
    keep_screenshot,
    opened,
    settled,
    wider_than_the_window,
)

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
    pages = {path for path in paths if not path.endswith(tuple(f".{each}" for each in FILES))}
    assert pages == VISITS.keys() | NO_PAGES


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
