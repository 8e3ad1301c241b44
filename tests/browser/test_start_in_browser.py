"""A run that is started from the page, and watched to its end."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import expect

from browser_site import Site, simple_rows
from real_browser import Look, keep_screenshot


def test_run_is_started_by_a_file_and_watched_to_its_end(
    look: Look, site: Site, tmp_path: Path
) -> None:
    """40 pairs, of which B wins every third; nothing is reloaded by hand."""
    file = tmp_path / "from the page.jsonl"
    rows = [{**row, "prompt": f"{row['prompt']} By page."} for row in simple_rows(40)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    page = look(f"{site.url}/new")
    page.get_by_label("File", exact=True).set_input_files(file)
    # What is in the file is shown as soon as it is chosen: 40 pairs, each asked twice.
    shown = page.locator("#preview")
    expect(shown).to_contain_text("from the page.jsonl")
    expect(shown.locator(".cards")).to_contain_text("80")
    expect(shown.get_by_role("columnheader")).to_have_text(
        ["id", "prompt", "response_a", "response_b"]
    )
    page.get_by_label("Criteria").fill("accuracy, clarity")
    page.get_by_label("Name").fill("started here")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*")
    expect(page.locator(".run-line")).to_contain_text("started here")
    keep_screenshot(page, "run-going-on")
    expect(page.locator("#progress .state")).to_have_text("finished", timeout=60_000)
    expect(page.locator("main")).to_contain_text("32.5")  # 13 of 40
    page.get_by_role("link", name="Runs").click()
    line = page.locator("tr", has_text="started here")
    expect(line).to_contain_text("finished")
    expect(line).to_contain_text("40 pairs")


def test_file_can_be_dropped_on_the_form(look: Look, site: Site) -> None:
    page = look(f"{site.url}/new")
    rows = "".join(json.dumps(row) + "\n" for row in simple_rows(3))
    transfer = page.evaluate_handle(
        """(text) => {
          const held = new DataTransfer();
          held.items.add(new File([text], "dropped.jsonl"));
          return held;
        }""",
        rows,
    )
    page.locator("form[data-drop]").dispatch_event("drop", {"dataTransfer": transfer})
    assert (
        page.get_by_label("File", exact=True).evaluate("(input) => input.files[0].name")
        == "dropped.jsonl"
    )
    page.get_by_label("Criteria").fill("accuracy")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*")
    expect(page.locator(".run-line")).to_contain_text("dropped")


def test_two_files_of_outputs_are_dropped_looked_at_and_started(look: Look, site: Site) -> None:
    """A has 8 answers and B 7 of them: 7 pairs, 14 calls, one answer alone."""
    page = look(f"{site.url}/new")
    page.get_by_role("link", name="Two outputs").click()
    rows = list(simple_rows(8))
    files = {
        side: "".join(
            json.dumps({"id": row["id"], "prompt": row["prompt"], "response": row[side]}) + "\n"
            for row in rows[: 8 if side == "response_a" else 7]
        )
        for side in ("response_a", "response_b")
    }
    page.get_by_label("Skip invalid rows").check()
    for text, name in ((files["response_a"], "old"), (files["response_b"], "new")):
        transfer = page.evaluate_handle(
            """([text, name]) => {
              const held = new DataTransfer();
              held.items.add(new File([text], `${name}.jsonl`));
              return held;
            }""",
            [text, name],
        )
        page.locator("form[data-drop]").dispatch_event("drop", {"dataTransfer": transfer})
    shown = page.locator("#preview")
    expect(shown).to_contain_text("old.jsonl + new.jsonl")
    expect(shown.locator(".cards")).to_contain_text("A 1 · B 0")
    expect(shown.locator(".cards")).to_contain_text("14")
    expect(shown.locator("table")).to_have_count(2)
    keep_screenshot(page, "new-outputs-preview")
    page.get_by_label("Criteria").fill("accuracy")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*")
    expect(page.locator("h1")).to_contain_text("new", timeout=60_000)


def test_two_models_answer_while_the_page_says_how_many(
    look: Look, site: Site, tmp_path: Path
) -> None:
    """30 prompts, 60 answers that take half a second each, then 60 calls of the judge."""
    file = tmp_path / "prompts.jsonl"
    rows = [{"id": n, "prompt": f"Question {n}: which answer is right?"} for n in range(30)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    page = look(f"{site.url}/new?kind=models")
    page.get_by_label("Model B").select_option("hasty")
    page.get_by_label("File", exact=True).set_input_files(file)
    shown = page.locator("#preview .cards")
    expect(shown).to_contain_text("60 for answers, 60 for verdicts")
    keep_screenshot(page, "new-models-preview")
    page.get_by_label("Criteria").fill("accuracy")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs/*")
    expect(page.locator("#progress")).to_contain_text("of 60", timeout=20_000)
    expect(page.locator("#progress .state")).to_have_text("answering")
    keep_screenshot(page, "run-answering")
    expect(page.locator("h1")).to_contain_text("hasty", timeout=60_000)
    expect(page.locator("main")).to_contain_text("30")


def test_file_that_is_no_data_is_refused_on_a_page(look: Look, site: Site, tmp_path: Path) -> None:
    look.watch.allowed |= {400, 422}
    file = tmp_path / "poem.jsonl"
    file.write_text("Roses are red\n", "utf-8")
    page = look(f"{site.url}/new")
    page.get_by_label("File", exact=True).set_input_files(file)
    expect(page.get_by_role("alert")).to_contain_text("poem.jsonl")
    page.get_by_label("Criteria").fill("accuracy")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url("**/runs")
    expect(page.get_by_role("alert")).to_contain_text("poem.jsonl")
    assert page.get_by_label("Criteria").input_value() == "accuracy"


def test_failed_run_says_why_and_what_to_do(look: Look, site: Site) -> None:
    page = look(site.run("failed"))
    expect(page.locator("#progress")).to_contain_text("no such key")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
