from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
from importlib import import_module
from typing import Any

import pytest
from sqlalchemy import update

from command_line import KEY, Command, on_a_terminal, run_command, start_command
from evenhand.report.files import unescape
from evenhand.store import Store
from evenhand.store.schema import runs as run_table
from postgres_server import PostgresServer
from stored_runs import ROWS, SKIPPED, Row, make_run, says

HOSTILE = "\x1b[31mred\x9b2J\u202e\x07"


@pytest.fixture
def judged(store: Store) -> Store:
    make_run(store, "first", ROWS, skipped=SKIPPED)
    return store


HERE = ("--store", "evenhand.db")


@pytest.mark.parametrize("arguments", [("runs",), ("runs", "list")])
def test_no_store_yet_is_no_error_and_none_is_made(
    command: Command, arguments: tuple[str, ...]
) -> None:
    ran = command(*arguments, "--store", "nowhere.db")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("no runs yet in ")
    assert ran.out.endswith("/nowhere.db; create one with evenhand run\n")
    as_json = command(*arguments, "--store", "nowhere.db", "--json")
    assert (as_json.code, as_json.json["runs"]) == (0, [])
    assert not (command.directory / "nowhere.db").exists()


def test_empty_store_says_so(command: Command, store: Store) -> None:
    ran = command("runs", *HERE)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("no runs yet in ")
    (command.directory / "blank.db").touch()
    assert command("runs", "--store", "blank.db").out.startswith("no runs yet in ")
    assert (command.directory / "blank.db").stat().st_size == 0


def test_database_without_a_store_has_no_runs_and_is_not_made_one(
    command: Command, postgres: PostgresServer, empty_database: str
) -> None:
    database = empty_database.partition("@/")[2].partition("?")[0]
    tables = "SELECT * FROM pg_tables WHERE schemaname = 'public'"
    for _ in range(2):
        ran = command("runs", "list", "--store", empty_database)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("no runs yet in postgresql://")
        assert postgres.run(tables, database) == []
    postgres.run("CREATE TABLE runs (miles INTEGER)", database)
    ran = command("runs", "list", "--store", empty_database)
    assert (ran.code, ran.out) == (2, "")
    assert "but not evenhand's" in ran.err


def test_database_that_cannot_be_reached_is_no_empty_one(command: Command) -> None:
    ran = command("runs", "--store", "postgresql://127.0.0.1:9/nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot reach" in ran.err


def test_runs_are_listed_in_whole_lines_newest_first(command: Command, judged: Store) -> None:
    long = "pairs-with-a-rather-long-name-" + "x" * 60
    run_id = make_run(judged, long, ROWS[:2])
    judged.runs.update(run_id, state="stopped", stopped_by="max-calls")
    ran = command("runs", *HERE)
    assert (ran.code, ran.err) == (0, "")
    heading, second, first = ran.out.splitlines()
    columns = (
        "run started pairs judged A wins B wins ties inconsistent invalid pending skipped state"
    )
    assert " ".join(heading.split()) == columns
    assert first.split()[0] == "first"
    assert first.split()[3:] == ["8", "7", "2", "1", "1", "1", "2", "1", "2", "judging"]
    assert second.split()[0] == long
    assert second.endswith("stopped (max-calls)")


def test_list_by_name_and_alone_are_the_same(command: Command, judged: Store) -> None:
    assert command("runs", *HERE).out == command("runs", "list", *HERE).out
    whole = command("runs", *HERE, "--json").json
    assert whole == command("runs", "list", *HERE, "--json").json
    assert whole == command("runs", *HERE, "--json", "list").json
    (line,) = whole["runs"]
    assert whole["store"].endswith("/evenhand.db")
    counts = {"pairs": 8, "judged": 7, "winsA": 2, "winsB": 1, "ties": 1, "inconsistent": 1}
    counts |= {"invalid": 2, "pending": 1, "skippedRows": 2}
    assert {name: line[name] for name in counts} == counts
    assert (line["run"], line["state"], line["judges"]) == ("first", "judging", ["scripted"])


def test_store_of_the_environment_is_used(
    command: Command, judged: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_STORE", "evenhand.db")
    assert "first" in command("runs").out


def test_names_from_outside_cannot_act_on_a_terminal(command: Command, store: Store) -> None:
    rows = [Row(HOSTILE, says("A"), model_a=HOSTILE, tags=(HOSTILE,))]
    make_run(store, "r", rows, source=HOSTILE, judges=(HOSTILE,))
    with store.writing() as connection:  # no run gets such a name now; some have it from before
        connection.execute(update(run_table).values(name=f"r{HOSTILE}"))
    for arguments in (("runs",), ("runs", "show", f"r{HOSTILE}"), ("runs", "--json")):
        out = command(*arguments[:2], *HERE, *arguments[2:]).out
        assert "red" in out
        assert not set(out) & set("\x1b\x9b\u202e\x07")


def test_run_is_shown_with_its_plan_outcomes_and_reasons(command: Command, store: Store) -> None:
    plan = {
        "data": {
            "criteria": [{"name": "accuracy", "description": "no errors", "weight": 2.0}],
            "columns": {"prompt": "question"},
            "baseline": "old",
        },
        "judges": ["scripted"],
        "deciding": [{"samples": 2, "reconcile": "agreement"}],
        "fresh": "abcd",
    }
    run_id = make_run(store, "first", ROWS, skipped=SKIPPED, plan=plan)
    store.runs.update(run_id, state="finished", seconds=75)
    ran = command("runs", "show", "first", *HERE)
    assert (ran.code, ran.err) == (0, "")
    said = " ".join(ran.out.split())
    assert " won " not in said  # a win rate is what `report` says
    for part in (
        "run first finished",
        "sources pairs.jsonl",
        "criteria accuracy (no errors), weight 2",
        "columns prompt=question",
        "baseline old",
        "pairs 8, skipped rows 2",
        "asked en-reasoned-1, en, reasoned, 2 samples per order, reconciled by agreement",
        "settings temperature 0",
        "A wins 2, B wins 1, ties 1, inconsistent 1, invalid 2, pending 1",
        "passes 14, unread 2, failed 2, reused 0",
        "tokens unknown, cost unknown: $3.00 without 2 of 14 passes",
        "time 1 min 15 s",
        "q7 (scripted): the server fell over; start it again",
        "pairs.jsonl, row 10: responseA is missing; every pair needs it",
    ):
        assert part in said


def test_run_as_json_has_every_number(command: Command, judged: Store) -> None:
    report = command("runs", "show", "first", *HERE, "--json").json
    assert (report["pairs"], report["skippedRows"], len(report["skipped"])) == (8, 2, 2)
    (judge,) = report["judges"]
    assert (judge["winsA"], judge["invalid"], judge["failedPasses"]) == (2, 2, 2)
    assert (judge["spent"]["costUsd"], judge["spent"]["knownCostUsd"]) == (None, 3.0)
    assert not [name for name in judge if "share" in name]  # win rates are the report's


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "fisrt"),
        ("rename", "fisrt", "x"),
        ("delete", "fisrt", "--yes"),
        ("export", "fisrt"),
    ],
)
def test_unknown_run_names_the_nearest(
    command: Command, judged: Store, arguments: tuple[str, ...]
) -> None:
    ran = command("runs", *arguments, *HERE)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error  no run 'fisrt'; did you mean first?\n"


def test_unknown_run_or_store_is_a_failure_in_json(command: Command, judged: Store) -> None:
    ran = command("runs", "show", "fisrt", *HERE, "--json")
    assert (ran.code, ran.failure["kind"]) == (2, "input")
    ran = command("runs", "show", "first", "--store", "nowhere.db", "--json")
    assert (ran.code, ran.failure["kind"]) == (2, "store")
    assert not (command.directory / "nowhere.db").exists()


def test_run_is_renamed_unless_the_name_is_taken(command: Command, judged: Store) -> None:
    ran = command("runs", "rename", "first", "better", *HERE)
    assert (ran.code, ran.out, ran.err) == (0, "run first is now better\n", "")
    make_run(judged, "other", ())
    taken = command("runs", "rename", "other", "better", *HERE)
    assert taken.code == 2
    assert "already" in taken.err
    assert {run.name for run in judged.runs.all()} == {"better", "other"}


def test_deleting_needs_a_yes_where_nobody_can_be_asked(command: Command, judged: Store) -> None:
    ran = command("runs", "delete", "first", *HERE)
    assert (ran.code, ran.out) == (2, "")
    assert "give --yes" in ran.err
    assert judged.runs.find("first") is not None


def test_deleting_says_what_went_and_leaves_what_other_runs_share(
    command: Command, judged: Store
) -> None:
    make_run(judged, "second", ROWS[:2])
    ran = command("runs", "delete", "first", "--yes", *HERE)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        # 14 passes, of which the two pairs that the other run has need 2 each
        "deleted run first: 8 pairs, 7 verdicts and 10 passes; passes shared with other runs "
        "are kept\n"
    )
    assert judged.runs.find("first") is None
    (line,) = command("runs", *HERE, "--json").json["runs"]
    assert (line["run"], line["winsA"]) == ("second", 2)
    assert command("show", "second", "q1", *HERE, "--json").json["judges"][0]["passes"]


@pytest.mark.parametrize(("answer", "gone"), [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_deleting_asks_on_a_terminal(
    command: Command, judged: Store, answer: bytes, gone: bool
) -> None:
    controller, terminal = pty.openpty()
    process = start_command(
        ("runs", "delete", "first", *HERE), command.directory, stdin=terminal, stderr=terminal
    )
    os.write(controller, answer)
    out, _ = process.communicate(timeout=120)
    said = os.read(controller, 4096)
    os.close(terminal)
    os.close(controller)
    assert process.returncode == 0
    assert b"14 passes; passes shared with other runs are kept" in said
    assert b"continue? [y/N]" in said
    assert out.startswith(b"deleted run first" if gone else b"nothing was deleted")
    assert (judged.runs.find("first") is None) is gone


def test_run_that_is_in_use_is_not_deleted(command: Command, judged: Store) -> None:
    run = judged.runs.find("first")
    assert run is not None
    with judged.hold(run.id):
        ran = command("runs", "delete", "first", "--yes", *HERE)
    assert ran.code == 2
    assert "is in use by another process" in ran.err
    assert judged.runs.find("first") is not None


WRITTEN = "7 rows in out.csv; manifest in out.csv.manifest.json\n"
NOTES = (
    "note  1 verdict is pending and left out\nnote  2 rows were invalid and skipped by the run\n"
)


@pytest.mark.parametrize("arguments", [(), ("-o", "-"), ("--format", "jsonl")])
def test_export_goes_to_standard_output_as_json_lines(
    command: Command, judged: Store, arguments: tuple[str, ...]
) -> None:
    ran = command("runs", "export", "first", *arguments, *HERE)
    assert (ran.code, ran.err) == (0, NOTES)
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [(row["id"], row["outcome"]) for row in rows] == [
        ("q1", "win"),
        ("q2", "win"),
        ("q3", "win"),
        ("q4", "tie"),
        ("q5", "inconsistent"),
        ("q6", "invalid"),
        ("q7", "invalid"),
    ]


def test_export_to_a_file_goes_by_its_ending(command: Command, judged: Store) -> None:
    ran = command("runs", "export", "first", "-o", "out.csv", *HERE)
    assert (ran.code, ran.out, ran.err) == (0, WRITTEN, NOTES)
    text = (command.directory / "out.csv").read_text("utf-8")
    assert [row["id"] for row in csv.DictReader(io.StringIO(text))] == [
        f"q{number}" for number in range(1, 8)
    ]


def test_export_is_not_written_over_without_force(command: Command, judged: Store) -> None:
    (command.directory / "out.csv").write_text("mine")
    ran = command("runs", "export", "first", "-o", "out.csv", *HERE)
    assert (ran.code, ran.out) == (2, "")
    assert "--force" in ran.err
    assert (command.directory / "out.csv").read_text() == "mine"
    assert command("runs", "export", "first", "-o", "out.csv", "--force", *HERE).code == 0
    assert sorted(path.name for path in command.directory.glob("*out*")) == [
        "out.csv",
        "out.csv.manifest.json",
    ]


def test_formula_in_a_response_is_text_in_the_csv(command: Command, store: Store) -> None:
    formula = '=HYPERLINK("http://x","y")'
    make_run(store, "evil", [Row("+1", says("A"), pair={"response_a": formula})])
    out = command("runs", "export", "evil", "--format", "csv", *HERE).out
    (row,) = csv.DictReader(io.StringIO(out, newline=""))
    assert row["responseA"] == f"'{formula}"
    assert row["id"] == "'+1"
    assert unescape(row["responseA"]) == formula


def test_parquet_goes_through_a_pipe(command: Command, judged: Store) -> None:
    process = start_command(
        ("runs", "export", "first", "--format", "parquet", *HERE), command.directory
    )
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err.decode()) == (0, NOTES)
    parquet: Any = import_module("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(out))
    assert table.column("winner").to_pylist() == ["A", "A", "B", "TIE", "TIE", None, None]


def test_narrow_terminal_gets_the_same_counts_in_lines_that_fit(
    command: Command, judged: Store
) -> None:
    code, shown = on_a_terminal(command.directory, "runs", *HERE, kind="xterm", columns=50)
    assert code == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown.decode()).splitlines()  # bold and dim
    assert lines[0].startswith("first  judging  ")
    assert all(len(line) <= 50 for line in lines)
    assert " ".join(" ".join(lines[1:]).split()) == (
        "pairs 8, judged 7, A wins 2, B wins 1, ties 1, "
        "inconsistent 1, invalid 2, pending 1, skipped 2"
    )


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "excel-csv", "llm-comparator"])
def test_export_cannot_act_on_a_terminal(command: Command, store: Store, form: str) -> None:
    make_run(store, "evil", [Row("x", says("A"), pair={"response_a": HOSTILE})])
    code, shown = on_a_terminal(
        command.directory, "runs", "export", "evil", "--format", form, *HERE
    )
    assert (code, b"red" in shown) == (0, True)
    assert not set(shown.decode()) & set("\x1b\x9b\u202e\x07")


def test_parquet_is_not_shown_on_a_terminal(command: Command, judged: Store) -> None:
    code, shown = on_a_terminal(
        command.directory, "runs", "export", "first", "--format", "parquet", *HERE
    )
    assert code == 2
    assert b"a terminal cannot show Parquet; give -o FILE" in shown


def test_key_is_cut_out_of_what_is_printed(
    command: Command, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    make_run(store, "leak", [Row("x", says("A", reasoning=f"The key is {KEY}."))])
    for arguments in (
        ("runs", "export", "leak", *HERE),
        ("runs", "export", "leak", "--format", "csv", *HERE),
        ("show", "leak", "x", *HERE),
        ("show", "leak", "x", "--json", *HERE),
    ):
        ran = command(*arguments)
        assert ran.code == 0
        assert "The key is ***." in ran.out
        assert KEY not in ran.out


def test_full_disk_is_one_line_and_a_broken_pipe_none(command: Command, judged: Store) -> None:
    ran = run_command(
        "runs", "export", "first", "-o", "/dev/full", *HERE, directory=command.directory
    )
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error  cannot write /dev/full: no space left on device")
    with open("/dev/full", "wb") as full:
        process = start_command(
            ("runs", "export", "first", *HERE), command.directory, stdout=full.fileno()
        )
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err.decode().endswith(
        "error  No space left on device; check the disk, the path and its permissions\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    process = start_command(("runs", "export", "first", *HERE), command.directory, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, b"Traceback" in err, b"error" in err) == (0, False, False)
