"""Every command that the skill teaches is run: an option that is not there fails here."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from command_line import environment
from door_server import knows_56
from evenhand.cli.main import app
from evenhand.skill import skill_texts
from forked import write_command
from run_data import write_lines
from servers import JudgeServer

TEXTS = {name: text.decode() for name, text in skill_texts().items()}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A server, which never ends by itself; it is run in test_skill_service.py.
LASTING = ("serve", "mcp")


def blocks(language: str) -> list[str]:
    return [
        text for page in TEXTS.values() for kind, text in BLOCK.findall(page) if kind == language
    ]


LINES = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
COMMANDS = [line for line in LINES if shlex.split(line)[1] not in LASTING]


def outputs(name: str, right: range) -> list[dict[str, Any]]:
    return [
        {
            "id": str(n),
            "prompt": f"What is 7 times 8, for the {n}th time?",
            "response": f"It is {56 if n in right else 54}, says {name}.",
            "model": name,
        }
        for n in range(1, 61)
    ]


def prepare(directory: Path) -> None:
    """The files that the skill's commands name."""
    (directory / "task.txt").write_text("What is 7 times 8?", "utf-8")
    (directory / "old.txt").write_text("54", "utf-8")
    (directory / "new.txt").write_text("56", "utf-8")
    pair = {"prompt": "p?", "responseA": "54", "responseB": "56", "criteria": ["accuracy"]}
    (directory / "pair.json").write_text(json.dumps(pair), "utf-8")
    write_lines(directory / "old.jsonl", outputs("old", range(49, 61)))
    write_lines(directory / "new.jsonl", outputs("new", range(1, 49)))
    write_lines(directory / "tiny.jsonl", outputs("tiny", range(0)))
    labelled = (
        {
            "id": str(n),
            "prompt": f"What is 7 times 8, {n}?",
            "response_a": "54",
            "response_b": "It is 56, and more of it." if n % 2 else "56",
            "label": "A" if n % 4 == 0 else "B",  # in these the judge is wrong
        }
        for n in range(60)
    )
    write_lines(directory / "labelled.jsonl", labelled)
    odd = "task,left,right\nWhat is 7 times 8?,54,56\nno pair\n"
    (directory / "odd.csv").write_text(odd, "utf-8")


def surroundings(directory: Path, server: JudgeServer) -> dict[str, str]:
    """A user's shell: the command in PATH, and a judge that is set up."""
    write_command(directory)
    path = os.pathsep.join((str(directory), os.environ["PATH"]))
    more = {
        "PATH": path,
        "XDG_DATA_HOME": str(directory / "data"),
        "EVENHAND_JUDGE": "openai:gpt-5-mini",
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "sk-loopback",
    }
    return environment(directory, **more)


Ran = dict[str, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Each command, one after the other, in one directory: later ones read what earlier did. RUN
    is the run that was gated."""
    directory = tmp_path_factory.mktemp("skill")
    prepare(directory)
    done: Ran = {}
    with JudgeServer(knows_56) as server:
        for command in COMMANDS:
            gated = next((each.stdout for line, each in done.items() if " --gate " in line), None)
            run = json.loads(gated)["run"] if gated else "RUN"
            done[command] = subprocess.run(
                ["bash", "-c", re.sub(r"\bRUN\b", run, command)],
                cwd=directory,
                env=surroundings(directory, server),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        yield done


@pytest.mark.parametrize("command", COMMANDS)
def test_command_of_the_skill_works(ran: Ran, command: str) -> None:
    done = ran[command]
    assert done.returncode == 0, done.stderr or done.stdout
    assert done.stdout.strip()
    if "--json" in shlex.split(command):
        json.loads(done.stdout)


def test_commands_of_the_skill_do_what_it_says_of_them(ran: Ran) -> None:
    """The judge knows that 56 is right: new has it in 48 of 60, old in the other 12."""
    told = {command.split(" -", 1)[0]: done.stdout for command, done in ran.items()}
    compared = [json.loads(d.stdout) for c, d in ran.items() if c.startswith("evenhand compare")]
    assert [found["winner"] for found in compared] == ["B", "B", "B"]
    assert compared[-1]["metadata"]["confidenceSource"] == "calibration"
    (release,) = [json.loads(d.stdout) for c, d in ran.items() if " --gate " in c]
    assert (release["winsB"], release["winsA"]) == (48, 12)
    assert release["gate"]["ruling"] == "pass"
    names = [row["run"] for row in json.loads(told["evenhand runs list"])["runs"]]
    assert {release["run"], "league"} == set(names)


@pytest.mark.parametrize(
    ("heading", "command"),
    [
        ("A comparison", "evenhand compare"),
        ("A run", "evenhand run "),
        ("A report", "evenhand report"),
    ],
)
def test_field_that_the_skill_names_is_in_what_the_command_prints(
    ran: Ran, heading: str, command: str
) -> None:
    section = TEXTS["references/results.md"].partition(f"## {heading}\n")[2].partition("\n## ")[0]
    told, _, failure = section.partition("A failure has")
    printed = [done.stdout for line, done in ran.items() if line.startswith(command)]
    fields = set(re.findall(r"`(\w+)`", re.sub(r"\((?:`\w+`(?:, )?)+\)", "", told)))
    missing = {name for name in fields if not any(f'"{name}":' in text for text in printed)}
    # Said only where there is something to say.
    assert missing <= {"judgeCaveat", "abstained"}
    assert not failure or {"kind", "message", "retryable"} <= set(re.findall(r"`(\w+)`", failure))


def test_skill_teaches_every_task_by_a_command_that_is_run() -> None:
    taught = {shlex.split(line)[1] for line in LINES}
    assert taught >= {
        *("compare", "run", "report", "rank", "audit", "calibrate", "plan"),
        *("doctor", "probe", "show", "runs", "schema", "serve"),
    }


INLINE = sorted(
    {code for page in TEXTS.values() for code in re.findall(r"`(evenhand [^`]+)`", page)}
)
TREE: Any = typer.main.get_command(app)


@pytest.mark.parametrize("code", INLINE)
def test_command_that_the_prose_names_is_there(code: str) -> None:
    _, name, *rest = code.split()
    known = {option for parameter in TREE.commands[name].params for option in parameter.opts}
    assert {word for word in rest if word.startswith("-")} <= known


def test_option_that_the_prose_names_is_one_of_some_command() -> None:
    known = {
        option
        for command in TREE.commands.values()
        for parameter in getattr(command, "params", ())
        for option in parameter.opts
    }
    for page in TEXTS.values():
        assert set(re.findall(r"`(--[a-z-]+)[^`]*`", page)) <= known


def test_no_command_of_the_skill_decides_for_the_user_to_spend() -> None:
    for line in LINES:
        words = shlex.split(line)
        assert not {"--yes", "-y", "--force"} & set(words)
        if words[1] in ("run", "audit"):
            assert {"--max-calls", "--max-cost"} & set(words)
