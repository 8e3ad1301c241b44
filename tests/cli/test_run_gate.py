"""`run --gate` and `ab --gate`: judge, conclude and gate in one command, never on another run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from command_line import Command, judged_by
from evenhand.cli.analyses import GateChoices
from run_data import CRITERIA, adds_up, sums, write_lines
from servers import Reply, SeenRequest, StartServer, chat_reply, error_reply

HERE = ("--store", "evenhand.db")
FILES = ("--a", "old.jsonl", "--b", "new.jsonl")


def write_sides(old: str, new: str, pairs: int = 18) -> None:
    """Sums of which two thirds are right in `a`, and one third in `b`."""
    for side, name in ((old, "old"), (new, "new")):
        rows = [
            {"id": row["id"], "prompt": row["prompt"], "response": row[f"response_{side}"]}
            for row in sums(pairs)
        ]
        write_lines(Path(f"{name}.jsonl"), rows)


def of_junit(path: str) -> Any:
    return ET.parse(path).getroot().attrib  # noqa: S314 - our own


def test_second_build_with_changed_data_is_gated_on_its_own_run(
    command: Command, start_server: StartServer
) -> None:
    judge = judged_by(start_server(adds_up))
    build = ("run", *FILES, *CRITERIA, *judge, *HERE, "--gate", "--junit", "gate.xml")
    write_sides(old="b", new="a", pairs=60)
    first = command(*build)
    # 40 of the 60 pairs are won: Wilson's interval at 95% is 0.54 to 0.77.
    assert first.code == 0, first.err
    assert "pass  new vs old: win rate 0.67 (0.54 to 0.77, 95%) is above 0.5; " in first.out
    assert of_junit("gate.xml")["failures"] == "0"
    write_sides(old="a", new="b", pairs=60)
    second = command(*build, "--json")
    assert second.code == 1, second.err
    assert second.json["gate"]["ruling"] == "fail"
    assert second.json["gate"]["run"] == second.json["run"] != first.out.split()[1]
    assert second.json["gate"]["checks"][0]["sentence"] in second.json["conclusions"]
    assert of_junit("gate.xml")["failures"] == "1"
    again = command(*build)
    assert (again.code, "fail  new vs old: " in again.out) == (1, True)


def test_fixed_name_refuses_changed_data_on_stderr_and_leaves_no_file_that_passes(
    command: Command, start_server: StartServer
) -> None:
    judge = judged_by(start_server(adds_up))
    files = ("--junit", "gate.xml", "--html", "report.html")
    build = ("run", *FILES, *CRITERIA, *judge, *HERE, "--name", "release", "--gate", *files)
    write_sides(old="b", new="a", pairs=60)
    assert command(*build, "--json").code == 0
    assert "<!doctype html>" in Path("report.html").read_text("utf-8")
    write_sides(old="a", new="b", pairs=60)
    refused = command(*build, "--json")
    assert refused.code == 2
    assert refused.err == f"error  {refused.failure['message']}\n"
    assert refused.err.startswith(
        "error  run 'release' already exists with other data, or other criteria; leave out "
        "--name or choose another"
    )
    assert not Path("gate.xml").exists()
    assert not Path("report.html").exists()


def test_run_that_a_cap_stops_does_not_pass(command: Command, start_server: StartServer) -> None:
    """The judge prefers B in each of the pairs that it sees, and the gate would be sure of it."""
    judge = judged_by(start_server(adds_up))
    build = ("run", *FILES, *CRITERIA, *judge, *HERE, "--gate", "--junit", "gate.xml")
    write_sides(old="b", new="a")
    stopped = command(*build, "--max-calls", "30", "--min-win-rate", "0", "--json")
    assert stopped.code == 5
    assert stopped.err.splitlines()[-1].startswith(
        "stopped: reached --max-calls; 3 judgments are left; "
    )
    ruled = stopped.json["gate"]
    assert (ruled["ruling"], ruled["checks"], ruled["stoppedBy"]) == ("undecided", [], "max-calls")
    assert ruled["reason"] == (
        f"run {ruled['run']} has not finished, so the gate was not checked; run the same "
        "command to continue"
    )
    assert of_junit("gate.xml")["errors"] == "1"
    whole = command(*build, "--min-win-rate", "0", "--assume-accuracy", "1")
    assert (whole.code, "pass  new vs old: " in whole.out) == (0, True)


def test_run_whose_judge_fails_does_not_pass(command: Command, start_server: StartServer) -> None:
    judge = judged_by(start_server(lambda request: error_reply(401, "wrong key")))
    write_sides(old="b", new="a")
    build = ("run", *FILES, *CRITERIA, *judge, *HERE, "--gate", "--min-win-rate", "0")
    failed = command(*build, "--junit", "gate.xml", "--html", "report.html", "--json")
    assert failed.code == 3
    assert failed.json["gate"]["ruling"] == "undecided"
    assert failed.json["error"]["message"] in failed.err
    assert of_junit("gate.xml")["errors"] == "1"
    shown = command(*build)
    assert (shown.code, "undecided  run " in shown.out) == (3, True)


def test_config_file_and_alpha_hold_for_the_gate(
    command: Command, start_server: StartServer
) -> None:
    judge = judged_by(start_server(adds_up))
    write_sides(old="b", new="a", pairs=60)
    Path("evenhand.toml").write_text("[gate]\nmin_win_rate = 0.25\nalpha = 0.1\n", "utf-8")
    build = ("run", *FILES, *CRITERIA, *judge, *HERE, "--gate", "--json")
    ruled = command(*build).json["gate"]
    assert (ruled["minWinRate"], ruled["alpha"]) == (0.25, 0.1)
    ruled = command(*build, "--alpha", "0.2", "--side", "A", "--ties", "wins").json["gate"]
    assert (ruled["alpha"], ruled["side"], ruled["ties"]) == (0.2, "A", "wins")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--min-win-rate", "0.4"), "--min-win-rate requires --gate; give both, or neither"),
        (("--max-invalid", "0.4"), "--max-invalid requires --gate; give both, or neither"),
        (("--junit", "gate.xml"), "--junit requires --gate; give both, or neither"),
        (("--alpha", "0.1"), "--alpha requires --until-decided or --gate; give both, or neither"),
        (
            ("--gate", "--corrected", "--ties", "wins"),
            "a corrected win rate counts ties as half, not as wins",
        ),
        (("--gate", "--min-win-rate", "1.5"), "less than or equal to 1"),
        (("--gate", "--escalate", "openai:m"), "--gate checks one run, but --escalate makes "),
        (("--gate", "--junit", "no/folder/gate.xml"), "no such file or directory"),
    ],
)
def test_what_does_not_go_with_a_gate_is_refused_before_anything_is_asked(
    command: Command, start_server: StartServer, options: tuple[str, ...], message: str
) -> None:
    server = start_server(adds_up)
    write_sides(old="b", new="a")
    ran = command("run", *FILES, *CRITERIA, *judged_by(server), *HERE, *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert server.requests == []


def test_dry_run_leaves_the_files_of_an_earlier_gate(
    command: Command, start_server: StartServer
) -> None:
    write_sides(old="b", new="a")
    Path("gate.xml").write_text("kept", "utf-8")
    judge = judged_by(start_server(adds_up))
    build = ("run", *FILES, *CRITERIA, *judge, *HERE, "--gate", "--junit", "gate.xml")
    assert command(*build, "--dry-run").code == 0
    assert Path("gate.xml").read_text("utf-8") == "kept"


def test_every_option_of_a_gate_is_one_of_run_and_of_ab(command: Command) -> None:
    own = command("gate", "--help").out
    listed = {word for word in own.split() if word.startswith("--")} - {"--latest", "--latest."}
    assert {"--min-win-rate", "--corrected", "--html"} <= listed
    for name in ("run", "ab"):
        assert listed <= set(command(name, "--help-all").out.split()), name


def test_gate_leaves_devices_alone(command: Command) -> None:
    """A build may send the file to a device or a link, which is no file of an earlier gate."""
    Path("kept.xml").write_text("kept", "utf-8")
    Path("link.xml").symlink_to("kept.xml")
    for target in ("/dev/null", "link.xml"):
        GateChoices(junit=Path(target)).begin()
    assert Path("/dev/null").exists()
    assert Path("link.xml").read_text("utf-8") == "kept"


def test_two_models_are_asked_judged_and_gated_in_one_command(
    command: Command, start_server: StartServer
) -> None:
    def answers(request: SeenRequest) -> Reply:
        if request.json["model"] == "loopback":
            return adds_up(request)
        number = int(request.prompt.split()[2])
        return chat_reply(f"It is {2 * number + (request.json['model'] == 'old')}, by counting.")

    server = start_server(answers)
    rows = [{"id": row["id"], "prompt": row["prompt"]} for row in sums(12)]
    write_lines(Path("prompts.jsonl"), rows)
    test = ("ab", "prompts.jsonl", "--a", "openai:old", "--b", "openai:new", *CRITERIA)
    build = (*test, *judged_by(server), "--a-base-url", server.url, "--b-base-url", server.url)
    build = (*build, *HERE, "--gate", "--junit", "gate.xml", "--json")
    stopped = command(*build, "--max-calls", "10")
    assert (stopped.code, stopped.json["gate"]["ruling"]) == (5, "undecided")
    assert of_junit("gate.xml")["errors"] == "1"
    passed = command(*build)
    assert passed.code == 0, passed.err
    assert json.loads(passed.out)["gate"]["ruling"] == "pass"
    assert of_junit("gate.xml")["errors"] == "0"
