from __future__ import annotations

import pytest

from evenhand.contract import Failure, Verdict
from evenhand.errors import InputError
from evenhand.report.records import report_pair
from evenhand.store import Store
from stored_runs import ROWS, Row, judge_run, make_run, says


def test_pair_is_found_by_its_id_or_its_number(store: Store) -> None:
    make_run(store, "first", ROWS)
    for name in ("q7", "7", "#7"):
        assert report_pair(store, "first", name).id == "q7"
    assert report_pair(store, "first", "8").id == "q8"  # pending, and found all the same


def test_row_without_an_id_is_found_by_its_row(store: Store) -> None:
    rows = [Row(f"#{number}", says("A")) for number in (2, 3, 5)]
    make_run(store, "rows", rows)
    for name in ("#5", "5"):
        report = report_pair(store, "rows", name)
        assert (report.id, report.number) == ("#5", 3)
    assert report_pair(store, "rows", "1").id == "#2"  # there is no row 1 but a first pair


def test_id_that_looks_like_a_number_is_an_id_first(store: Store) -> None:
    make_run(store, "odd", [Row("2", says("A")), Row("1", says("B"))])
    assert report_pair(store, "odd", "1").number == 2
    assert report_pair(store, "odd", "2").number == 1


@pytest.mark.parametrize("name", ["q9", "9", "0", "#0", "-1", "", "9" * 40, "²"])
def test_pair_that_is_not_there_is_refused_with_what_is(store: Store, name: str) -> None:
    make_run(store, "first", ROWS)
    with pytest.raises(InputError, match=r"no pair .* among its 8 pairs; .* number from 1 to 8$"):
        report_pair(store, "first", name)


def test_pair_has_its_texts_and_every_pass_of_every_judge(store: Store) -> None:
    make_run(store, "first", ROWS, judges=("strict", "kind"))
    report = report_pair(store, "first", "q1")
    assert (report.pair.prompt, report.label, report.tags) == (
        "Question q1?",
        "A",
        ("math", "easy"),
    )
    assert [judged.judge for judged in report.judges] == ["strict", "kind"]
    for judged in report.judges:
        assert isinstance(judged.verdict, Verdict)
        assert judged.verdict.winner == "A"
        assert [(each.order, each.status) for each in judged.passes] == [
            ("original", "ballot"),
            ("swapped", "ballot"),
        ]
        assert all('"winner"' in each.raw and not each.reused for each in judged.passes)
        assert judged.passes[0].request_ids == ("request-1",)


def test_failed_passes_are_there_though_the_verdict_rests_on_none(store: Store) -> None:
    make_run(store, "first", ROWS)
    (judged,) = report_pair(store, "first", "q7").judges
    assert isinstance(judged.verdict, Failure)
    assert judged.verdict.metadata.passes == ()
    assert [each.status for each in judged.passes] == ["failed", "failed"]
    assert judged.passes[0].error is not None
    assert judged.passes[0].error.message == "the server fell over; start it again"


def test_pending_pair_says_so(store: Store) -> None:
    make_run(store, "first", ROWS)
    (judged,) = report_pair(store, "first", "q8").judges
    assert (judged.pending, judged.verdict, judged.passes) == (True, None, ())


def test_replaced_passes_are_kept_beside_the_new_ones(store: Store) -> None:
    run_id = make_run(store, "first", ROWS)
    store.work.retire(run_id, {"failed", "unread"})
    (judged,) = report_pair(store, "first", "q6").judges
    assert (judged.pending, judged.passes) == (True, ())
    assert [each.status for each in judged.replaced] == ["unread", "unread"]
    assert judged.replaced[0].raw == "I cannot say."
    (judge,) = store.runs.judges(run_id)
    judge_run(store, run_id, judge.id, {row.key: Row(row.key, says("B")) for row in ROWS})
    (again,) = report_pair(store, "first", "q6").judges
    assert [each.status for each in again.passes] == ["ballot", "ballot"]
    assert [each.status for each in again.replaced] == ["unread", "unread"]


def test_pass_that_another_run_made_is_marked_as_reused(store: Store) -> None:
    make_run(store, "first", ROWS[:1])
    make_run(store, "second", ROWS[:1])
    (judged,) = report_pair(store, "second", "q1").judges
    assert [each.reused for each in judged.passes] == [True, True]
