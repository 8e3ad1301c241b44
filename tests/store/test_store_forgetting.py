"""Texts are forgotten for good, and no figure changes by it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sqlite3
from pathlib import Path

import pytest

from evenhand.analyses.gate import gate_run
from evenhand.analyses.rank import rank_runs
from evenhand.errors import InputError
from evenhand.report.conclusions import conclude
from evenhand.report.export import export_run
from evenhand.report.records import report_pair
from evenhand.report.run import report_run
from evenhand.store import Store
from evenhand.store.jobs import NewJob
from evenhand.trust.audit import audit_run
from stored_runs import ROWS, Row, make_run, opened, says

SECRET = "xylophone-of-the-patient"


def secret_rows() -> list[Row]:
    texts = {"prompt": f"p {SECRET}", "response_a": f"a {SECRET}", "response_b": f"b {SECRET}"}
    own = Row("own", says("A", reasoning=f"It says {SECRET}."), pair=texts)
    return [own, *ROWS]


def test_forgotten_texts_are_nowhere_in_the_file_and_figures_are_the_same(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        run_id = make_run(store, "first", secret_rows())
        assert store.words.add(run_id) is not None
        store.jobs.add(run_id, NewJob(("judge",), {}), wanted="run")
        quoting = {"kind": "judge_unreadable", "message": f"“{SECRET}”", "retryable": False}
        store.jobs.let_go(run_id, error=quoting)
        before = conclude(store, "first").model_dump_json()
        counted = report_run(store, "first").judges[0]
        gone = store.deletion.forget_texts("first")
        assert (gone.pairs, gone.shared_pairs) == (len(ROWS) + 1, 0)
        assert conclude(store, "first").model_dump_json() == before
        after = report_run(store, "first").judges[0]
        assert after.model_dump(exclude={"failures", "failed"}) == counted.model_dump(
            exclude={"failures", "failed"}
        )
        shown = report_pair(store, "first", "own")
        assert shown.pair.prompt == "(forgotten)"
        assert all("identical" not in judged.model_dump_json() for judged in shown.judges)
        assert SECRET not in shown.model_dump_json()
        written = io.BytesIO()
        export_run(store, "first", written, format="jsonl")
        assert SECRET.encode() not in written.getvalue()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("evenhand.db*"))
    assert SECRET.encode() not in stored
    with contextlib.closing(sqlite3.connect(tmp_path / "evenhand.db")) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_gate_rank_and_audit_are_the_same_without_the_texts(store: Store) -> None:
    make_run(store, "first", secret_rows())

    def figures() -> list[str]:
        found = (gate_run(store, "first"), rank_runs(store, ["first"]), audit_run(store, "first"))
        return [each.model_dump_json() for each in found]

    before = figures()
    store.deletion.forget_texts("first")
    assert figures() == before


def test_what_is_forgotten_twice_is_nothing_the_second_time(store: Store) -> None:
    make_run(store, "first", secret_rows())
    assert store.deletion.forget_texts("first").pairs == len(ROWS) + 1
    assert store.deletion.forget_texts("first") == (0, 0)


def test_texts_that_another_run_has_too_stay(store: Store) -> None:
    rows = secret_rows()
    make_run(store, "first", rows)
    make_run(store, "second", [dataclasses.replace(rows[0])], judges=("other",))
    gone = store.deletion.forget_texts("first")
    assert (gone.pairs, gone.shared_pairs) == (len(ROWS), 1)
    assert SECRET in report_pair(store, "second", "own").pair.prompt
    # Taken in anew, a pair is another than the one that was forgotten.
    make_run(store, "third", ROWS)
    assert report_pair(store, "third", "2").pair.prompt != "(forgotten)"


def test_a_run_without_its_texts_is_judged_no_more(store: Store) -> None:
    run_id = make_run(store, "first", ROWS)
    (judge,) = store.runs.judges(run_id)
    store.deletion.forget_texts("first")
    with pytest.raises(
        InputError, match="the texts of run 'first' were deleted, so it can no longer be judged"
    ):
        store.work.pending(run_id, judge.id, after=0, limit=1)
