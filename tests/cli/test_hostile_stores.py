"""A store from elsewhere, such as a cache that anybody's pull request could fill."""

from __future__ import annotations

import sqlite3

from command_line import Command
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
        assert "evenhand did not make its trigger 't' on 'verdicts'" in ran.err
