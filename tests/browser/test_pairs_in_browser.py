"""Filter, search, sort and walk through a run's pairs, as a reader does."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from browser_site import Site, answers_by_model
from real_browser import (
    PHONE,
    PLAIN,
    Look,
    Surroundings,
    accessibility_faults,
    marks_seen,
)

ROWS = "table[data-keys] tbody tr"
# Each pair is judged by both judges, and a page of the table has 50 rows.
VERDICTS = 2 * len(answers_by_model())


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_table_is_filtered_by_outcome_and_its_address_can_be_shared(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs")
    page.locator("details.more > summary").click()
    page.get_by_role("combobox", name="Outcome", exact=True).select_option("inconsistent")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(f"{ROWS} .outcome-inconsistent")).to_have_count(page.locator(ROWS).count())
    assert query_of(page)["outcome"] == ["inconsistent"]
    again = look(page.url)
    assert again.locator(ROWS).all_inner_texts() == page.locator(ROWS).all_inner_texts()


@pytest.mark.parametrize("script", [True, False])
def test_differences_are_marked_where_most_words_are_shared_and_anyway(
    look: Look, site: Site, script: bool
) -> None:
    page = look(f"{site.run()}/pairs/1", Surroundings(script=script))
    pair, box = page.locator(".both"), page.locator(".marking input")
    expect(page.locator(".both .quiet").last).to_contain_text("of the text is the same")
    assert marks_seen(pair) == box.is_checked()
    box.click()
    assert marks_seen(pair) == box.is_checked()


@pytest.mark.parametrize("which", ["rich", "hostile"])  # of many flags, and of tags of any length
@pytest.mark.parametrize("set_up", [PLAIN, Surroundings(language="zh")], ids=["en", "zh"])
def test_rows_have_two_lines(which: str, set_up: Surroundings, look: Look, site: Site) -> None:
    page = look(f"{site.run(which)}/pairs", set_up)
    heights = page.locator(ROWS).evaluate_all("rows => rows.map((each) => each.offsetHeight)")
    assert heights
    assert max(heights) <= 72  # two lines of 26 pixels, and what is around them


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
    beside.get_by_role("link", name="Open in full").click()
    page.wait_for_url("**/pairs/4?*")


def focused_row(page: Page) -> None:
    """The row that the address names is marked, in sight and has the focus."""
    name = urlsplit(page.url).fragment
    row = page.locator(f"{ROWS}[aria-current]")
    expect(row).to_have_attribute("id", name)
    expect(row).to_be_in_viewport()
    expect(row.locator("td.lead a")).to_be_focused()


def test_u_leads_to_the_page_on_which_the_pair_stands_by_now(look: Look, site: Site) -> None:
    """The first page of 50 verdicts ends with the second one on pair 25."""
    page = look(f"{site.run()}/pairs?sort=number")
    page.locator("tr#pair-25 td.lead a").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/pairs/25*")
    page.keyboard.press("j")
    page.wait_for_url("**/pairs/26*")
    page.keyboard.press("u")
    page.wait_for_url("**#pair-26")
    assert "cursor" in query_of(page)
    focused_row(page)
    page.keyboard.press("k")  # it is the first of its page: nowhere to go
    focused_row(page)
    page.keyboard.press("Enter")
    page.wait_for_url("**/pairs/26*")
    page.keyboard.press("k")
    page.wait_for_url("**/pairs/25*")
    page.locator("a.end").click()
    page.wait_for_url("**#pair-25")
    assert "cursor" not in query_of(page)
    focused_row(page)


@pytest.mark.parametrize("query", ["sort=length&descending=true", "ending=valid&sort=confidence"])
def test_the_place_is_kept_in_filtered_and_sorted_tables(
    query: str, look: Look, site: Site
) -> None:
    page = look(f"{site.run()}/pairs?{query}")
    asked = query_of(page)
    rows = page.locator(f"{ROWS} td.lead a")
    rows.nth(rows.count() - 1).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/pairs/*")
    for _ in range(3):
        standing = page.locator(".bar h1").inner_text()
        page.locator("a[rel=next]").click()
        expect(page.locator(".bar h1")).not_to_have_text(standing)
    number = urlsplit(page.url).path.rpartition("/")[2]
    page.keyboard.press("u")
    page.wait_for_url(f"**#pair-{number}")
    focused_row(page)
    assert {name: query_of(page)[name] for name in asked} == asked


def test_the_browsers_own_way_back_has_the_row_too(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/pairs?judge=careful")
    for _ in range(20):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/pairs/20?*")
    page.go_back()
    page.wait_for_url("**#pair-20")
    row = page.locator(f"{ROWS}[aria-current]")
    expect(row).to_have_attribute("id", "pair-20")
    expect(row).to_be_in_viewport()


def test_beside_the_list_the_pair_is_open_again_however_one_comes_back(
    look: Look, site: Site
) -> None:
    page = look(f"{site.run()}/pairs?judge=careful")
    beside = page.locator(".opened")
    page.locator(f"{ROWS} td.what").nth(9).click(force=True)
    expect(beside.locator(".bar")).to_contain_text("10 of 36")
    page.reload()
    expect(beside.locator(".bar")).to_contain_text("10 of 36")
    beside.get_by_role("link", name="Open in full").click()
    page.wait_for_url("**/pairs/10?*")
    page.go_back()
    expect(beside.locator(".bar")).to_contain_text("10 of 36")
    beside.get_by_role("link", name="Open in full").click()
    page.wait_for_url("**/pairs/10?*")
    page.keyboard.press("j")
    page.wait_for_url("**/pairs/11?*")
    page.keyboard.press("u")
    expect(beside.locator(".bar")).to_contain_text("11 of 36")
    assert query_of(page) == {"judge": ["careful"], "beside": ["1"]}
    page.keyboard.press("Escape")
    expect(beside).to_be_hidden()
    assert query_of(page) == {"judge": ["careful"]}


def test_a_flag_beside_the_list_leaves_the_list_where_it_is(look: Look, site: Site) -> None:
    page = look(f"{site.run('plain')}/pairs")
    page.locator(f"{ROWS} td.what").nth(2).click(force=True)
    beside = page.locator(".opened")
    for act, flags in (("Flag", 1), ("Unflag", 0)):
        beside.locator(".flag summary").click()
        beside.get_by_role("button", name=act, exact=True).click()
        expect(page.locator("tr#pair-3 .flagged")).to_have_count(flags)
        expect(beside.locator(".bar")).to_contain_text("3 of 6")
    assert urlsplit(page.url).path.endswith("/pairs")


WHOLE_WORDS = """(line) => {
  // The last character on the first line, and the one after it.
  const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  const top = line.getBoundingClientRect();
  let before = "", after = "";
  for (let node; (node = texts.nextNode()); ) {
    for (let at = 0; at < node.length; at += 1) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      const box = range.getBoundingClientRect();
      const shown = box.width === 0 || (box.bottom <= top.bottom + 2 && box.right <= top.right + 1);
      if (shown && !after) before = node.data[at];
      else after ||= node.data[at];
    }
  }
  return [before, after];
}"""


@pytest.mark.parametrize("width", [1440, 1280, 1000])
def test_a_row_has_two_lines_and_none_ends_within_a_word(
    width: int, look: Look, site: Site
) -> None:
    page = look(f"{site.run()}/pairs", Surroundings(width=width, height=900))
    lines = page.locator(f"{ROWS} .what > *")
    assert lines.count() == 100
    cut = 0
    for at in range(40):
        line = lines.nth(at)
        box = line.bounding_box()
        assert box is not None
        assert box["height"] <= 24
        before, after = line.evaluate(WHOLE_WORDS)
        cut += bool(after)
        assert not (before.isalnum() and after.isalnum() and after.isascii()), (at, before, after)
    assert cut or width == 1280  # some are too long for the line


def test_columns_in_which_nothing_stands_are_not_there(look: Look, site: Site) -> None:
    """The plain run has no tags, labels or several judges."""
    page = look(f"{site.run('plain')}/pairs")
    heads = page.locator("table.pairs thead th").all_inner_texts()
    heads = [head.split()[0] for head in heads]
    assert heads == ["Number", "Verdict", "Prompt", "Confidence", "Length"]


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
