"""A conclusion is copied as Markdown: with the clipboard, without it, and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from browser_site import Site
from real_browser import PLAIN, Look

PLACES = {
    "run": "/runs/{plain}",
    "rank": "/rank?run={rich}",
    "audit": "/runs/{rich}/audit",
    "compare": "/compare?run={rich}",
}
READ, WRITE = "clipboard-read", "clipboard-write"


@pytest.fixture
def page(look: Look) -> Iterator[Page]:
    page = look(None)
    yield page
    page.context.clear_permissions()


def opened(page: Page, site: Site, which: str) -> str:
    """What there is to copy, once it is unfolded."""
    page.goto(site.url + PLACES[which].format(**site.runs))
    expect(page.locator("[data-live], [data-again]")).to_have_count(0, timeout=60_000)
    page.get_by_text("Copy as Markdown").first.click()
    text: str = page.get_by_role("textbox", name="Copy as Markdown").first.input_value()
    assert text.strip()
    return text


@pytest.mark.parametrize("which", PLACES)
def test_the_button_puts_the_text_on_the_clipboard(which: str, page: Page, site: Site) -> None:
    page.context.grant_permissions([READ, WRITE], origin=site.url)
    text = opened(page, site, which)
    page.evaluate("navigator.clipboard.writeText('before')")
    button = page.locator("[data-copy]").first
    button.click()
    expect(button).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == text


def denied(page: Page, site: Site) -> None:
    """As a reader who refuses the page its clipboard: what is not granted is refused."""
    page.context.grant_permissions(["geolocation"], origin=site.url)


def test_a_page_that_is_refused_the_clipboard_copies_the_old_way(page: Page, site: Site) -> None:
    text = opened(page, site, "run")
    denied(page, site)
    state = "navigator.permissions.query({ name: 'clipboard-write' }).then((asked) => asked.state)"
    assert page.evaluate(state) == "denied"
    page.evaluate(
        "document.addEventListener('copy', () => { window.copied = getSelection().toString() "
        "|| document.activeElement.value; })"
    )
    button = page.locator("[data-copy]").first
    button.click()
    expect(button).to_have_text("Copied")
    assert page.evaluate("window.copied") == text


def test_where_nothing_can_copy_the_text_is_selected_and_the_button_says_so(
    page: Page, site: Site
) -> None:
    text = opened(page, site, "run")
    denied(page, site)
    page.evaluate("document.execCommand = () => false")
    button = page.locator("[data-copy]").first
    button.click()
    expect(button).to_have_text("Selected. Copy it with the keyboard.")
    chosen = "(box) => box.value.slice(box.selectionStart, box.selectionEnd)"
    assert page.get_by_role("textbox", name="Copy as Markdown").first.evaluate(chosen) == text


def test_without_a_script_the_text_is_there_to_be_selected(look: Look, site: Site) -> None:
    page = look(f"{site.run('plain')}", replace(PLAIN, script=False))
    page.get_by_text("Copy as Markdown").first.click()
    box = page.get_by_role("textbox", name="Copy as Markdown").first
    expect(box).to_be_visible()
    assert box.input_value().strip()
    expect(page.locator("[data-copy]").first).to_be_hidden()
