from __future__ import annotations

from datetime import UTC

from evenhand.contract import Usage
from evenhand.data.records import BadRow
from evenhand.report.run import JudgeReport, list_runs, report_run
from evenhand.store import Store
from stored_runs import ROWS, SKIPPED, Row, fails, make_run, says


def test_runs_are_listed_newest_first_with_four_outcomes_apart(store: Store) -> None:
    make_run(store, "first", ROWS, skipped=SKIPPED)
    make_run(store, "second", ROWS[:2], judges=("strict", "kind"))
    second, first = list_runs(store)
    assert (first.run, first.pairs, first.judged, first.skipped_rows) == ("first", 8, 7, 2)
    assert (first.wins_a, first.wins_b, first.ties) == (2, 1, 1)
    assert (first.inconsistent, first.invalid, first.pending) == (1, 2, 1)
    # two pairs, each judged by both
    assert (second.run, second.pairs, second.judged, second.wins_a) == ("second", 2, 4, 4)
    assert second.judges == ("strict", "kind")
    assert second.created_at.tzinfo is UTC


def only_judge(store: Store, name: str) -> JudgeReport:
    (judge,) = report_run(store, name).judges
    return judge


def test_judge_is_reported_with_its_outcomes_and_passes(store: Store) -> None:
    make_run(store, "first", ROWS)
    judge = only_judge(store, "first")
    assert (judge.wins_a, judge.wins_b, judge.ties) == (2, 1, 1)
    assert (judge.inconsistent, judge.invalid, judge.pending) == (1, 2, 1)
    assert (judge.unread_passes, judge.failed_passes) == (2, 2)
    assert (judge.prompt_version, judge.locale, judge.mode) == ("en-reasoned-1", "en", "reasoned")
    assert judge.settings == {"temperature": 0}


def test_sum_with_an_unknown_part_is_not_known(store: Store) -> None:
    make_run(store, "known", ROWS[:2])
    known = only_judge(store, "known").spent
    # two pairs in two orders, each 100 tokens in, 20 out, a quarter of a dollar
    assert (known.passes, known.requests) == (4, 4)
    assert (known.input_tokens, known.output_tokens, known.cost_usd) == (400, 80, 1.0)
    unpriced = Usage(input_tokens=100, output_tokens=20, requests=1)
    make_run(store, "unpriced", [ROWS[1], Row("other", says("A", usage=unpriced))], judges=("b",))
    some = only_judge(store, "unpriced").spent
    assert (some.input_tokens, some.cost_usd) == (400, None)
    assert (some.known_cost_usd, some.unpriced_passes) == (0.5, 2)


def test_skipped_rows_are_counted_all_and_the_first_are_named(store: Store) -> None:
    rows = [BadRow("pairs.jsonl", number, f"reason {number}") for number in range(1, 31)]
    make_run(store, "holes", ROWS[:1], skipped=rows)
    report = report_run(store, "holes")
    assert report.skipped_rows == 30
    assert [(row.row, row.reason) for row in report.skipped] == [
        (number, f"reason {number}") for number in range(1, 21)
    ]


def test_invalid_pairs_are_named_with_their_reasons(store: Store) -> None:
    make_run(store, "first", ROWS)
    unread, failed = report_run(store, "first").invalid_pairs
    assert (unread.id, unread.judge, unread.kind) == ("q6", "scripted", "invalid")
    assert unread.message == (
        "no valid verdict: Both passes: unreadable (the judge declined: 'I cannot say.')"
    )
    assert (failed.id, failed.kind) == ("q7", "judge")
    assert failed.message == "the server fell over; start it again"


def test_only_the_first_invalid_pairs_are_named(store: Store) -> None:
    make_run(store, "broken", [Row(f"b{n}", fails) for n in range(1, 26)])
    report = report_run(store, "broken")
    assert [each.id for each in report.invalid_pairs] == [f"b{n}" for n in range(1, 21)]
    assert report.judges[0].invalid == 25


def test_run_tells_its_plan_time_and_what_stopped_it(store: Store) -> None:
    plan = {
        "data": {"criteria": []},
        "judges": ["scripted"],
        "deciding": [{"samples": 3, "reconcile": "average"}],
    }
    run_id = make_run(store, "first", ROWS[:1], plan=plan)
    store.runs.update(run_id, state="stopped", stopped_by="max-calls", seconds=12.5, calls=2)
    report = report_run(store, "first")
    assert (report.state, report.stopped_by) == ("stopped", "max-calls")
    assert (report.seconds, report.calls, report.sources) == (12.5, 2, ("pairs.jsonl",))
    assert report.plan == plan
    assert (report.judges[0].samples, report.judges[0].reconcile) == (3, "average")


def test_run_without_judges_or_pairs_is_reported_all_the_same(store: Store) -> None:
    make_run(store, "bare", (), judges=())
    report = report_run(store, "bare")
    assert (report.pairs, report.judges, report.skipped, report.invalid_pairs) == (0, (), (), ())
    assert (report.spent.passes, report.spent.cost_usd) == (0, None)
