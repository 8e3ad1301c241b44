"""Flags on pairs: one a pair of a run, read back with it wherever it is shown."""

from __future__ import annotations

import pytest

from evenhand.contract import Outcome
from evenhand.errors import InputError
from evenhand.report.export import json_lines
from evenhand.report.files import csv_lines
from evenhand.report.records import flag_pair, read_run, report_pair
from evenhand.store import Store
from evenhand.store.verdict_filter import VerdictFilter
from store_values import Begun, begin, item

HOSTILE = '=1+1 <script>alert(1)</script> \x1b[31m 响应 A\x00 "q", ‮'


@pytest.fixture
def begun(store: Store) -> Begun:
    begun = begin(store, *(item(f"q{n}") for n in range(1, 6)))
    begun.judge_all("A")
    return begun


def flagged(store: Store, run_id: int, **wanted: object) -> list[int]:
    filtered = VerdictFilter(**wanted)
    page = store.table.browse(run_id, filtered)
    assert store.table.count(run_id, filtered) == len(page.rows)
    return [row.number for row in page.rows]


def test_a_flag_is_set_changed_filtered_by_and_taken_away(store: Store, begun: Begun) -> None:
    run_id = begun.run_id
    store.flags.set(run_id, 2, comment="first")
    store.flags.set(run_id, 2, comment=HOSTILE)
    store.flags.set(run_id, 4, comment="  ")
    assert flagged(store, run_id, flagged=True) == [2, 4]
    assert flagged(store, run_id, flagged=False) == [1, 3, 5]
    assert flagged(store, run_id, flagged=True, outcome=Outcome.TIE) == []
    rows = {row.number: row.flag for row in store.table.browse(run_id, VerdictFilter()).rows}
    assert (rows[1], rows[2] and rows[2].comment) == (None, HOSTILE)
    assert rows[4] is not None
    assert rows[4].comment is None
    assert store.flags.remove(run_id, 2)
    assert not store.flags.remove(run_id, 2)
    assert flagged(store, run_id, flagged=True) == [4]


def test_a_flag_is_of_one_run_though_another_has_the_pair(store: Store, begun: Begun) -> None:
    other = begin(store, item("q1"), name="other")
    other.judge_all("B")
    store.flags.set(begun.run_id, 1, comment="here")
    assert [row.flagged for row in read_run(store, "run")] == [True, *[False] * 4]
    assert [row.flagged for row in read_run(store, "other")] == [False]


def test_exports_and_one_pair_have_the_flag_and_its_comment(store: Store, begun: Begun) -> None:
    flag_pair(store, "run", "q3", comment=HOSTILE)
    rows = list(read_run(store, "run"))
    assert [(row.id, row.comment) for row in rows if row.flagged] == [("q3", HOSTILE)]
    lines = b"".join(csv_lines(iter(rows))).decode().splitlines()
    header = lines[0].split(",")
    assert header[-2:] == ["flagged", "comment"]
    # A cell that a spreadsheet would take for a formula is a text there.
    assert any("'=1+1 <script>" in line for line in lines)
    assert b'"flagged":true' in b"".join(json_lines(iter(rows)))
    report = report_pair(store, "run", "3")
    assert (report.flagged, report.comment) == (True, HOSTILE)
    assert not flag_pair(store, "run", "q3", remove=True).flagged


def test_a_comment_is_forgotten_with_the_texts_and_the_flag_stays(
    store: Store, begun: Begun
) -> None:
    store.flags.set(begun.run_id, 1, comment="quotes a secret")
    store.deletion.forget_texts("run")
    (flag,) = [
        row.flag for row in store.table.browse(begun.run_id, VerdictFilter(flagged=True)).rows
    ]
    assert flag is not None
    assert flag.comment is None


def test_flags_go_with_their_run(store: Store, begun: Begun) -> None:
    store.flags.set(begun.run_id, 1)
    store.deletion.delete("run")
    with store.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM pair_flags").scalar() == 0


def test_what_cannot_be_a_flag_is_refused(store: Store, begun: Begun) -> None:
    with pytest.raises(InputError, match="the run has no pair 6"):
        store.flags.set(begun.run_id, 6)
    with pytest.raises(InputError, match="4,001 characters; give at most 4,000"):
        store.flags.set(begun.run_id, 1, comment="x" * 4001)
    with pytest.raises(InputError, match="comment"):
        store.flags.set(begun.run_id, 1, comment="\ud800")
    with pytest.raises(InputError, match="has no comment"):
        flag_pair(store, "run", "q1", comment="x", remove=True)
    with pytest.raises(InputError, match="q9"):
        flag_pair(store, "run", "q9")
