"""A reader of Chinese meets no English prose of ours, on any page, in a report or in a notebook.

The data here hold no English sentence, so that whatever sentence is found is ours.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest

from evenhand.analyses.rank import rank_runs
from evenhand.contract import Winner
from evenhand.data.records import BadRow
from evenhand.judges.protocol import Completion, JudgeCall
from evenhand.messages import Message
from evenhand.present.html.one_file import write_html_report
from evenhand.present.notebook import html_of
from evenhand.report.conclusions import conclude
from evenhand.report.records import read_run
from evenhand.serve.pages.vote import NAME_COOKIE
from evenhand.store import NewVote, Store, open_store
from evenhand.trust.audit import audit_run
from one_files import Read
from page_visits import Visitor, serving
from scripted import Answer
from stored_runs import USAGE, Row, completed, fails, make_run, mumbles

# Three words in a row are prose. Commands to type are the same in every language.
_PROSE = re.compile(r"[A-Za-z][a-z’']+(?:[ ,;:]+[A-Za-z][A-Za-z’'-]*){2,}")
_COMMAND = re.compile(r"evenhand [a-z]+(?: [a-z]+)?")
# What the data's judges say, and how the run's language calls their passes.
_OF_THE_DATA = re.compile(
    r"I cannot say\.|the server fell over; start it again|(?:First|Second) pass: "
)
_SPOKEN = ("alt", "title", "aria-label", "placeholder")
_NOT_READ = ("script", "style", "code", "pre", "kbd")


class _Reader(HTMLParser):
    """Each text by itself, as somebody reads or hears it."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._within: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [value or "" for name, value in attrs if name in _SPOKEN]
        if tag in _NOT_READ:
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.texts.append(data)


def prose_in(html: str) -> list[str]:
    return sorted({found for text in _Reader(html).texts for found in _found(text)})


def _found(text: str) -> list[str]:
    return _PROSE.findall(_OF_THE_DATA.sub("", _COMMAND.sub("", text)))


def says(winner: str) -> Answer:
    turned = {"A": "B", "B": "A", "TIE": "TIE"}

    def answer(call: JudgeCall) -> Completion:
        seen = winner if call.order == "original" else turned[winner]
        return _judged(seen)

    return answer


def _judged(seen: str) -> Completion:
    side = {"strengths": ["好"], "weaknesses": []}
    said = {
        "analysis": {"responseA": side, "responseB": side},
        "comparison": [
            {
                "criterion": "accuracy",
                "aAssessment": "甲",
                "bAssessment": "乙",
                "reasoning": "理由",
                "winner": seen,
            }
        ],
        "result": {
            "winner": seen,
            "confidence": 0.8,
            "reasoning": "因为",
            "differentiators": ["对"],
        },
    }
    return completed(json.dumps(said, ensure_ascii=False), USAGE)


def follows_place(call: JudgeCall) -> Completion:
    return _judged("A")


_ANSWERS = {
    "A": says("A"),
    "B": says("B"),
    "T": says("TIE"),
    "I": follows_place,
    "X": mumbles,
    "F": fails,
}


def rows_of(letters: str) -> list[Row]:
    models = [*combinations(("墨子", "atlas", "borealis"), 2)]
    labels: tuple[Winner | None, ...] = ("A", "B", "TIE", None)
    return [
        Row(
            f"q{n}",
            _ANSWERS[letter],
            label=labels[n % 4],
            model_a=models[n % 3][0],
            model_b=models[n % 3][1],
            tags=("数学",) if n % 2 else ("易", "code"),
            pair={
                "prompt": f"问题 {n}？",
                "response_a": "一" * (n % 7 + 1),
                "response_b": "二" * (n % 5 + 1),
            },
        )
        for n, letter in enumerate(letters, start=1)
    ]


LETTERS = "ABBTIXFBAABI" * 6


def fill(store: Store) -> dict[str, int]:
    """A rich run, one that stopped once it was decided, one without models, and one going on."""
    skipped = [BadRow("数据.jsonl", 9, Message("pair.field_missing", where="responseA"))]
    rich = make_run(store, "富", rows_of(LETTERS), judges=("甲", "乙"), skipped=skipped)
    store.runs.update(rich, state="finished")
    plain = [
        replace(row, model_a=None, model_b=None, label=None, tags=()) for row in rows_of("ABB")
    ]
    bare = make_run(store, "简", plain, judges=("甲",))
    store.runs.update(bare, state="finished")
    decided = make_run(
        store,
        "定",
        [replace(row, model_a=None, model_b=None) for row in rows_of("B" * 60)],
        judges=("甲",),
        plan={"until_decided": {"alpha": 0.05, "seed": 0}},
    )
    store.runs.update(decided, state="finished", stopped_by="decided")
    half = [*rows_of("ABBA"), replace(rows_of("A" * 5)[4], judged=False)]
    going = make_run(store, "半", half, judges=("甲",))
    store.runs.update(going, state="stopped", stopped_by="cancel")
    pairs = [each.pair_id for each in store.items.all(rich)][:12]
    store.votes.add([NewVote(pair, who, "A") for pair in pairs for who in ("王伟", "李娜")])
    store.votes.add([NewVote(pairs[0], "张三", "TIE", both_bad=True, comment="都差")])
    return {"rich": rich, "bare": bare, "decided": decided, "going": going}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    directory = tmp_path_factory.mktemp("chinese")
    with open_store(directory / "pages.db") as store:
        return directory, fill(store)


@pytest.fixture(scope="module")
def store(filled: tuple[Path, dict[str, int]]) -> Iterator[Store]:
    with open_store(filled[0] / "pages.db") as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("run", ["富", "定", "半"])
def test_report_in_one_file(run: str, store: Store, tmp_path: Path) -> None:
    write_html_report(store, conclude(store, run), tmp_path / "a.html", language="zh")
    read = Read.of(tmp_path / "a.html")
    assert prose_in(read.source) == []
    assert [found for pair in read.pairs for found in prose_in(pair["html"])] == []
    for picture in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', read.source):
        shown = re.findall(r"<text[^>]*>([^<]*)</text>", base64.b64decode(picture).decode())
        assert [found for text in shown for found in _found(text)] == []


def test_notebooks(store: Store) -> None:
    verdicts = [row.verdict for row in read_run(store, "富")][:14:2]
    values = [
        *verdicts,
        conclude(store, "富"),
        conclude(store, "定"),
        rank_runs(store, ["富"]),
        audit_run(store, "富", judge="甲"),
    ]
    for value in values:
        shown = html_of(value, "zh")
        assert shown is not None
        assert prose_in(shown) == []


@pytest.fixture(scope="module")
def visitor(filled: tuple[Path, dict[str, int]]) -> Iterator[Visitor]:
    with serving(filled[0], lambda request: None) as visiting:  # type: ignore[arg-type,return-value]
        yield visiting


PAGES = (
    "/",
    "/new",
    "/new?kind=outputs",
    "/new?kind=models",
    "/compare",
    "/runs/{rich}",
    "/runs/{bare}",
    "/runs/{decided}",
    "/runs/{going}",
    "/runs/{rich}/pairs",
    "/runs/{rich}/pairs?outcome=tie&query=无",
    *(f"/runs/{{rich}}/pairs/{number}" for number in (1, 4, 5, 6, 7)),
    "/rank",
    "/rank?run={rich}",
    "/rank?run={bare}",
    "/runs/{rich}/audit",
    "/runs/{bare}/audit",
    "/runs/{rich}/calibration",
    "/runs/{bare}/calibration",
    "/runs/{rich}/probes",
    "/runs/{rich}/gate",
    "/runs/{bare}/gate",
    "/runs/{rich}/correct?labelsAre=random",
    "/runs/{bare}/correct",
    "/runs/{rich}/jury",
    "/runs/{rich}/vote",
    "/runs/{rich}/vote?rename=1",
    "/runs/{rich}/votes",
    "/runs/{bare}/votes",
    "/try",
)
PROBLEMS = ("/runs/999", "/runs/{rich}/pairs/999", "/runs/{rich}/pairs/none")


@pytest.mark.slow
@pytest.mark.parametrize("address", PAGES)
def test_page(address: str, filled: tuple[Path, dict[str, int]], visitor: Visitor) -> None:
    path = address.format(**filled[1])
    visitor.client.cookies.set(NAME_COOKIE, "eve")
    visitor.wait(path, lambda _: True)
    shown = visitor.ask(path, **{"Accept-Language": "zh"}).text
    assert 'lang="zh-CN"' in shown
    assert prose_in(shown) == []


@pytest.mark.parametrize("address", PROBLEMS)
def test_what_went_wrong(
    address: str, filled: tuple[Path, dict[str, int]], visitor: Visitor
) -> None:
    answer = visitor.ask(address.format(**filled[1]), **{"Accept-Language": "zh"})
    assert answer.status_code == 404
    assert prose_in(answer.text) == []
