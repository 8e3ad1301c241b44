"""Debian's chromium as the tests use it: a page that is watched while it is looked at.

    def test_something(look: Look, site: Site) -> None:
        page = look(site.url, PHONE)
        page.press("j")

After each test, `look` fails where a page said anything on the console, asked for what it did not
get, broke its own policy, opened a dialog or let judged texts do something.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from browser_site import Site
from evenhand.serve.pages.vote import NAME_COOKIE
from html_reading import ELSEWHERE
from parts import missing

ROOT = Path(__file__).parent.parent
SCREENSHOTS = ROOT / ".artifacts" / "screenshots"
AXE = ROOT / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
_PLACES = ("chromium", "chromium-browser", "google-chrome")
# Pages are drawn in memory, so there is nothing for a graphics process to do.
_FLAGS = ("--disable-gpu", "--in-process-gpu", "--disable-extensions")
_WAIT_MS = 60_000  # the machine may have other work


@dataclass(frozen=True)
class Surroundings:
    """How the reader's browser is set up."""

    language: Literal["en", "zh"] = "en"
    scheme: Literal["light", "dark"] = "light"
    width: int = 1280
    script: bool = True
    height: int = 800

    @property
    def name(self) -> str:
        return f"{self.language}-{self.scheme}-{self.width}"


PLAIN = Surroundings()
PHONE = Surroundings(scheme="dark", width=375)
# Both languages meet both schemes, and both of each meet a phone's width.
EVERY = (
    PLAIN,
    PHONE,
    Surroundings(language="zh", scheme="dark"),
    Surroundings(language="zh", width=375),
)

# Said on the console, where nothing may be said; in place before any script of the page runs.
_TELL = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
Object.defineProperty(window, "harmed", { set() { console.error("a judged text ran"); } });
"""


def chromium_path() -> str:
    named = os.environ.get("EVENHAND_TEST_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _PLACES)), None)
    if found is None:
        missing("chromium is not here; install it with scripts/install_chromium.sh")
    return found


@cache
def _axe() -> str:
    if not AXE.exists():
        missing("axe-core is not here; install it with make .venv/.npm")
    return AXE.read_text("utf-8")


@dataclass
class Watch:
    """What pages did that they should not."""

    allowed: set[int] = field(default_factory=set)  # statuses that the test brings about
    wrong: list[str] = field(default_factory=list)

    def over(self, page: Page) -> None:
        for event, note in self._notes().items():
            page.on(event, note)  # type: ignore[call-overload]  # one name at a time

    def leave(self, page: Page) -> None:
        for event, note in self._notes().items():
            page.remove_listener(event, note)

    def _notes(self) -> dict[str, Callable[[Any], None]]:
        return {
            "console": self._console,
            "pageerror": self._erred,
            "dialog": self._dialog,
            "request": self._asked,
            "requestfailed": self._failed,
            "response": self._answered,
        }

    def _erred(self, error: Any) -> None:
        self.wrong.append(f"error: {error}")

    def _console(self, message: Any) -> None:
        # The browser reports a refused document itself; the test has said that it expects that.
        if not any(f"status of {status}" in message.text for status in self.allowed):
            self.wrong.append(f"console {message.type}: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _asked(self, request: Any) -> None:
        if request.url.startswith(ELSEWHERE):
            self.wrong.append(f"asked elsewhere: {request.url}")

    def _failed(self, request: Any) -> None:
        # A page that is left gives up what it was still asking for.
        if request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"failed: {request.url} {request.failure}")

    def _answered(self, response: Any) -> None:
        if response.status >= 400 and response.status not in self.allowed:
            self.wrong.append(f"answered {response.status}: {response.url}")


class Readers:
    """Pages to look through, each in a profile of its own. To make one costs a second, so one that
    was given back is lent again: emptied, without cookies, at no address. Our pages keep nothing
    else; what they are held to is tested by `test_a_page_that_is_lent_again_remembers_nothing`."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[Surroundings, list[Page]] = defaultdict(list)

    def lend(self, set_up: Surroundings) -> Page:
        free = self._free[set_up]
        return free.pop() if free else self._new(set_up)

    def take_back(self, set_up: Surroundings, page: Page) -> None:
        context = page.context
        for other in context.pages:
            if other is not page:
                other.close()
        page.goto("about:blank")
        context.clear_cookies()
        context.set_offline(False)
        self._free[set_up].append(page)

    def _new(self, set_up: Surroundings) -> Page:
        context = self._browser.new_context(
            locale={"en": "en-GB", "zh": "zh-CN"}[set_up.language],
            color_scheme=set_up.scheme,
            viewport={"width": set_up.width, "height": set_up.height},
            java_script_enabled=set_up.script,
            accept_downloads=True,
        )
        context.set_default_timeout(_WAIT_MS)
        context.add_init_script(_TELL)
        return context.new_page()


# Of the module, not of the session: its loop counts as running while it is there, and tests that
# are coroutines could not run beside it.
@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    path = chromium_path()
    expect.set_options(timeout=_WAIT_MS)
    with sync_playwright() as driver:
        # The sandbox needs rights that containers do not give; every page here is our own.
        started = driver.chromium.launch(
            executable_path=path, chromium_sandbox=False, args=list(_FLAGS)
        )
        yield Readers(started)
        started.close()


class Look:
    """Opens pages; each call is a reader of its own, who shares nothing with the others."""

    def __init__(self, readers: Readers) -> None:
        self.watch = Watch()
        self._readers = readers
        self._pages: list[tuple[Surroundings, Page]] = []

    def __call__(self, address: str | None, set_up: Surroundings = PLAIN) -> Page:
        page = self._readers.lend(set_up)
        self.watch.over(page)
        self._pages.append((set_up, page))
        if address is not None:
            page.goto(address)
        return page

    def settle(self) -> None:
        for set_up, page in self._pages:
            page.evaluate("0")  # what it has said until now is told before this is answered
            self.watch.leave(page)
            self._readers.take_back(set_up, page)
        if self.watch.wrong:
            pytest.fail("\n".join(self.watch.wrong))


@pytest.fixture
def look(readers: Readers) -> Iterator[Look]:
    looked = Look(readers)
    yield looked
    looked.settle()


def accessibility_faults(page: Page) -> list[str]:
    """What axe-core finds, each with the elements that it is about."""
    page.evaluate(_axe())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{fault['id']}: {fault['help']}: {[node['html'][:200] for node in fault['nodes'][:5]]}"
        for fault in found["violations"]
    ]


def wider_than_the_window(page: Page, *, whole: bool = True) -> list[str]:
    """Elements that make the page as a whole scroll sideways, or are cut off at its side."""
    found: list[str] = page.evaluate(
        """(whole) => {
          const width = document.documentElement.clientWidth;
          const main = document.querySelector("main");
          const cut = whole && main && main.scrollWidth > main.clientWidth;
          if (document.documentElement.scrollWidth <= width && !cut) return [];
          const over = Array.from(document.body.querySelectorAll("*"))
            .filter((each) => each.getBoundingClientRect().right > width + 1)
            .filter((each) => !each.parentElement.closest(".scroll"));
          return [`${document.documentElement.scrollWidth} of ${width}`,
            ...over.slice(0, 8).map((each) => each.outerHTML.slice(0, 160))];
        }""",
        whole,
    )
    return found


def keep_screenshot(page: Page, name: str, *, whole: bool = True) -> None:
    """`whole`: beyond the first screen too."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole, animations="disabled")


# What is looked at of each page, by its path: a name for the screenshot, and an address. The first
# is looked at in two surroundings, or in every one, the others in one each.
VISITS: dict[str, dict[str, str]] = {
    "/": {"runs": "/"},
    "/new": {
        "new": "/new",
        "new-outputs": "/new?kind=outputs",
        "new-models": "/new?kind=models",
    },
    "/runs/{id}": {
        "run": "/runs/{rich}",
        "run-plain": "/runs/{plain}?side=A",
        "run-comparison": "/runs/{rich}?comparison=2",
        "run-failed": "/runs/{failed}",
    },
    "/runs/{id}/pairs": {
        "pairs": "/runs/{rich}/pairs",
        "pairs-filtered": "/runs/{rich}/pairs?tag=中文&judgesDiffer=true&sort=confidence",
        "pairs-model": "/runs/{rich}/pairs?model=borealis&modelWins=true&ending=valid&named=two",
        "pairs-none": "/runs/{rich}/pairs?query=zygomorphic",
    },
    "/runs/{id}/pairs/{number}": {
        "pair": "/runs/{rich}/pairs/8",
        "pair-chinese": "/runs/{rich}/pairs/20?judge=hasty&view=raw",
        "pair-invalid": "/runs/{rich}/pairs/4",
    },
    "/compare": {
        "compare": "/compare?run={rich}",
        "compare-cell": "/compare?run={rich}&fromOutcome=A&toOutcome=B",
        "compare-choose": "/compare",
    },
    "/rank": {
        "rank": "/rank?run={rich}",
        "rank-by-tag": "/rank?run={rich}&by=tag",
        "rank-tag": "/rank?run={rich}&tag=science",
        "rank-choose": "/rank",
    },
    "/rank/pairs": {"rank-pairs": "/rank/pairs?run={rich}&run={plain}&model=borealis&ending=valid"},
    "/runs/{id}/audit": {"audit": "/runs/{rich}/audit", "audit-none": "/runs/{plain}/audit"},
    "/runs/{id}/probes": {
        "probes": "/runs/{probes}/probes",
        "probes-none": "/runs/{rich}/probes",
    },
    "/runs/{id}/calibration": {
        "calibration": "/runs/{rich}/calibration",
        "calibration-none": "/runs/{plain}/calibration",
    },
    "/runs/{id}/gate": {"gate": "/runs/{rich}/gate", "gate-plain": "/runs/{plain}/gate"},
    "/runs/{id}/correct": {"correct": "/runs/{rich}/correct?labelsAre=random"},
    "/runs/{id}/jury": {"jury": "/runs/{rich}/jury"},
    "/runs/{id}/vote": {"vote": "/runs/{rich}/vote", "vote-name": "/runs/{rich}/vote?rename=1"},
    "/runs/{id}/votes": {"votes": "/runs/{rich}/votes", "votes-none": "/runs/{plain}/votes"},
    "/try": {"try": "/try"},
}
# Answers that are no page for a reader: files, pictures, parts of pages, ways to a page.
NO_PAGES = {
    "/static/{name}",
    "/progress",
    "/runs/{id}/progress",
    "/runs/{id}/pair",
    "/runs/{id}/charts/{file}",
    "/rank/charts/{file}",
    "/login",  # goes on to the runs where no token is needed; test_vote_in_browser.py
}
FILES = ("csv", "jsonl", "parquet", "json")


def opened(look: Look, site: Site, address: str, set_up: Surroundings) -> Page:
    """As somebody who has given a name to vote by."""
    page = look(None, set_up)
    page.context.add_cookies([{"name": NAME_COOKIE, "value": "eve", "url": site.url}])
    page.goto(site.url + address.format(**site.runs))
    return page


def settled(page: Page) -> None:
    """Figures that were being worked out are there, and so is every picture."""
    expect(page.locator("[data-live], [data-again]")).to_have_count(0, timeout=60_000)
    page.evaluate(
        """() => Promise.all(Array.from(document.images, (picture) => {
          picture.loading = "eager";
          return picture.decode();
        }))"""
    )


def marks_seen(box: Locator) -> bool:
    """Whether what differs can be told from what does not."""
    seen = box.locator("mark").evaluate_all(
        "marks => marks.map((each) => getComputedStyle(each).backgroundColor)"
    )
    assert seen
    assert len(set(seen)) <= 2  # A's colour and B's
    return "rgba(0, 0, 0, 0)" not in seen
