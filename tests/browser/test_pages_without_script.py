"""Every page is whole before a script has run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from browser_site import Site
from real_browser import PLAIN, VISITS, Look, opened


@pytest.mark.parametrize("address", [next(iter(visits.values())) for visits in VISITS.values()])
def test_page_reads_the_same_without_script(address: str, look: Look, site: Site) -> None:
    """Each heading and each field of the page is there before a script has run."""
    lively = opened(look, site, address, PLAIN)
    expect(lively.locator("[data-live], [data-again]")).to_have_count(0, timeout=60_000)
    still = opened(look, site, address, replace(PLAIN, script=False))
    parts = "main h1, main h2, main h3, main label, main th, main button"
    told, read = (page.locator(parts).all_inner_texts() for page in (lively, still))
    assert told == read
