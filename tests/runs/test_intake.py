"""Rows into items: what is told of rows that come twice."""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from command_line import start_command
from evenhand.contract import read_criteria
from evenhand.data.options import ReadOptions
from evenhand.runs import PairFiles, Stop
from evenhand.runs.sources import note_on_repeats, take_in
from evenhand.store import NewRun, RunRecord, Store, open_store
from run_data import sums, write_lines


def taken_in(store: Store, path: Path, *, stopped_after: int | None = None) -> bool:
    run = stored(store)
    stop = Stop()

    def told(rows: int) -> None:
        if stopped_after is not None and rows >= stopped_after:
            stop.ask("interrupt")

    sources = PairFiles.of([path], ReadOptions(criteria_needed=False))
    try:
        return take_in(store, run.id, sources, bad_rows="skip", by_id=False, stop=stop, report=told)
    finally:
        sources.close()


def stored(store: Store) -> RunRecord:
    run = store.runs.find("run")
    return run if run is not None else store.runs.create(NewRun("run", "print", {}, ()))


def rows_with_repeats() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = sums(700)  # more than one batch
    return [*rows, rows[0], rows[699], {"id": "cut"}]


def test_a_resumed_intake_does_not_count_what_it_had_read_before(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "pairs.jsonl", rows_with_repeats())
    with open_store(tmp_path / "store.db") as store:
        assert taken_in(store, path, stopped_after=500) is False
        assert note_on_repeats(stored(store)) is None
        for _ in range(2):
            assert taken_in(store, path) is True
            assert note_on_repeats(stored(store)) == (
                "2 rows repeat another row with the same id and content; each pair is judged once"
            )
        assert store.items.count(stored(store).id) == 700


def test_one_row_that_repeats_is_told_as_one_and_none_not_at_all(tmp_path: Path) -> None:
    rows = sums(2)
    with open_store(tmp_path / "store.db") as store:
        taken_in(store, write_lines(tmp_path / "once.jsonl", rows))
        assert note_on_repeats(stored(store)) is None
        taken_in(store, write_lines(tmp_path / "twice.jsonl", [*rows, rows[1]]))
        told = note_on_repeats(stored(store))
        assert told is not None
        assert told.startswith("1 row repeats another row")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")
def test_an_intake_that_was_killed_goes_on_after_the_last_place_that_was_noted(
    tmp_path: Path,
) -> None:
    count = 19_000  # a place is noted every 10,000 rows, and the rest takes a while
    path = write_lines(tmp_path / "pairs.jsonl", sums(count))
    address = tmp_path / "store.db"
    asked = ("run", str(path), "-c", "accuracy", "-j", "baseline:longer", "--name", "run")
    with start_command((*asked, "--store", str(address)), tmp_path) as process:
        give_up = time.monotonic() + 120
        while not _place_noted(address):
            assert process.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.005)
        process.kill()
        process.communicate()
    with open_store(address) as store:
        run = stored(store)
        assert run.intake_done is False
        rows: list[int] = []
        sources = PairFiles.of([path], ReadOptions(criteria=read_criteria(["accuracy"])))
        assert take_in(
            store, run.id, sources, bad_rows="stop", by_id=False, stop=Stop(), report=rows.append
        )
        assert rows[0] == 10_500  # the batch after the place
        assert rows[-1] == count
        assert store.items.count(run.id) == count
        assert note_on_repeats(stored(store)) is None


def _place_noted(address: Path) -> bool:
    if not address.exists():
        return False
    with suppress(sqlite3.Error), closing(sqlite3.connect(address)) as database:
        return bool(
            database.execute("SELECT 1 FROM runs WHERE summary LIKE '%takenIn%'").fetchone()
        )
    return False
