"""Filter, search, sort and walk through a run's pairs, as a reader does."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from browser_site import Site, answers_by_model
from real_browser import PHONE, Look, accessibility_faults

ROWS = "table[data-keys] tbody tr"
# Each pair is judged by both judges, and a page of the table has 50 rows.
VERDICTS = 2 * len(answers_by_model())


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_table_is_filtered_by_outcome_and_its_address_can_be_shared(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs")
    page.locator("details.more > summary").click()
    page.get_by_role("combobox", name="Outcome", exact=True).select_option("inconsistent")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(f"{ROWS} .outcome-inconsistent")).to_have_count(page.locator(ROWS).count())
    assert query_of(page)["outcome"] == ["inconsistent"]
    again = look(page.url)
    assert again.locator(ROWS).all_inner_texts() == page.locator(ROWS).all_inner_texts()


@pytest.mark.parametrize("words", ["freezer bread", "密度", "LIBRATION"])
def test_words_that_are_typed_find_their_pairs(words: str, look: Look, site: Site) -> None:
    """Of the topic that holds them: six pairs of models, judged twice."""
    page = look(f"{site.run()}/pairs")
    field = page.get_by_role("searchbox")
    field.press_sequentially(words)
    field.press("Enter")
    expect(page.locator(ROWS)).to_have_count(12)


def test_search_that_finds_nothing_says_so(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs")
    page.get_by_role("searchbox").fill("zygomorphic")
    page.get_by_role("searchbox").press("Enter")
    expect(page.get_by_role("table")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("0")


def test_keys_move_through_the_table_and_from_pair_to_pair(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs?judge=careful")
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("k")
    marked = page.locator(f"{ROWS}[aria-current]")
    expect(marked).to_have_count(1)
    expect(marked.get_by_role("link").first).to_be_focused()
    second = page.locator(ROWS).nth(1).inner_text()
    assert marked.inner_text() == second
    page.keyboard.press("Enter")
    page.wait_for_url("**/pairs/2?*")
    page.keyboard.press("j")
    page.wait_for_url("**/pairs/3?*")
    page.keyboard.press("k")
    page.wait_for_url("**/pairs/2?*")
    page.keyboard.press("u")
    page.wait_for_url("**/pairs?*")
    assert query_of(page) == {"judge": ["careful"]}
    # Back at the row that it came from.
    assert urlsplit(page.url).fragment == "pair-2"
    expect(page.locator(f"{ROWS}[aria-current]")).to_have_attribute("id", "pair-2")


def test_pair_opens_beside_the_list_which_keeps_its_place(look: Look, site: Site) -> None:
    """All of a row is its link."""
    page = look(f"{site.run()}/pairs?judge=careful")
    page.locator(f"{ROWS} td.what").nth(3).click(force=True)
    beside = page.locator(".opened")
    expect(beside.locator(".side-A")).to_be_visible()
    expect(beside.locator(".bar")).to_contain_text("4 of 36")
    expect(page.locator(f"{ROWS}[aria-current]")).to_have_attribute("id", "pair-4")
    page.keyboard.press("j")
    expect(beside.locator(".bar")).to_contain_text("5 of 36")
    assert urlsplit(page.url).path.endswith("/pairs")
    assert accessibility_faults(page) == []
    page.keyboard.press("Escape")
    expect(beside).to_be_hidden()
    page.locator(f"{ROWS} td.what").nth(3).click(force=True)
    beside.get_by_role("link", name="Open alone").click()
    page.wait_for_url("**/pairs/4?*")


def test_where_there_is_no_room_a_pair_opens_alone(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs?judge=careful", PHONE)
    page.locator(f"{ROWS} td.what").nth(3).click(force=True)
    page.wait_for_url("**/pairs/4?*")


def test_slash_leads_to_the_search_and_a_question_mark_to_the_keys(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs")
    page.keyboard.press("?")
    expect(page.get_by_text("next and previous pair")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    assert page.get_by_role("searchbox").input_value() == ""


def test_keys_are_letters_where_somebody_types(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs")
    page.get_by_role("searchbox").press_sequentially("jk")
    assert page.get_by_role("searchbox").input_value() == "jk"
    expect(page.locator(f"{ROWS}[aria-current]")).to_have_count(0)


def test_pages_of_the_table_show_every_verdict_once(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs")
    seen: list[str] = []
    while True:
        rows = page.locator(ROWS).all_inner_texts()
        assert len(rows) <= 50
        seen += rows
        following = page.locator("nav.pager a[rel=next]")
        if following.count() == 0:
            break
        following.click()
        page.wait_for_load_state()
    assert len(seen) == len(set(seen)) == VERDICTS


def test_table_is_sorted_by_confidence_both_ways(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs?outcome=win")
    for direction in ("ascending", "descending"):
        page.get_by_role("columnheader").get_by_role("link", name="Confidence").click()
        head = page.locator(f"th[aria-sort={direction}]")
        expect(head).to_have_count(1)
        column = head.evaluate("(cell) => cell.cellIndex + 1")
        shown = page.locator(f"{ROWS} td:nth-child({column})").all_inner_texts()
        figures = [float(each.split()[0]) for each in shown]
        assert figures == sorted(figures, reverse=direction == "descending")


def test_pair_is_rendered_or_raw_and_judged_again(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs/7")  # the first about code
    assert page.locator(".side-A pre code, .side-B pre code").count() >= 1
    page.get_by_text("About this pair").click()
    page.get_by_role("link", name="raw").click()
    expect(page.locator(".side-A pre.response")).to_contain_text("```python")
    page.locator("summary", has_text="Judge again").click()
    page.get_by_role("combobox", name="Judge", exact=True).select_option("hasty")
    page.get_by_role("button", name="Judge again").click()
    expect(page.locator("#again-result")).to_contain_text("hasty")


def test_a_cell_of_the_win_matrix_leads_to_its_pairs(look: Look, site: Site) -> None:
    """Two models meet on each of six topics, before two judges; on either side."""
    page = look(f"{site.url}/rank?run={site.runs['rich']}")
    cell = page.locator("table.matrix tbody tr").first.locator("a").first
    cell.click()
    page.wait_for_url("**/pairs?*")
    fields = ("model", "against")
    chosen = {page.locator(f"select[name={name}]").input_value() for name in fields}
    assert len(chosen) == 2
    met = page.locator("table.pairs tbody .why").all_inner_texts()
    assert 0 < len(met) <= 12
    for each in met:
        assert all(name in each for name in chosen)
