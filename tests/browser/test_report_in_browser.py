"""The report as one file, opened from a disk: figures and all pairs, without a network."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser_site import Site
from command_line import run_command
from one_files import assert_links_show_what_they_count
from real_browser import (
    EVERY,
    PHONE,
    Look,
    Surroundings,
    accessibility_faults,
    keep_screenshot,
    wider_than_the_window,
)

ROWS = "#live tbody tr"


@pytest.fixture(scope="module")
def report(site: Site, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its address. Six pairs of models by two judges; a smaller one has a file of tests to itself,
    in both languages and with hostile texts."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    asked = ("report", "answers by model", "--html", str(file), "--locale", "en")
    ran = run_command(*asked, "--store", str(site.store), directory=site.directory)
    assert ran.code == 0, ran.err
    return file.as_uri()


def offline(look: Look, set_up: Surroundings, address: str) -> Page:
    page = look(None, set_up)
    page.context.set_offline(True)
    page.goto(address)
    return page


def test_report_of_many_models_is_sound_and_fits(look: Look, report: str) -> None:
    page = offline(look, PHONE, report)
    expect(page.locator(ROWS)).to_have_count(50)
    assert page.locator("table.board tbody tr").count() == 4
    keep_screenshot(page, "report-of-many-models")
    assert accessibility_faults(page) == []
    assert wider_than_the_window(page) == []


def test_pairs_of_a_report_are_searched_filtered_and_read_by_keys(look: Look, report: str) -> None:
    """The search finds one topic: six pairs of models, judged by two judges."""
    page = offline(look, EVERY[0], report)
    page.get_by_role("searchbox").press_sequentially("密度")
    expect(page.locator(ROWS)).to_have_count(12)
    page.locator("details.more > summary").click()
    page.get_by_role("combobox", name="Judge", exact=True).select_option(index=1)
    expect(page.locator(ROWS)).to_have_count(6)
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(f"{ROWS}[aria-current]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("article.reader")).to_contain_text("为什么冰会浮在水面上")
    keep_screenshot(page, "report-pair")
    assert accessibility_faults(page) == []
    page.keyboard.press("u")
    expect(page.locator(ROWS)).to_have_count(6)


def test_every_link_of_many_models_shows_what_its_figure_counts(
    look: Look, site: Site, report: str
) -> None:
    page = offline(look, EVERY[0], report)
    expect(page.locator(ROWS).first).to_be_visible()
    assert_links_show_what_they_count(page, site.store, "answers by model", links=200)
