"""A run on a bad day: a full disk, a locked store, a newer one, a huge response."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from command_line import Command, environment, run_command
from evenhand.store.schema import VERSION_TABLE
from run_data import CRITERIA, adds_up, right_place, sums, write_lines
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply


def judged_by(url: str, *more: str) -> tuple[str, ...]:
    return ("--judge", "openai:loopback", "--base-url", url, "--store", "store.db", *more)


def long_winded(request: SeenRequest) -> Reply:
    """A judge whose answers fill a disk."""
    winner = right_place(request.prompt)
    return chat_reply(answer_json(winner, reasoning="because " * 4000))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash's ulimit")
def test_a_full_disk_is_told_and_loses_nothing_that_was_stored(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(long_winded)
    write_lines(command.directory / "pairs.jsonl", sums(150))
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url, "--concurrency", "4"))
    # Blocks of 1024 bytes: room for some of the answers, of 32 KB each, and not for all.
    limited = f'ulimit -f 4000; exec "$0" -m evenhand {" ".join(arguments)}'
    ran = subprocess.run(
        ["bash", "-c", limited, sys.executable],
        cwd=command.directory,
        env=environment(command.directory),
        capture_output=True,
        timeout=60,
        check=False,
    )
    err = ran.stderr.decode()
    assert ran.returncode == 2, err
    told = [line for line in err.splitlines() if line.startswith("error  ")]
    assert len(told) == 1
    assert "full" in told[0] or "written" in told[0]
    assert "Traceback" not in err
    with sqlite3.connect(command.directory / "store.db") as store:
        assert store.execute("pragma integrity_check").fetchone() == ("ok",)
        kept = store.execute("select count(*) from passes").fetchone()[0]
    assert 0 < kept < 300
    rest = command(*arguments, "--json")
    assert (rest.code, rest.json["pending"], rest.json["invalid"]) == (0, 0, 0)
    assert rest.json["calls"] == 300 - kept  # what was stored was not asked again


def test_a_locked_store_is_told(command: Command, start_server: StartServer) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "pairs.jsonl", sums(4))
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    command(*arguments, "--max-calls", "2")
    locking = sqlite3.connect(command.directory / "store.db", check_same_thread=False)
    locking.execute("begin immediate")
    # Long enough to be waited for, and then let go: the run goes on by itself.
    release = threading.Timer(1.0, locking.rollback)
    release.start()
    ran = command(*arguments, "--json")
    release.join()
    locking.close()
    assert (ran.code, ran.json["pending"]) == (0, 0)


def test_a_store_of_a_newer_version_is_not_touched(command: Command) -> None:
    write_lines(command.directory / "pairs.jsonl", sums(2))
    arguments = ("run", "pairs.jsonl", "-j", "baseline:longer", "--store", "store.db")
    command(*arguments)
    with sqlite3.connect(command.directory / "store.db") as store:
        store.execute(f"update {VERSION_TABLE} set version_num = 'later'")  # noqa: S608
    before = (command.directory / "store.db").read_bytes()
    ran = command(*arguments)
    assert ran.code == 2
    assert "newer evenhand" in ran.err
    assert (command.directory / "store.db").read_bytes() == before


def test_two_processes_do_not_judge_one_run_at_once(
    command: Command, start_server: StartServer
) -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def waits(request: SeenRequest) -> Reply:
        arrived.set()
        go_on.wait(20)
        return adds_up(request)

    server = start_server(waits)
    write_lines(command.directory / "pairs.jsonl", sums(2))
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    first: list[int] = []
    running = threading.Thread(
        target=lambda: first.append(run_command(*arguments, directory=command.directory).code)
    )
    running.start()
    assert arrived.wait(20)
    second = run_command(*arguments, directory=command.directory)
    go_on.set()
    running.join()
    assert (first, second.code) == ([0], 2)
    assert "in use" in second.err
    assert len(server.requests) == 4


@pytest.mark.slow
def test_a_response_of_fifty_megabytes_is_judged(
    command: Command, start_server: StartServer
) -> None:
    sizes: list[int] = []

    def measures(request: SeenRequest) -> Reply:
        sizes.append(len(request.raw))
        return chat_reply(answer_json("A", criteria=[("accuracy", "A")]))

    server = start_server(measures)
    rows = sums(1)
    rows[0]["response_b"] = "many words " * (50_000_000 // 11)
    write_lines(command.directory / "pairs.jsonl", rows)
    ran = command("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url, "--json"))
    assert (ran.code, ran.json["inconsistent"]) == (0, 1)
    assert min(sizes) > 49_000_000


def test_ids_that_are_there_twice_with_other_content_are_told(command: Command) -> None:
    rows: list[dict[str, str]] = sums(3)
    rows[2]["id"] = rows[0]["id"]
    write_lines(command.directory / "pairs.jsonl", rows)
    ran = command("run", "pairs.jsonl", "-j", "baseline:longer", "--store", "store.db")
    assert ran.code == 2
    assert "'sum-1'" in ran.err
    assert "row 1" in ran.err
    assert "row 3" in ran.err


def test_an_empty_file_is_told(command: Command) -> None:
    Path("empty.jsonl").write_bytes(b"")
    ran = command("run", "empty.jsonl", "-j", "baseline:longer", "--store", "store.db")
    assert ran.code == 2
    assert "empty.jsonl has no rows" in ran.err
