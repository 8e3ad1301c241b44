"""A row that evenhand never wrote is named, and hides no other run."""

from __future__ import annotations

import contextlib
import io
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.errors import InputError, StoreError, exit_code
from evenhand.report.conclusions import conclude
from evenhand.report.export import export_run
from evenhand.report.records import report_pair
from evenhand.report.run import look_over, report_run
from evenhand.store import Store
from stored_runs import ROWS, SKIPPED, make_run, opened

NOT_UTF8 = b"\xff\xfe\x80"
READS: tuple[Callable[[Store], object], ...] = (
    lambda store: report_run(store, "bad"),
    lambda store: report_pair(store, "bad", "1"),
    lambda store: export_run(store, "bad", io.BytesIO(), format="jsonl"),
    lambda store: conclude(store, "bad"),
)
DAMAGE = [
    ("runs", "plan", "{"),
    ("runs", "plan", "[]"),
    ("runs", "state", "nonsense"),
    ("runs", "created_at", "yesterday"),
    ("runs", "created_at", 1e300),
    ("runs", "sources", NOT_UTF8),
    ("judges", "settings", "nonsense"),
    ("judges", "locale", "nonsense"),
    ("judges", "id", -1),
    ("run_judges", "judge_id", -1),
    ("pairs", "criteria", "[3]"),
    ("pairs", "prompt", NOT_UTF8),
    ("items", "tags", "{"),
    ("items", "row", "nonsense"),
    ("items", "label", "nonsense"),
    ("passes", "body", "{}"),
    ("passes", "body", '{"vote":3}'),
    ("passes", "created_at", "nonsense"),
    ("verdicts", "outcome", "nonsense"),
    ("verdicts", "winner", "nonsense"),
    ("verdicts", "body", '{"facts":3}'),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("damaged")
    with opened(folder) as store:
        make_run(store, "bad", ROWS, skipped=SKIPPED)
        make_run(store, "good", ROWS[:2], judges=("other",))
    with contextlib.closing(sqlite3.connect(folder / "evenhand.db")) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "evenhand.db").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column", "value"), DAMAGE)
def test_a_damaged_row_is_an_error_of_the_store_and_other_runs_are_listed(
    tmp_path: Path, template: bytes, table: str, column: str, value: object
) -> None:
    (tmp_path / "evenhand.db").write_bytes(template)
    with contextlib.closing(sqlite3.connect(tmp_path / "evenhand.db")) as file:
        given = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
        first = f"rowid = (SELECT min(rowid) FROM {table})"  # noqa: S608 - of the table above
        file.execute(f"UPDATE {table} SET {column} = {given} WHERE {first}", [value])  # noqa: S608
        file.commit()
    with opened(tmp_path) as store:
        lines, damaged = look_over(store)
        assert "good" in [line.run for line in lines]
        assert len(lines) + len(damaged) == 2
        said = []
        for read in READS:
            try:
                read(store)
            except StoreError as error:
                said.append(error.message)
        assert said or damaged
        assert exit_code(StoreError("")) == 2
        for message in (*said, *(error.message for error in damaged)):
            assert "restore the store from a backup" in message
            assert "\n" not in message
        report_run(store, "good")


@pytest.mark.parametrize(
    "name",
    [
        "a\nb",
        "a\x1b[31mb",
        "a\x00",
        "\x7f",
        "a\u202eb",
        "a\u2066b",
        "\ufeffa",
        "a\u2028b",
        "a\u200bb",
    ],
)
def test_a_run_gets_no_name_with_characters_that_are_not_seen(store: Store, name: str) -> None:
    make_run(store, "first", ROWS[:1])
    with pytest.raises(InputError, match=r"contains U\+[0-9A-F]{4}, an invisible character"):
        make_run(store, name, ROWS[:1])
    with pytest.raises(InputError, match="an invisible character"):
        store.runs.rename("first", name)
    store.runs.rename("first", "第一 run 👩\u200d🔬")
    assert store.runs.find("第一 run 👩\u200d🔬") is not None
