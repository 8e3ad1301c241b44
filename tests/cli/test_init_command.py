"""`evenhand init`: what it writes can be used as it is, and nothing of the user's is lost."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from command_line import Command
from evenhand.settings import GateSettings, Settings, load_settings
from scripted import answer_json
from servers import StartServer, chat_reply

FILES = ("evenhand.toml", "pairs.jsonl", "prompts.jsonl")


def test_each_command_prints_the_next_one(command: Command, start_server: StartServer) -> None:
    server = start_server(lambda request: chat_reply(answer_json("TIE")))
    begun = command("init", "--judge", "openai:loopback")
    assert (begun.code, begun.err) == (0, "")
    [following] = re.findall(r"^next  evenhand (.+)$", begun.out, re.MULTILINE)
    ran = command(*following.split(), "--base-url", server.url, "--store", "s.db")
    assert ran.code == 0, ran.err
    # Six pairs in both orders, by the judge and the criteria of the file.
    assert len(server.requests) == 12
    asked = server.requests[0].prompt
    assert "helpfulness" in asked
    assert re.search(r"accuracy.*\bweight\b.*\b2\b", asked)
    assert "next  evenhand report pairs-" in ran.err


def test_the_config_file_holds_every_setting(command: Command) -> None:
    command("init")
    text = (command.directory / "evenhand.toml").read_text("utf-8")
    for each in (*fields(Settings), *fields(GateSettings)):
        if each.name not in ("api_key", "cache_dir", "sources", "base_url", "template", "store"):
            assert re.search(rf"^(# )?\[?{each.name}\b", text, re.MULTILINE), each.name
    assert text.endswith("base_url, template, store.\n")
    settings = load_settings({}, user_file=Path("/dev/null"), directory=command.directory)
    assert [(each.name, each.weight) for each in settings.criteria] == [
        ("accuracy", 2.0),
        ("helpfulness", None),
        ("clarity", None),
    ]
    assert (settings.max_cost, settings.max_calls) == (5.0, 5000)
    assert settings.gate == GateSettings(0.5, 0.05, 0.3, 0.01, 0.01)
    # What is commented out is what holds without it.
    shown = re.findall(r"^# (\w+ = \S+)", text, re.MULTILINE)
    assert len(shown) == 15
    tomllib.loads("\n".join(shown))


def test_what_is_there_is_kept_unless_forced(command: Command) -> None:
    (command.directory / "pairs.jsonl").write_text("mine")
    ran = command("init")
    assert (ran.code, ran.out) == (2, "")
    assert "already in .: pairs.jsonl; replace with --force" in ran.err
    assert not (command.directory / "evenhand.toml").exists()
    assert (command.directory / "pairs.jsonl").read_text() == "mine"
    assert command("init", "--force").code == 0
    assert (command.directory / "pairs.jsonl").read_text() != "mine"


def test_a_folder_is_made_and_named_in_the_next_command(command: Command) -> None:
    ran = command("init", "a/b")
    assert "next  cd a/b && evenhand run pairs.jsonl\n" in ran.out
    assert {each.name for each in (command.directory / "a" / "b").iterdir()} == set(FILES)
    prompts, pairs = (
        [json.loads(line) for line in (command.directory / "a/b" / name).read_text().splitlines()]
        for name in ("prompts.jsonl", "pairs.jsonl")
    )
    assert [each["prompt"] for each in prompts] == [each["prompt"] for each in pairs]


@pytest.mark.parametrize(
    ("judge", "refused"), [("replay:x.jsonl", "reads a file"), (" ", "takes a text")]
)
def test_a_judge_that_the_file_may_not_name_is_refused(
    command: Command, judge: str, refused: str
) -> None:
    ran = command("init", "--judge", judge)
    assert ran.code == 2
    assert refused in ran.err
    assert not (command.directory / "evenhand.toml").exists()


def test_a_judges_name_cannot_add_to_the_file(command: Command) -> None:
    judge = 'openai:x"\nlocale = "zh"\n'
    assert command("init", "--judge", judge).code == 0
    found = tomllib.loads((command.directory / "evenhand.toml").read_text("utf-8"))
    assert found["judge"] == judge.strip()
    assert "locale" not in found
