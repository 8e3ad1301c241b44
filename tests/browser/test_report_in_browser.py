"""The report as one file, opened from a disk: figures, charts and all pairs, without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser_site import Site
from command_line import run_command
from hostile_markup import ATTACKS
from real_browser import (
    EVERY,
    Look,
    Surroundings,
    accessibility_faults,
    keep_screenshot,
    wider_than_the_window,
)

ROWS = "#live tbody tr"


@pytest.fixture(scope="module")
def reports(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Their addresses by run and language."""
    folder = tmp_path_factory.mktemp("reports")
    made = {}
    for which, language in (("rich", "en"), ("rich", "zh"), ("hostile", "en")):
        file = folder / f"{which}-{language}.html"
        made[f"{which}-{language}"] = write_report(site, which, file, language)
    return made


def write_report(site: Site, which: str, file: Path, language: str) -> str:
    names = {"rich": "answers by model", "hostile": "hostile <script>window.harmed=true</script>"}
    ran = run_command(
        *("report", names[which], "--html", str(file), "--locale", language),
        *("--store", str(site.store)),
        directory=site.directory,
        timeout_s=120,
    )
    assert ran.code == 0, ran.err
    return file.as_uri()


def offline(look: Look, set_up: Surroundings, address: str) -> Page:
    page = look(None, set_up)
    page.context.set_offline(True)
    page.goto(address)
    return page


@pytest.mark.parametrize("set_up", EVERY, ids=lambda set_up: set_up.name)
def test_report_is_sound_and_fits(
    set_up: Surroundings, look: Look, reports: dict[str, str]
) -> None:
    page = offline(look, set_up, reports[f"rich-{set_up.language}"])
    expect(page.locator(ROWS)).to_have_count(50)
    assert page.locator("img").count() > 0
    page.evaluate("() => Promise.all(Array.from(document.images, (each) => each.decode()))")
    keep_screenshot(page, f"report-{set_up.name}")
    assert accessibility_faults(page) == []
    assert wider_than_the_window(page) == []


def test_pairs_of_a_report_are_searched_filtered_and_read_by_keys(
    look: Look, reports: dict[str, str]
) -> None:
    """The search finds one topic: six pairs of models, judged by two judges."""
    page = offline(look, EVERY[0], reports["rich-en"])
    page.get_by_role("searchbox").press_sequentially("密度")
    expect(page.locator(ROWS)).to_have_count(12)
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


def test_hostile_texts_do_nothing_in_a_report(look: Look, reports: dict[str, str]) -> None:
    page = offline(look, EVERY[1], reports["hostile-en"])
    expect(page.locator(ROWS)).to_have_count(len(ATTACKS))
    assert wider_than_the_window(page, whole=False) == []
    for number, attack in enumerate(ATTACKS, start=1):
        page.evaluate("(number) => { location.hash = `#pairs?pair=${number}` }", number)
        response = page.locator("article.reader .sides .response").first
        expect(response).to_contain_text(f"A of {attack.name}")
        assert response.text_content() == f"{attack.text}\n\nA of {attack.name}"
        assert wider_than_the_window(page, whole=False) == []
