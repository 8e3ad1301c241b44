"""Runs for reports that are one file, and what such a file holds, read back."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import QueryParams

from evenhand.contract import Winner
from evenhand.present.html.one_file import write_html_report
from evenhand.report.conclusions import conclude
from evenhand.report.lookup import find_run
from evenhand.serve.figures import FigureCache
from evenhand.serve.http.requests import read_query
from evenhand.serve.verdicts import TableQuery, VerdictBrowser
from evenhand.store import Store, open_store
from html_reading import ATTACKS
from stored_runs import Row, follows_place, make_run, mumbles, says

if TYPE_CHECKING:
    from playwright.sync_api import Page

_VOID = {"meta", "img", "source", "input", "br", "link"}
ANSWERS = {"A": says("A"), "B": says("B"), "T": says("TIE"), "I": follows_place, "X": mumbles}


def rows_of(letters: str, **more: Any) -> list[Row]:
    named = {"model_a": "old", "model_b": "new"} | more
    return [Row(f"q{n}", ANSWERS[each], **named) for n, each in enumerate(letters, start=1)]


def finished_run(
    store: Store, name: str, rows: Sequence[Row], *, judges: Sequence[str] = ("scripted",)
) -> None:
    store.runs.update(make_run(store, name, rows, judges=judges), state="finished")


def hostile_rows() -> list[Row]:
    """Each attack wherever somebody else's text goes: texts, models, tags, ids, reasons."""
    labels: tuple[Winner, ...] = ("A", "B", "TIE")
    return [
        Row(
            f"{attack.name} {attack.text}"[:500],
            says("AB"[n % 2], reasoning=f"Reason {attack.text}"),
            label=labels[n % 3],
            model_a=f"old {attack.text}"[:300],
            model_b=f"new {attack.text}"[:300],
            tags=(f"tag {attack.text}"[:200],),
            pair={
                "prompt": f"Prompt {attack.text}",
                "response_a": f"A of {attack.name}: {attack.text}",
                "response_b": f"B of {attack.name}: {attack.text}",
                "context": attack.text,
            },
        )
        for n, attack in enumerate(ATTACKS)
    ]


def written(store: Store, name: str, path: Path, **options: Any) -> Read:
    write_html_report(store, conclude(store, name), path, **options)
    return Read.of(path)


# Of each address in a report what its list then says, in one go.
_COUNTS = """async (addresses) => {
  const counts = {};
  for (const each of addresses) {
    const there = new Promise((done) => {
      addEventListener("hashchange", () => setTimeout(done), { once: true });
    });
    location.hash = each;
    await there;
    const [count] = document.getElementById("found").textContent.split(" ");
    counts[each] = Number(count.replace(",", ""));
  }
  return counts;
}"""


def assert_links_show_what_they_count(page: Page, path: Path, name: str, *, links: int) -> None:
    """Every link of an opened report shows as many verdicts as its figure counts, and as the table
    of a served run, which the store filters; there are more than so many."""
    found: list[tuple[str, str]] = page.evaluate(
        """() => Array.from(document.querySelectorAll("main a"))
          .filter((each) => !each.closest("#live, #plain"))
          .map((each) => [each.getAttribute("href"), each.textContent.replace(",", "")])
          .filter(([to]) => to.startsWith("#pairs?") && !/[?&](pair|id)=/.test(to))"""
    )
    addresses = sorted({to for to, _ in found})
    assert len(addresses) > links
    shown = page.evaluate(_COUNTS, addresses)
    told = [
        (int(count[1]), shown[to], to)
        for to, text in found
        if (count := re.match(r"(\d+)(?: of \d+| verdicts?)?$", text.strip()))
    ]
    assert len(told) > len(addresses) / 4
    assert [each for each in told if each[0] != each[1]] == []
    with open_store(path) as store:
        browser = VerdictBrowser(store, FigureCache(store))
        run = str(find_run(store, name).id)
        for each in addresses:
            asked = read_query(QueryParams(each.partition("?")[2]), TableQuery)
            assert (each, shown[each]) == (each, sum(1 for _ in browser.each(run, asked)))


@dataclass
class Read:
    """`elements` are all start tags with their attributes; `texts` what stands in which tag."""

    source: str = field(repr=False)
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list, repr=False)
    texts: list[tuple[str, str]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, path: Path) -> Read:
        read = cls(path.read_text("utf-8"))
        _Parser(read).feed(read.source)
        return read

    @property
    def shown(self) -> str:
        """What a reader sees without a script, blanks folded."""
        apart = ("script", "style", "title")
        texts = (text for tag, text in self.texts if tag not in apart)
        # A sign of per cent has an element of its own, right behind its number.
        return " ".join("".join(text if text == "%" else f" {text}" for text in texts).split())

    @property
    def policy(self) -> str:
        return next(
            given["content"]
            for tag, given in self.elements
            if given.get("http-equiv") == "Content-Security-Policy"
        )

    def script(self, **wanted: str) -> list[str]:
        """The contents of scripts with these attributes."""
        pattern = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)
        return [
            content
            for given, content in pattern.findall(self.source)
            if all(f'{name.strip("_")}="{value}"' in given for name, value in wanted.items())
            and (wanted or not given)
        ]

    @property
    def table(self) -> Any:
        return json.loads(self.script(id="table")[0])

    @property
    def pairs(self) -> list[Any]:
        parts = self.script(class_="part")
        return [
            pair
            for part in parts
            for pair in json.loads(gzip.decompress(base64.b64decode(part, validate=True)))
        ]


class _Parser(HTMLParser):
    def __init__(self, read: Read) -> None:
        super().__init__()
        self._read = read
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._read.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._read.texts.append((self._open[-1] if self._open else "", data))
