"""The figures of charts as rows and as CSV."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart_values import HOSTILE_NAMES, conclusion, conclusions, league, ranked, side_rate
from evenhand.messages import Message, render
from evenhand.present import charts
from evenhand.present.chart_rows import COLUMNS, ranking_rows, share_rows
from evenhand.present.charts import write_ranking_chart, write_report_chart
from evenhand.report.files import unescape
from evenhand.stats.clusters import not_enough
from evenhand.stats.estimates import EstimatedShare

_SLOT = re.compile(r"\{(\w+)\}")


def written(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_csv_has_what_the_chart_draws(tmp_path: Path) -> None:
    found = conclusion(side_rate(0.573, invalid=4), criteria=["accuracy"], tags=["code"])
    write_report_chart(conclusions(found), tmp_path / "run.csv")
    rows = written(tmp_path / "run.csv")
    assert tuple(rows[0]) == COLUMNS
    first = rows[0]
    assert (first["chart"], first["figure"]) == ("win-rate", "win_rate")
    assert [float(first[name]) for name in ("value", "low", "high")] == [
        0.573,
        pytest.approx(0.513),
        pytest.approx(0.633),
    ]
    assert {row["chart"] for row in rows} == {"win-rate", "outcomes", "criteria", "tags", "length"}
    counts = {row["figure"]: int(row["value"]) for row in rows if row["chart"] == "outcomes"}
    own = found.win_rate.counts
    assert counts == {
        "won": own.wins_b,
        "tie": own.ties,
        "inconsistent": own.inconsistent,
        "lost": own.wins_a,
        "invalid": 4,
    }


def test_a_ranking_has_scores_ranks_and_every_cell(tmp_path: Path) -> None:
    ranking = league(["a", "b", "c", "d"])
    rows = list(ranking_rows(ranking))
    assert [row.figure for row in rows].count("score") == 4
    assert [row.figure for row in rows].count("rank") == 4
    cells = {(row.name, row.of): row for row in rows if row.figure == "expected_score"}
    assert len(cells) == 12
    for (one, other), cell in cells.items():
        theirs = cells[other, one]
        assert cell.value is not None
        assert theirs.value is not None
        assert cell.value + theirs.value == pytest.approx(1)
        assert (cell.low, cell.high) != (None, None)
        assert cell.low == pytest.approx(1 - (theirs.high or 0))


def test_hostile_names_come_through_a_csv_and_are_no_formulas(tmp_path: Path) -> None:
    names = [name for name in HOSTILE_NAMES if "\ud800" not in name and "\x00" not in name]
    names += ["=1+1", "@x", "+2", "-3"]
    write_ranking_chart(ranked(league(names)), tmp_path / "ranking.csv")
    rows = written(tmp_path / "ranking.csv")
    assert {unescape(row["name"]) for row in rows} == set(names)
    assert not [row for row in rows if row["name"][:1] in tuple("=+-@")]


def test_rows_of_shares_keep_their_reasons() -> None:
    unknown = EstimatedShare(part=1, of=2, value=None, low=None, high=None, reason="too few")
    (row,) = share_rows("probes", [("x", unknown)])
    assert (row.value, row.n, row.note) == (None, 2, "too few")


def test_a_chart_in_chinese_has_no_english_sentence() -> None:
    reason = not_enough(3, "pair", 6)
    found = conclusion(
        side_rate(None).model_copy(update={"reason": reason}), criteria=["准确"], tags=["代码"]
    )
    for chart in (
        charts.report_chart(conclusions(found), language="zh"),
        charts.ranking_chart(league(["甲", "乙", "丙"]), language="zh"),
    ):
        assert re.findall(r"[a-z]{3,} [a-z]{3,}", chart.described) == []


@pytest.mark.parametrize("what", ["pair", "labelled pair", "prompt", "verdict", "case", "vote"])
@pytest.mark.parametrize("have", [0, 1, 5])
def test_why_there_is_too_little_data_is_told_in_chinese(what: str, have: int) -> None:
    told = render(not_enough(have, what, 6), "zh")
    assert told.startswith("数据不足")
    assert str(have) in told
    assert "6" in told


@given(st.text(max_size=300))
def test_a_sentence_that_is_no_message_stays_as_it_is(said: str) -> None:
    assert render(said, "zh") == said


@given(name=st.text(min_size=1, max_size=50))
def test_a_name_inside_a_sentence_stays_as_it_is(name: str) -> None:
    said = Message("report.run_without_judge", run=name, judge="x")
    assert render(said, "zh") == f"运行 {name} 没有评审 x，不计入"
