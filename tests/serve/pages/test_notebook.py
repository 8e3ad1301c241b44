"""What a notebook shows of a value, through IPython's own display formatter."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell

from evenhand.contract import Failure, Pair, Verdict
from evenhand.errors import MissingExtra
from evenhand.report.charts import drawing as charts
from evenhand.report.conclusions import conclude
from evenhand.report.ranking import RankOptions, rank_runs
from evenhand.report.records import read_run
from evenhand.runs.summary import JudgeSummary, RunSummary, Spent
from evenhand.serve.pages.notebook import bundle_of, html_of
from evenhand.store import Store, open_store
from evenhand.trust.audit import audit_run
from html_reading import ATTACKS
from one_files import finished_run, hostile_rows, rows_of

VEGA = f"application/vnd.vegalite.{alt.SCHEMA_VERSION.split('.')[0]}+json"
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


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtra("altair", "plot")

    monkeypatch.setattr(charts, "_need_altair", missing)


def shown(shell: InteractiveShell, value: object) -> dict[str, Any]:
    formats: dict[str, Any]
    formats, _ = formatter_of(shell).format(value)  # type: ignore[no-untyped-call]
    return formats


def told(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.mark.slow
def test_conclusions_show_tables_with_intervals_and_a_chart(
    shell: InteractiveShell, store: Store
) -> None:
    formats = shown(shell, conclude(store, "first"))
    assert {"text/plain", "text/html", VEGA} <= formats.keys()
    # Wilson for 40 of 60
    assert "new against old scripted 66.7 % (54.1 to 77.3) 40 20 0 0 0" in told(
        formats["text/html"]
    )
    assert "vconcat" in formats[VEGA]
    *_, chart = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', formats["text/html"])
    assert b"Win rate" in base64.b64decode(chart)


@pytest.mark.slow
def test_ranking_shows_scores_ranks_and_neighbours(shell: InteractiveShell, store: Store) -> None:
    formats = shown(shell, rank_runs(store, ["league"]))
    assert {"text/html", VEGA} <= formats.keys()
    rows = re.findall(r"<tr><td>(\d)</td><td>(\d–\d)</td><th><bdi>(\w)</bdi>", formats["text/html"])
    assert sorted(model for _, _, model in rows) == ["w", "x", "y", "z"]
    assert "Neighbours that are not significantly different" in formats["text/html"]


def test_elo_ratings_say_that_they_have_no_intervals(store: Store) -> None:
    html = html_of(rank_runs(store, ["league"], RankOptions(elo_k=16)))
    assert html is not None
    assert "(no interval)" in html
    assert "depend on the order of the battles" in html


def test_audit_shows_agreement_confusion_and_a_word(shell: InteractiveShell, store: Store) -> None:
    formats = shown(shell, audit_run(store, "first"))
    assert {"text/html", VEGA} <= formats.keys()
    text = told(formats["text/html"])
    assert "60 judged pairs have a label." in text
    assert "right of all labelled pairs 66.7 % (54.1 to 77.3) 40 of 60" in text
    assert "B won 20 0 0 40 0" in text  # the row of label B: A, tie, inconsistent, B, invalid


def test_verdict_shows_criteria_and_both_passes(shell: InteractiveShell, store: Store) -> None:
    verdict = next(read_run(store, "first")).verdict
    assert isinstance(verdict, Verdict)
    formats = shown(shell, verdict)
    assert VEGA not in formats
    text = told(formats["text/html"])
    assert text.startswith("B won · confidence 0.80 (as the judge stated it) · scripted")
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


def test_html_is_inert_and_judged_texts_are_text(store: Store, undrawn: None) -> None:
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
        for tag in re.findall(r"<[^>]*>", html):
            assert not re.search(r"""\s(on\w+|style|href)=""", tag), tag
            assert "src=" not in tag or 'src="data:image/svg+xml;base64,' in tag, tag
    for attack, html in zip(ATTACKS, map(html_of, values[3:]), strict=True):
        if "<" in attack.text:
            assert attack.text not in (html or "")


def test_without_the_extra_the_tables_stay(store: Store, undrawn: None) -> None:
    found = conclude(store, "first")
    assert bundle_of(found) == {}
    html = html_of(found)
    assert html is not None
    assert "66.7" in html


def test_chinese_can_be_asked_for(store: Store, undrawn: None) -> None:
    assert "胜率" in (html_of(conclude(store, "first"), "zh") or "")


def test_terminal_draws_no_chart(shell: InteractiveShell, store: Store) -> None:
    formatter = formatter_of(shell)
    before = formatter.active_types
    formatter.active_types = ["text/plain"]
    try:
        assert shown(shell, conclude(store, "first")).keys() == {"text/plain"}
    finally:
        formatter.active_types = before


def test_a_value_loads_the_pages_only_when_a_notebook_shows_it(tmp_path: Path) -> None:
    program = (
        "import sys; from evenhand import Pair\n"
        "pair = Pair(prompt='p', response_a='a', response_b='b', criteria=('c',)); repr(pair)\n"
        "assert not [name for name in sys.modules if name.startswith('evenhand.serve.pages')]\n"
        "assert 'jinja2' not in sys.modules"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
