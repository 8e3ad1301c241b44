"""`evenhand report --html`, from the command to the file."""

from __future__ import annotations

import pytest

from command_line import Command
from evenhand.store import Store
from one_files import Read, finished_run, rows_of

HERE = ("--store", "evenhand.db")


@pytest.mark.slow
def test_report_is_written_beside_what_is_said(command: Command, store: Store) -> None:
    finished_run(store, "first", rows_of("BBBBAAT"))
    ran = command("report", "first", *HERE, "--html", "out.html")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("run first: finished\n")
    assert ran.out.endswith("\nreport saved to out.html, with all 7 judged pairs\n")
    read = Read.of(command.directory / "out.html")
    assert len(read.pairs) == 7
    assert ("html", {"lang": "en"}) in read.elements


def test_number_of_pairs_language_and_side_are_what_is_asked_for(
    command: Command, store: Store
) -> None:
    finished_run(store, "first", rows_of("BBBBAAT"))
    options = ("--pairs", "3", "--locale", "zh", "--side", "A", "--json")
    ran = command("report", "first", *HERE, "--html", "out.html", *options)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("{")  # JSON alone
    read = Read.of(command.directory / "out.html")
    assert len(read.pairs) == 3
    assert ("html", {"lang": "zh-CN"}) in read.elements
    assert "胜率 · old" in read.shown


@pytest.mark.parametrize("option", [("--pairs", "5"), ("--locale", "zh")])
def test_options_of_the_file_are_refused_without_it(
    option: tuple[str, str], command: Command, store: Store
) -> None:
    finished_run(store, "first", rows_of("BA"))
    ran = command("report", "first", *HERE, *option)
    assert ran.code == 2
    assert ran.err == f"error  {option[0]} requires --html; leave it out\n"


def test_file_that_cannot_be_written_is_said_plainly(command: Command, store: Store) -> None:
    finished_run(store, "first", rows_of("BA"))
    ran = command("report", "first", *HERE, "--html", "no/such/folder/out.html")
    assert ran.code == 2
    assert "cannot write no/such/folder/out.html: no such file or directory" in ran.err
