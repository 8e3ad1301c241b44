"""What a notebook shows of a value, through IPython's own display formatter."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from markupsafe import escape

from evenhand.analyses.rank import rank_runs, sum_up_ranking
from evenhand.analysis_options import RankOptions
from evenhand.contract import Failure, Pair, Verdict
from evenhand.messages import render
from evenhand.present.notebook import html_of
from evenhand.report.conclusions import conclude
from evenhand.report.records import read_run
from evenhand.runs.summary import JudgeSummary, RunSummary, Spent
from evenhand.store import Store, open_store
from evenhand.trust.audit import audit_run
from html_reading import ATTACKS
from one_files import finished_run, hostile_rows, rows_of

ACTIVE = re.compile(r"<(script|style|iframe|object|embed|form|link|base|svg|math)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(tmp_path_factory.mktemp("store") / "evenhand.db") as opened:
        finished_run(opened, "first", rows_of("B" * 40 + "A" * 20, label="B"))
        finished_run(opened, "hostile", hostile_rows())
        league = [
            replace(row, model_a=a, model_b=b)
            for row, (a, b) in zip(
                rows_of("AABTB" * 6), [*combinations("wxyz", 2)] * 5, strict=True
            )
        ]
        finished_run(opened, "league", league)
        yield opened


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    """IPython with the formats of a notebook."""
    made = InteractiveShell.instance()
    formatter_of(made).active_types = formatter_of(made).format_types
    yield made
    InteractiveShell.clear_instance()


def formatter_of(shell: InteractiveShell) -> DisplayFormatter:
    assert shell.display_formatter is not None
    return shell.display_formatter


def shown(shell: InteractiveShell, value: object) -> dict[str, Any]:
    formats: dict[str, Any]
    formats, _ = formatter_of(shell).format(value)  # type: ignore[no-untyped-call]
    return formats


class Attributes(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += attrs


def told(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def chart_of(html: str) -> str:
    (chart,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    return base64.b64decode(chart).decode()


def test_conclusions_show_their_sentence_a_table_and_a_chart(
    shell: InteractiveShell, store: Store
) -> None:
    found = conclude(store, "first")
    formats = shown(shell, found)
    assert formats.keys() == {"text/plain", "text/html"}
    text = told(formats["text/html"])
    # Every pair is labelled B. Wilson for 60 of 60: 60 / (60 + 1.96²) = 0.940
    assert "new vs old scripted 100.0% (94.0 to 100.0) · corrected by labels 40 20 0 0 0" in text
    assert escape(found.conclusions[0].sentence) in text
    assert "Win rate" in chart_of(formats["text/html"])


def test_ranking_shows_who_leads_and_its_chart(shell: InteractiveShell, store: Store) -> None:
    ranked = rank_runs(store, ["league"])
    html = shown(shell, ranked)["text/html"]
    drawn = chart_of(html)
    assert ranked.ranking is not None
    for model in ranked.ranking.models:
        assert f">{model.model}</text>" in drawn
    assert told(html).startswith(str(escape(render(sum_up_ranking(ranked), "en"))))


def test_elo_ratings_say_that_they_have_no_intervals(store: Store) -> None:
    html = html_of(rank_runs(store, ["league"], RankOptions(elo=True)))
    assert html is not None
    assert "(no interval)" in html
    assert "depend on the order of the battles" in html


def test_audit_shows_agreement_confusion_and_a_word(shell: InteractiveShell, store: Store) -> None:
    formats = shown(shell, audit_run(store, "first"))
    text = told(formats["text/html"])
    assert "60 labelled pairs" in text
    assert "accuracy (labels): 66.7%, 54.1 to 77.3, 60 pairs" in chart_of(formats["text/html"])
    assert "B won 20 40 0 0 0" in text  # the row of label B: A, B, tie, inconsistent, invalid


def test_verdict_shows_criteria_and_both_passes(shell: InteractiveShell, store: Store) -> None:
    verdict = next(read_run(store, "first")).verdict
    assert isinstance(verdict, Verdict)
    formats = shown(shell, verdict)
    text = told(formats["text/html"])
    assert text.startswith("B won · confidence 0.80 · scripted")
    assert "A shown first B won 0.80" in text
    assert "B shown first B won 0.80" in text


def test_run_shows_four_outcomes_and_no_rate_of_its_own(shell: InteractiveShell) -> None:
    counts = {"wins_a": 20, "wins_b": 40, "ties": 3, "inconsistent": 2, "invalid": 1, "pending": 0}
    judge = JudgeSummary(judge="j", prompt_version=None, unread_passes=0, **counts)
    spent = Spent(calls=132, input_tokens=None, output_tokens=None, cost_usd=None, seconds=2)
    used = {"calls": 132, "input_tokens": None, "output_tokens": None, "cost_usd": None}
    summary = RunSummary(
        run="r<b>",
        store="x.db",
        pairs=66,
        skipped_rows=0,
        reused_passes=0,
        seconds=2,
        stopped_by=None,
        judges=(judge,),
        total=spent,
        **counts,
        **used,
    )
    text = told(shown(shell, summary)["text/html"])
    assert "r&lt;b&gt; · 66 pairs" in text
    assert "j 20 40 3 2 1 0" in text
    assert "%" not in text  # a win rate is what `conclude` says


def test_failure_says_what_happened(store: Store) -> None:
    failure = Failure.model_validate(
        {"error": {"kind": "no_verdict", "message": "it <i>mumbled</i>", "retryable": False}}
    )
    assert "it &lt;i&gt;mumbled&lt;/i&gt;" in (html_of(failure) or "")


def test_other_values_keep_their_own_text(shell: InteractiveShell) -> None:
    pair = Pair.model_validate(
        {"prompt": "p", "responseA": "a", "responseB": "b", "criteria": ["c"]}
    )
    assert shown(shell, pair).keys() == {"text/plain"}


def test_html_is_inert_and_judged_texts_are_text(store: Store) -> None:
    values: list[object] = [
        conclude(store, "hostile"),
        rank_runs(store, ["hostile"]),
        audit_run(store, "hostile"),
        *(row.verdict for row in read_run(store, "hostile")),
    ]
    for value in values:
        html = html_of(value)
        assert html is not None
        assert not ACTIVE.search(html)
        read = Attributes()
        read.feed(html)
        assert {name for name, _ in read.found} <= {"dir", "alt", "src"}
        for name, value in read.found:
            assert name != "src" or (value or "").startswith("data:image/svg+xml;base64,")
    for attack, html in zip(ATTACKS, map(html_of, values[3:]), strict=True):
        if "<" in attack.text:
            assert attack.text not in (html or "")


def test_chinese_can_be_asked_for(store: Store) -> None:
    assert "胜率" in (html_of(conclude(store, "first"), "zh") or "")


def test_terminal_draws_no_chart(shell: InteractiveShell, store: Store) -> None:
    formatter = formatter_of(shell)
    before = formatter.active_types
    formatter.active_types = ["text/plain"]
    try:
        assert shown(shell, conclude(store, "first")).keys() == {"text/plain"}
    finally:
        formatter.active_types = before


def test_a_value_loads_its_drawings_only_when_a_notebook_shows_it(tmp_path: Path) -> None:
    program = (
        "import sys; from evenhand import Pair\n"
        "pair = Pair(prompt='p', response_a='a', response_b='b', criteria=('c',)); repr(pair)\n"
        "assert not [name for name in sys.modules if name.startswith('evenhand.present')]\n"
        "assert 'jinja2' not in sys.modules"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_no_server_is_loaded_for_a_notebook() -> None:
    program = (
        "import sys; from evenhand import Failure\n"
        "error = {'kind': 'no_verdict', 'message': 'm', 'retryable': False}\n"
        "assert Failure(error=error)._repr_html_()\n"
        "assert not [name for name in sys.modules if name.startswith('evenhand.serve')]"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
