"""What is written is its owner's, and no text in it is a build server's command."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Iterator

import pytest

from command_line import Command
from evenhand.present.terminal import without_commands
from run_data import sums, write_lines

COMMANDS = ("::error::planted", "##[error]planted", "##vso[task.setvariable variable=x]planted")


@pytest.fixture
def _open_umask() -> Iterator[None]:
    import os

    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def judged(command: Command) -> Command:
    rows = [row | {"model_a": COMMANDS[0], "model_b": COMMANDS[1]} for row in sums(24)]
    rows = [row | {"tags": [COMMANDS[number % 3]]} for number, row in enumerate(rows)]
    write_lines(command.directory / "sums.jsonl", rows)
    run = ("run", "sums.jsonl", "-c", "accuracy", "--judge", "baseline:longer", "--store", "s.db")
    assert command(*run, "--name", COMMANDS[0]).code == 0
    return command


def commands_in(text: str) -> list[str]:
    """By the rules of GitHub's runner and Azure's agent."""
    found = [line for line in text.splitlines() if line.lstrip().startswith("::")]
    return found + re.findall(r"##(?:vso)?\[.*", text)


def test_no_line_of_an_output_is_a_command_of_a_build_server(judged: Command) -> None:
    where = ("--store", "s.db")
    for words in (
        ("report", COMMANDS[0]),
        ("report", COMMANDS[0], "--json"),
        ("gate", COMMANDS[0]),
        ("runs", "list"),
        ("runs", "show", COMMANDS[0]),
        ("show", COMMANDS[0], "1"),
        ("report", "::error::missing"),
        ("report", "##[error]missing", "--json"),
    ):
        ran = judged(*words, *where)
        assert commands_in(ran.out) == [], words
        assert commands_in(ran.err) == [], words
        if "--json" in words and ran.code == 0:
            assert COMMANDS[1] in json.dumps(json.loads(ran.out))


def test_a_command_is_shown_with_a_space_in_it() -> None:
    assert without_commands("a ::b\n \t::error::x") == "a ::b\n \t: :error::x"
    assert without_commands("x ##[a] ##VSO[b] #[c]") == "x # #[a] # #VSO[b] #[c]"
    assert without_commands("a::b\n:c") == "a::b\n:c"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
@pytest.mark.usefixtures("_open_umask")
def test_what_is_written_is_for_its_owner_only(judged: Command) -> None:
    run = (COMMANDS[0], "--store", "s.db")
    assert judged("runs", "export", *run, "-o", "x.csv").code == 0
    assert judged("report", *run, "--html", "x.html", "--plot", "x.svg").code == 0
    judged("gate", *run, "--junit", "x.xml")
    written = {path.name: path for path in judged.directory.glob("x.*")}
    assert {"x.csv", "x.html", "x.svg", "x.xml"} <= set(written)
    assert {stat.S_IMODE(path.stat().st_mode) for path in written.values()} == {0o600}
    written["x.csv"].chmod(0o644)  # whoever has opened it to others keeps it so
    assert judged("runs", "export", *run, "-o", "x.csv", "--force").code == 0
    assert stat.S_IMODE(written["x.csv"].stat().st_mode) == 0o644
