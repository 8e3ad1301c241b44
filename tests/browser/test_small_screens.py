"""On a phone what is read most fits without moving sideways, and no filters stand before it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser_site import Site
from real_browser import PHONE, Look


@pytest.mark.parametrize("address", ["/", "/runs/{rich}/pairs", "/rank?run={rich}"])
def test_what_is_read_most_fits_on_a_phone(address: str, look: Look, site: Site) -> None:
    page = look(site.url + address.format(**site.runs), PHONE)
    table = page.locator("table.stacks")
    expect(table).to_be_visible(timeout=60_000)
    over = table.evaluate(
        """(table) => [table, ...table.querySelectorAll("td, th")]
          .filter((each) => each.getBoundingClientRect().right > innerWidth)
          .map((each) => each.outerHTML.slice(0, 120))"""
    )
    assert over == []
    scrolls = table.evaluate(
        """(table) => {
          const region = table.closest(".scroll");
          return region.scrollWidth - region.clientWidth;
        }"""
    )
    assert scrolls == 0


def test_filters_are_folded_on_a_phone_and_open_at_a_touch(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs", PHONE)
    outcome = page.get_by_role("combobox", name="Outcome", exact=True)
    expect(outcome).to_be_hidden()
    expect(page.get_by_role("searchbox")).to_be_visible()
    page.locator("details.more > summary").click()
    outcome.select_option("tie")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/pairs?*outcome=tie*")
    expect(page.locator("details.more > summary")).to_contain_text("(1)")
    # Keys move from card to card as they do from row to row.
    page.keyboard.press("j")
    expect(page.locator("table.stacks tbody tr[aria-current]")).to_have_count(1)
