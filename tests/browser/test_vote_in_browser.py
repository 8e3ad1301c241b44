"""Voting by keys: blind, with undo, and counted once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser_site import Site, served
from evenhand.store import open_store
from real_browser import PLAIN, Look, Readers, keep_screenshot

TOKEN = "full-0123456789abcdef"
VOTER = "voter-0123456789abcdef"


@pytest.fixture(scope="module")
def guarded(site: Site) -> Iterator[str]:
    """A second server over the same store, which wants a token."""
    tokens = {"EVENHAND_TOKEN": f"boss={TOKEN}", "EVENHAND_VOTER_TOKEN": f"carla={VOTER}"}
    with served(site.directory, "http://127.0.0.1:9/v1", log="guarded.log", **tokens) as url:
        yield url


def votes_of(store: Path, who: str) -> dict[int, str | None]:
    """Of the plain run: what this person said, by the pairs' numbers."""
    with open_store(store) as opened:
        run = opened.runs.find("plain")
        assert run is not None
        votes = opened.votes.page(run.id, limit=1000)
        return {each.number: each.vote.verdict for each in votes if each.vote.who == who}


def better_first(page: Page) -> bool:
    return "right answer" in page.locator(".sides section").first.inner_text()


def pressed(page: Page, key: str) -> None:
    """A key that sends the form; the next pair is there when this is done."""
    with page.expect_navigation():
        page.keyboard.press(key)


def test_all_pairs_are_voted_on_by_keys_and_one_vote_is_undone(look: Look, site: Site) -> None:
    """Whoever reads finds the right answer on either side; B is right in every third pair."""
    page = look(f"{site.run('plain')}/vote")
    page.get_by_role("textbox").fill("Dora 朵拉")
    page.keyboard.press("Enter")
    expect(page.locator(".sides section")).to_have_count(2)
    keep_screenshot(page, "vote-in-progress")

    pressed(page, "3")  # a slip, which is undone
    expect(page.locator("[role=status]")).to_contain_text("1")
    pressed(page, "u")
    assert votes_of(site.store, "Dora 朵拉") == {}

    sides = set()
    for _ in range(5):
        sides.add(better_first(page))
        pressed(page, "1" if better_first(page) else "2")
    pressed(page, "s")
    expect(page.locator(".sides section")).to_have_count(0)
    keep_screenshot(page, "vote-done")
    said = votes_of(site.store, "Dora 朵拉")
    right = {number: "A" if number % 3 else "B" for number in range(1, 7)}
    assert sorted(said) == sorted(right)
    assert sum(verdict is None for verdict in said.values()) == 1
    assert all(verdict in (None, right[number]) for number, verdict in said.items())


def test_keys_are_letters_while_a_reason_is_written(look: Look, site: Site) -> None:
    page = look(f"{site.run('plain')}/vote")
    page.get_by_role("textbox").fill("Emil")
    page.keyboard.press("Enter")
    page.locator("#ballot summary").click()
    page.locator("#comment").press_sequentially("12s: both are short")
    assert votes_of(site.store, "Emil") == {}
    page.locator("#ballot button[value=tie]").click()
    page.wait_for_load_state()
    assert list(votes_of(site.store, "Emil").values()) == ["TIE"]


def test_page_for_votes_tells_nothing_of_models_judges_or_others(look: Look, site: Site) -> None:
    page = look(f"{site.run()}/vote")
    page.get_by_role("textbox").fill("Fritz")
    page.keyboard.press("Enter")
    expect(page.locator(".sides section")).to_have_count(2)
    shown = page.locator("main").inner_text()
    for secret in ("careful", "hasty", "ann", "B won", "A won", "answers by model"):
        assert secret not in shown.split()


def test_login_leads_back_to_the_page_that_was_wanted(look: Look, site: Site, guarded: str) -> None:
    look.watch.allowed |= {401}
    page = look(f"{guarded}/runs/{site.runs['plain']}/pairs?outcome=win")
    keep_screenshot(page, "login")
    page.get_by_label("Token").fill("wrong-0123456789abcdef")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url("**/pairs?outcome=win")
    (cookie,) = [each for each in page.context.cookies() if each["name"] == "evenhand_session"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    page.goto(f"{guarded}/")
    page.wait_for_url("**/login*")


def test_voter_sees_the_vote_and_nothing_else(look: Look, site: Site, guarded: str) -> None:
    look.watch.allowed |= {401, 403}
    page = look(f"{guarded}/runs/{site.runs['plain']}/vote")
    page.get_by_label("Token").fill(VOTER)
    page.keyboard.press("Enter")
    expect(page.locator(".sides section")).to_have_count(2)
    expect(page.locator("main")).to_contain_text("carla")
    assert page.get_by_role("link", name="Runs").count() == 0
    pressed(page, "1")
    assert len(votes_of(site.store, "carla")) == 1
    for path in ("/", f"/runs/{site.runs['plain']}", f"/runs/{site.runs['plain']}/votes", "/rank"):
        page.goto(guarded + path)
        assert "6 / 6" not in page.content()
        assert page.locator("table").count() == 0


def test_a_page_that_is_lent_again_remembers_nothing(
    readers: Readers, site: Site, guarded: str
) -> None:
    """Tests are readers who know nothing of each other, though their pages are used again."""
    wanted = f"{guarded}/runs/{site.runs['plain']}"
    page = readers.lend(PLAIN)
    page.goto(wanted)
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url(wanted)
    page.context.set_offline(True)
    readers.take_back(PLAIN, page)
    again = readers.lend(PLAIN)
    assert again is page
    again.goto(wanted)
    expect(again.get_by_label("Token")).to_be_visible()
    kept = "[localStorage.length, sessionStorage.length, window.name, document.cookie]"
    assert again.evaluate(kept) == [0, 0, "", ""]
    readers.take_back(PLAIN, again)
