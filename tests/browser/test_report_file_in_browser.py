"""The report that is one file, opened from the disk in a real browser.

`look` fails where the page says anything on the console, asks the network, or breaks its policy.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from evenhand.present.html.one_file import write_html_report
from evenhand.report.conclusions import conclude
from evenhand.store import open_store
from one_files import assert_links_show_what_they_count, finished_run, rows_of
from real_browser import (
    EVERY,
    Look,
    Surroundings,
    accessibility_faults,
    keep_screenshot,
    marks_seen,
    wider_than_the_window,
)
from stored_runs import says

LETTERS = "BBABBTIBXA" * 12
REASONED = {
    "A": says("A", reasoning="Response A shows clear steps."),
    "B": says("B", reasoning="Response B is right about the sum."),
}


# Made before the browser, whose loop counts as running while it is there.
@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`rich` in both languages."""
    directory = tmp_path_factory.mktemp("reports")
    rows = [
        replace(
            row,
            answer=REASONED.get(letter, row.answer),
            label="B" if n % 3 else None,
            tags=("math",) if n % 2 else ("prose", "easy"),
            pair={
                "prompt": f"What is {n} and {n}?",
                "response_a": f"It is {2 * n}.",
                "response_b": f"The sum is **{2 * n}**. " + "As one sees. " * (n % 5),
            },
        )
        for n, (letter, row) in enumerate(zip(LETTERS, rows_of(LETTERS), strict=True), start=1)
    ]
    with open_store(directory / "evenhand.db") as store:
        finished_run(store, "rich", rows, judges=("first judge", "second judge"))
        store.flags.set(1, 3, comment="<b>odd</b> wording")
        store.flags.set(1, 60)
        found = conclude(store, "rich")
        write_html_report(store, found, directory / "rich-en.html")
        write_html_report(store, found, directory / "rich-zh.html", language="zh")
    return directory


def address(reports: Path, name: str, asked: str = "") -> str:
    return (reports / f"{name}.html").as_uri() + asked


ROWS = "#live tbody tr"


@pytest.mark.parametrize("set_up", EVERY, ids=lambda set_up: set_up.name)
def test_report_is_sound_and_fits(set_up: Surroundings, look: Look, reports: Path) -> None:
    """And begins with its conclusion: the sentence and how far it can be trusted are there without
    scrolling."""
    page = look(address(reports, f"rich-{set_up.language}"), set_up)
    expect(page.locator(ROWS)).to_have_count(50)
    seen = [
        page.locator(each).bounding_box() for each in ("h1.conclusion", "ul.trust > li >> nth=0")
    ]
    assert all(box and box["y"] + box["height"] < set_up.height for box in seen)
    assert wider_than_the_window(page) == []
    keep_screenshot(page, f"report-file-{set_up.name}")
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert accessibility_faults(page) == []
    assert wider_than_the_window(page) == []
    page.evaluate("document.querySelector('.found .menu').open = false")
    page.locator("#live tbody a").first.click()
    expect(page.locator("#pair-title")).to_be_focused()
    assert accessibility_faults(page) == []
    assert wider_than_the_window(page) == []
    keep_screenshot(page, f"report-file-pair-{set_up.name}")


def test_every_link_shows_what_its_figure_counts(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en"))
    expect(page.locator(ROWS)).to_have_count(50)
    assert_links_show_what_they_count(page, reports / "evenhand.db", "rich", links=80)


def test_colours_of_charts_follow_the_scheme(look: Look, reports: Path) -> None:
    fills = [
        look(address(reports, "rich-en"), Surroundings(scheme=scheme)).evaluate(
            """() => ["A", "tie", "B", "invalid"].map((kind) =>
              getComputedStyle(document.querySelector(`.outcome-bar .part-${kind}`)).fill)"""
        )
        for scheme in ("light", "dark")
    ]
    # --a-fill, --tie-fill, --b-fill and --invalid-fill of evenhand.css
    light = ["rgb(214, 145, 47)", "rgb(185, 192, 203)", "rgb(63, 127, 196)", "rgb(61, 68, 79)"]
    dark = ["rgb(196, 132, 39)", "rgb(107, 116, 130)", "rgb(79, 143, 212)", "rgb(9, 11, 14)"]
    assert fills == [light, dark]


def test_pairs_are_filtered_searched_and_sorted_and_the_address_is_kept(
    look: Look, reports: Path
) -> None:
    page = look(address(reports, "rich-en"))
    found = page.locator("#live [role=status]")
    page.get_by_role("navigation", name="Outcome").get_by_text("tie").click()
    # 12 ties for each of the two judges
    expect(found).to_have_text("24 of 240 verdicts")
    page.locator("details.more > summary").click()
    page.locator("select[name=tag]").select_option("easy")
    expect(page.locator("#active")).to_contain_text("Tag: easy")
    page.locator("select[name=judge]").select_option("first judge")
    expect(found).to_have_text("12 of 240 verdicts")
    again = look(page.url)
    expect(again.locator("#live [role=status]")).to_have_text("12 of 240 verdicts")
    assert again.locator("select[name=outcome]").input_value() == "tie"
    page.go_back()
    expect(found).to_have_text("24 of 240 verdicts")
    page.get_by_label("Remove Outcome: tie").click()
    expect(found).to_have_text("120 of 240 verdicts")  # easy, by both judges
    page.get_by_text("Clear all filters").click()
    page.get_by_label("Search prompts and responses").fill("what IS 117 and")
    expect(found).to_have_text("2 of 240 verdicts")
    page.get_by_label("Search prompts and responses").fill("nobody wrote that")
    expect(page.locator("#live")).to_contain_text("No verdicts match these filters.")
    page.goto(address(reports, "rich-en", "#pairs?sort=length&descending=true&judge=first+judge"))
    page.reload()
    expect(page.locator(ROWS).first).to_contain_text("What is 4 and 4?")
    page.locator("[data-sort=length]").click()
    expect(page.locator(ROWS).first).to_contain_text("What is 5 and 5?")


def test_flagged_pairs_are_marked_and_filtered(look: Look, reports: Path) -> None:
    """Two pairs, each with the verdicts of two judges."""
    page = look(address(reports, "rich-en", "#pairs?flagged=true"))
    expect(page.locator(f"{ROWS} .lead")).to_have_text(["3", "3", "60", "60"])
    assert [each.get_attribute("title") for each in page.locator(f"{ROWS} .flagged").all()] == [
        *("<b>odd</b> wording", "<b>odd</b> wording"),
        *("Flagged", "Flagged"),
    ]
    expect(page.locator("#active")).to_contain_text("Flagged")
    page.locator("#live tbody a").first.click()
    expect(page.locator("#reader .note").first).to_have_text("⚑ <b>odd</b> wording")
    page = look(address(reports, "rich-en", "#pairs?flagged=false"))
    expect(page.locator("#found")).to_contain_text(str(2 * len(LETTERS) - 4))


def test_keys_move_through_the_table_and_from_pair_to_pair(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en", "#pairs?judge=first+judge"))
    expect(page.locator(ROWS)).to_have_count(50)
    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    expect(page.locator("#live tr[aria-current]")).to_contain_text("What is 2 and 2?")
    page.keyboard.press("Enter")
    expect(page.locator("#pair-title")).to_contain_text("q2")
    page.keyboard.press("j")
    expect(page.locator("#pair-title")).to_contain_text("q3")
    page.keyboard.press("u")
    expect(page.locator(ROWS)).to_have_count(50)
    page.keyboard.press("/")
    page.keyboard.type("jk")
    assert page.get_by_label("Search prompts and responses").input_value() == "jk"


def test_pages_show_every_verdict_once(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en"))
    seen: list[str] = []
    for number in range(1, 6):
        expect(page.locator("#live nav.pager")).to_contain_text(f"Page {number} of 5")
        seen += page.locator(ROWS).all_inner_texts()
        if number < 5:
            page.locator("#live nav.pager a[rel=next]").click()
    assert len(seen) == len(set(seen)) == 240


def test_report_can_be_read_without_script(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en"), Surroundings(script=False))
    expect(page.locator("main")).to_contain_text("Win rate of new")
    pair = page.locator("details.pair").first
    pair.locator("summary").first.click()
    expect(pair).to_contain_text("What is 1 and 1?")
    expect(pair).to_contain_text("B shown first")
    assert page.locator("#live").is_hidden()
    page.get_by_role("link", name="new vs old").nth(1).click()  # by the second judge
    expect(page.locator("#comparison-2-result")).to_be_in_viewport()


def test_pair_shows_what_differs_rendered_or_raw(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en", "#pairs?pair=5"))
    reader = page.locator("article.reader")
    expect(reader.locator(".markdown strong")).to_have_text("10")
    # "It is 10." and "The sum is **10**.": two of four words are in both, too few to mark others.
    expect(reader).to_contain_text("50% of the text is the same")
    assert not marks_seen(reader)
    reader.get_by_label("Mark differences anyway").check()
    assert marks_seen(reader)
    reader.locator("summary", has_text="Raw answers").first.click()
    answer = reader.locator("details.fold details").first
    answer.locator("summary").click()
    expect(answer.locator("pre")).to_contain_text('"winner": "B"')  # to the letter
    reader.get_by_text("Show raw").click()
    expect(reader.locator(".side-B pre")).to_contain_text("The sum is **10**.")
    expect(reader.locator(".marking")).to_have_count(0)  # here raw texts have no marks
    page.keyboard.press("j")
    expect(reader.locator("#pair-title")).to_contain_text("q6")
    expect(reader.locator(".side-B pre")).to_be_visible()  # as it was chosen
