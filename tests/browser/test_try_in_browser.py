"""A comparison by hand, watched in a real browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from browser_site import Site, answers_by_model
from real_browser import Look, Surroundings, accessibility_faults, keep_screenshot


def fill(page: Page, place: int = 0) -> None:
    row = [case.row for case in answers_by_model()][place]
    page.fill("[name=prompt]", row["prompt"])
    page.fill("[name=responseA]", row["response_a"])
    page.fill("[name=responseB]", row["response_b"])
    page.fill("[name=criteria]", "accuracy\nclarity")


def test_both_passes_and_the_verdict_arrive_without_a_new_page(look: Look, site: Site) -> None:
    page = look(f"{site.url}/try")
    fill(page)
    page.evaluate("window.stayed = true")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#outcome .passes tbody tr")).to_have_count(3)  # overall, two criteria
    # What it came to is read first: before the form, in sight.
    box = page.locator("#outcome h1").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < page.locator("form[data-try]").evaluate("e => e.offsetTop")
    assert page.evaluate("window.stayed") is True
    expect(page.locator("form[data-try]")).not_to_have_attribute("aria-busy", "true")
    keep_screenshot(page, "try-verdict")
    assert accessibility_faults(page) == []
    # It can be asked again.
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#outcome .passes")).to_have_count(1)


def test_responses_change_places_in_the_form(look: Look, site: Site) -> None:
    page = look(f"{site.url}/try")
    fill(page)
    first, second = page.input_value("[name=responseA]"), page.input_value("[name=responseB]")
    page.get_by_role("button", name="Swap A and B").click()
    assert page.input_value("[name=responseA]") == second
    assert page.input_value("[name=responseB]") == first


def test_without_script_a_page_answers(look: Look, site: Site) -> None:
    page = look(f"{site.url}/try", Surroundings(script=False))
    fill(page)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#outcome .passes")).to_have_count(1)


def test_a_judge_that_fails_is_told_in_place(look: Look, site: Site) -> None:
    page = look(f"{site.url}/try")
    fill(page)
    page.select_option("[name=judge]", "broken")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_be_visible()
