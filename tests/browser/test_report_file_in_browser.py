"""The report that is one file, opened from the disk in a real browser.

`look` fails where the page says anything on the console, asks the network, or breaks its policy.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from evenhand.report.conclusions import conclude
from evenhand.serve.pages.html_report import write_html_report
from evenhand.store import open_store
from one_files import finished_run, rows_of
from real_browser import (
    EVERY,
    Look,
    Surroundings,
    accessibility_faults,
    keep_screenshot,
    wider_than_the_window,
)

LETTERS = "BBABBTIBXA" * 12


# Made before the browser, whose loop counts as running while it is there.
@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`rich` in both languages, with charts."""
    directory = tmp_path_factory.mktemp("reports")
    rows = [
        replace(
            row,
            label="B" if n % 3 else None,
            tags=("math",) if n % 2 else ("prose", "easy"),
            pair={
                "prompt": f"What is {n} and {n}?",
                "response_a": f"It is {2 * n}.",
                "response_b": f"The sum is **{2 * n}**. " + "As one sees. " * (n % 5),
            },
        )
        for n, row in enumerate(rows_of(LETTERS), start=1)
    ]
    with open_store(directory / "evenhand.db") as store:
        finished_run(store, "rich", rows, judges=("first judge", "second judge"))
        found = conclude(store, "rich")
        write_html_report(store, found, directory / "rich-en.html")
        write_html_report(store, found, directory / "rich-zh.html", language="zh")
    return directory


def address(reports: Path, name: str, asked: str = "") -> str:
    return (reports / f"{name}.html").as_uri() + asked


def status(page: Page) -> str:
    return page.locator("#live [role=status]").inner_text()


@pytest.mark.parametrize("set_up", EVERY, ids=lambda set_up: set_up.name)
def test_report_is_sound_and_fits(set_up: Surroundings, look: Look, reports: Path) -> None:
    page = look(address(reports, f"rich-{set_up.language}"), set_up)
    expect(page.locator("#live tbody tr")).to_have_count(50)
    assert accessibility_faults(page) == []
    assert wider_than_the_window(page) == []
    keep_screenshot(page, f"report-file-{set_up.name}")
    page.locator("#live tbody a").first.click()
    expect(page.locator("article.reader > h3")).to_be_focused()
    assert accessibility_faults(page) == []
    assert wider_than_the_window(page) == []
    keep_screenshot(page, f"report-file-pair-{set_up.name}")


def test_charts_are_drawn(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en"))
    widths = page.eval_on_selector_all("img.chart", "all => all.map((one) => one.naturalWidth)")
    assert len(widths) == 5
    assert min(widths) > 100


def test_pairs_are_filtered_and_their_address_can_be_kept(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en"))
    page.locator("select[name=outcome]").select_option("tie")
    # 12 ties for each of the two judges
    expect(page.locator("#live [role=status]")).to_have_text("24 of 240 verdicts")
    page.locator("select[name=tag]").select_option("easy")
    page.locator("select[name=judge]").select_option("first judge")
    expect(page.locator("#live [role=status]")).to_have_text("12 of 240 verdicts")
    again = look(page.url)
    expect(again.locator("#live [role=status]")).to_have_text("12 of 240 verdicts")
    assert again.locator("select[name=outcome]").input_value() == "tie"
    page.go_back()
    expect(page.locator("#live [role=status]")).not_to_have_text("12 of 240 verdicts")


def test_figure_leads_to_the_pairs_behind_it(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en"))
    page.locator("a.figure", has_text="60").first.click()  # wins of B by the first judge
    expect(page.locator("#live [role=status]")).to_have_text("60 of 240 verdicts")
    assert page.locator("select[name=winner]").input_value() == "new"


def test_disagreements_with_labels_can_be_looked_at(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en", "#pairs?flag=disagrees"))
    labelled = [letter for n, letter in enumerate(LETTERS, start=1) if n % 3]
    wrong = 2 * sum(letter != "B" for letter in labelled)
    expect(page.locator("#live [role=status]")).to_have_text(f"{wrong} of 240 verdicts")


def test_search_reads_every_text(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en"))
    page.get_by_label("Search the texts").fill("what IS 117 and")
    expect(page.locator("#live [role=status]")).to_have_text("2 of 240 verdicts")
    page.get_by_label("Search the texts").fill("nobody wrote that")
    expect(page.locator("#live")).to_contain_text("Nothing meets these conditions.")


def test_table_is_sorted_by_length_both_ways(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en", "#pairs?sort=length&order=down&judge=first+judge"))
    expect(page.locator("#live tbody tr").first).to_contain_text("q4")
    page.locator("select[name=order]").select_option("")
    expect(page.locator("#live tbody tr").first).to_contain_text("q5")


def test_keys_move_through_the_table_and_from_pair_to_pair(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en", "#pairs?judge=first+judge"))
    expect(page.locator("#live tbody tr")).to_have_count(50)
    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    expect(page.locator("#live tr[aria-current]")).to_contain_text("q2")
    page.keyboard.press("Enter")
    expect(page.locator("article.reader > h3")).to_contain_text("q2")
    page.keyboard.press("j")
    expect(page.locator("article.reader > h3")).to_contain_text("q3")
    page.keyboard.press("u")
    expect(page.locator("#live tbody tr")).to_have_count(50)
    page.keyboard.press("/")
    page.keyboard.type("jk")
    assert page.get_by_label("Search the texts").input_value() == "jk"


def test_pages_show_every_verdict_once(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en"))
    seen: list[str] = []
    for number in range(1, 6):
        expect(page.locator("#live nav.pager")).to_contain_text(f"Page {number} of 5")
        seen += page.locator("#live tbody tr").all_inner_texts()
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


def test_pair_shows_what_differs_rendered_or_raw(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en", "#pairs?pair=5"))
    reader = page.locator("article.reader")
    expect(reader.locator(".markdown strong")).to_have_text("10")
    # "It is 10." and "The sum is **10**.": two of four words are in both, too few to mark others.
    expect(reader.locator("mark")).to_have_count(0)
    expect(reader).to_contain_text("share 50 % of their words")
    reader.get_by_text("Show raw").click()
    expect(reader.locator(".side-B pre")).to_contain_text("The sum is **10**.")
    page.keyboard.press("j")
    expect(reader.locator("#pair-title")).to_contain_text("q6")
    expect(reader.locator(".side-B pre")).to_be_visible()  # as it was chosen


def test_pair_has_what_the_judge_wrote_to_the_letter(look: Look, reports: Path) -> None:
    page = look(address(reports, "rich-en", "#pairs?pair=1"))
    page.locator("article.reader summary", has_text="Raw answers").first.click()
    answer = page.locator("article.reader details.fold details").first
    answer.locator("summary").click()
    expect(answer.locator("pre")).to_contain_text('"winner": "B"')
