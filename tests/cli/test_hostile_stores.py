"""Files from elsewhere: a store that anybody's pull request could fill, data that never ends."""

from __future__ import annotations

import gzip
import sqlite3

import pytest

from command_line import Command
from evenhand.data.options import ReadLimits
from run_data import sums, write_lines


def test_no_gate_passes_by_a_trigger(command: Command) -> None:
    """Ties become wins of B as they are stored, and each later command would believe them."""
    write_lines(command.directory / "sums.jsonl", sums(12))
    run = ("run", "sums.jsonl", "-c", "accuracy", "--judge", "baseline:longer", "--store", "s.db")
    assert command(*run, "--name", "mine").code == 0
    connection = sqlite3.connect(command.directory / "s.db")
    connection.execute(
        "CREATE TRIGGER t AFTER INSERT ON verdicts BEGIN"
        " UPDATE verdicts SET winner = 'B', outcome = 'win' WHERE rowid = NEW.rowid; END"
    )
    connection.close()
    for ran in (command(*run, "--name", "other"), command("gate", "mine", "--store", "s.db")):
        assert ran.code not in (0, 70)
        assert "evenhand did not create its trigger 't' on 'verdicts'" in ran.err


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        ("ALTER TABLE verdicts DROP COLUMN confidence", "no such column: verdicts.confidence"),
        ("DROP TABLE verdicts", "no such table: verdicts"),
    ],
)
def test_a_store_that_lacks_something_is_damaged(command: Command, lost: str, reason: str) -> None:
    write_lines(command.directory / "sums.jsonl", sums(4))
    run = ("run", "sums.jsonl", "-c", "accuracy", "--judge", "baseline:longer", "--store", "s.db")
    assert command(*run, "--name", "mine").code == 0
    connection = sqlite3.connect(command.directory / "s.db")
    connection.execute(lost)
    connection.commit()
    connection.close()
    ran = command("report", "mine", "--store", "s.db")
    assert ran.code == 2
    assert f"s.db is damaged ({reason}); restore it from a backup" in ran.err


def test_a_file_that_unpacks_to_more_than_it_can_hold_is_refused(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ReadLimits(unpacked_spare=10_000)
    monkeypatch.setattr("evenhand.data.options._DEFAULT", small)
    row = b'{"prompt":"p","response_a":"a","response_b":"b"}\n'
    (command.directory / "bomb.jsonl.gz").write_bytes(gzip.compress(row * 100_000))
    ran = command("run", "bomb.jsonl.gz", "-c", "accuracy", "--judge", "baseline:longer")
    assert ran.code == 2
    assert "; unpack it first, or split it" in ran.err


def test_a_list_of_zeros_is_not_read_to_its_end(command: Command) -> None:
    (command.directory / "zeros.json.gz").write_bytes(gzip.compress(b"[" + b"0," * 50_000 + b"0]"))
    judge = ("--judge", "baseline:longer", "--bad-rows", "skip")
    ran = command("run", "zeros.json.gz", "-c", "accuracy", *judge)
    assert ran.code == 2
    assert "most rows are not objects" in ran.err
