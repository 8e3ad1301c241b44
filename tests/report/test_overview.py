"""What a run's page shows beside its conclusion: each bar and each cell counts what its filter
shows; the checks fail by their rules; a headline can be pasted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.report.conclusions import conclude
from evenhand.report.overview import RunOverview, as_markdown, overview, trust_checks
from evenhand.serve.verdicts import VerdictQuery, judge_ids
from evenhand.store import Store
from scripted import answer_json
from stored_runs import USAGE, Row, completed, follows_place, make_run, mumbles, opened, says


def sure_of(winner: str, confidence: float | None) -> Any:
    def answer(call: Any) -> Any:
        seen = winner if call.order == "original" else {"A": "B", "B": "A"}[winner]
        return completed(
            answer_json(seen, confidence=confidence, criteria=[("accuracy", seen)]), USAGE
        )

    return answer


def rows() -> list[Row]:
    made = []
    for n in range(60):
        answer = sure_of("A" if n % 3 else "B", (0.0, 0.1, 0.25, 0.3, 0.9, 1.0, None)[n % 7])
        if n % 11 == 0:
            answer = (mumbles, follows_place)[n % 2]
        lengths = {"response_a": "a" * (n % 13), "response_b": "b" * (n * n % 97)}
        tags = ("even",) if n % 2 == 0 else ("odd", "five") if n % 5 == 0 else ()
        made.append(Row(f"q{n}", answer, pair=lengths, tags=tags, label="A" if n % 4 else None))
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path) as store:
        yield store


def shown(store: Store, run_id: int, filters: dict[str, Any]) -> int:
    wanted = VerdictQuery.model_validate(filters)
    judges = store.runs.judges(run_id)
    names = {judge.id: judge.name for judge in judges}
    return store.table.count(run_id, wanted, judge_ids=judge_ids(wanted.judge, judges, names))


def of_rows(store: Store, made: list[Row]) -> tuple[int, RunOverview]:
    run_id = make_run(store, "run", made)
    return run_id, overview(store, "run")


def test_each_bar_counts_what_its_filter_shows(store: Store) -> None:
    run_id, found = of_rows(store, rows())
    (judge,) = found.judges
    for bars in (judge.confidence, judge.length):
        assert sum(bar.count for bar in bars) == 60
        for bar in bars:
            assert shown(store, run_id, bar.filters) == bar.count, bar
            for winner, count in (("A", bar.wins_a), ("B", bar.wins_b)):
                won = bar.filters | {"outcome": "win", "winner": winner}
                assert shown(store, run_id, won) == count
    assert len(judge.length) == 17
    assert sum(bar.count > 0 for bar in judge.confidence) >= 6


def test_each_cell_of_the_heat_map_counts_what_its_filter_shows(store: Store) -> None:
    run_id, found = of_rows(store, rows())
    cells = found.judges[0].cells
    assert [(cell.tag, cell.criterion) for cell in cells] == [
        ("even", "accuracy"),
        ("five", "accuracy"),
        ("odd", "accuracy"),
    ]
    for cell in cells:
        assert shown(store, run_id, cell.filters) == cell.count
        for end, count in (("A", cell.wins_a), ("B", cell.wins_b), ("invalid", cell.invalid)):
            assert shown(store, run_id, cell.filters | {"criterionEnd": end}) == count


def test_each_check_counts_what_its_filter_shows(store: Store) -> None:
    run_id, found = of_rows(store, rows())
    checks = found.judges[0].checks
    assert [check.name for check in checks] == ["orders_agree", "position_lean", "label_agreement"]
    (concluded,) = conclude(store, "run").conclusions
    of_conclusion = list(trust_checks(concluded, checks[-1].share))
    assert [check for check in of_conclusion if check.name != "longer_wins"] == list(checks)
    for check in of_conclusion:
        assert shown(store, run_id, check.filters) == check.share.part, check.name


def test_a_judge_that_follows_the_position_fails_the_checks_of_order(store: Store) -> None:
    made = [Row(f"q{n}", follows_place, label="A") for n in range(40)]
    _, found = of_rows(store, made)
    fails = {check.name: check.fails for check in found.judges[0].checks}
    # It has no verdict that could be right.
    assert fails == {"orders_agree": True, "position_lean": True, "label_agreement": True}


def test_a_judge_that_is_right_passes(store: Store) -> None:
    _, found = of_rows(store, [Row(f"q{n}", says("A"), label="A") for n in range(40)])
    fails = {check.name: check.fails for check in found.judges[0].checks}
    assert (fails["orders_agree"], fails["position_lean"], fails["label_agreement"]) == (
        False,
        False,
        False,
    )


def test_a_headline_as_markdown_has_no_markup_of_others(store: Store) -> None:
    make_run(store, "run", [Row(f"q{n}", says("B"), model_b="*<b>new*") for n in range(40)])
    (conclusion,) = conclude(store, "run").conclusions
    text = as_markdown(conclusion.messages, ["run a_b", "40 pairs\n# no heading"])
    first, *rest = text.splitlines()
    assert first.startswith(r"**\*\<b\>new\* beats A: 100% win rate (")
    assert rest == ["", r"- run a\_b", r"- 40 pairs \# no heading"]
    assert as_markdown("plain") == "**plain**\n"
    assert as_markdown(conclusion.messages, language="zh").startswith(r"**\*\<b\>new\* 优于 A：")
