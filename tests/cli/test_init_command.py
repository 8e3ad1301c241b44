"""`evenhand init`: what it writes can be used as it is, and nothing of the user's is lost."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from command_line import Command
from evenhand.analysis_options import GateOptions
from evenhand.settings import GATE, Settings, load_settings
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply

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


def test_a_server_without_a_price_is_warned_of_and_its_calls_are_capped(
    command: Command, start_server: StartServer
) -> None:
    """The file caps the cost, which nobody knows of a server of one's own."""
    server = start_server(lambda request: chat_reply(answer_json("TIE")))
    assert command("init").code == 0
    assert "\nmax_cost = 5.0\n" in (command.directory / "evenhand.toml").read_text("utf-8")
    local = ("--judge", "openai:my-own-7b", "--base-url", server.url, "--store", "s.db")
    ran = command("run", "pairs.jsonl", *local)
    assert ran.code == 0, ran.err
    assert len(server.requests) == 12
    warning = (
        "the price of openai:my-own-7b is unknown, so --max-cost cannot be enforced; capped "
        "at 5,000 calls instead; set the price with --price INPUT/OUTPUT (dollars per "
        "million tokens), or the cap with --max-calls\n"
    )
    assert ran.err.index(warning) < ran.err.index("at most about 6 pairs, 12 calls")
    # Nothing but the cap in dollars: 100 calls for each of them.
    (command.directory / "evenhand.toml").write_text('criteria = ["accuracy"]\n', "utf-8")
    capped = command("run", "pairs.jsonl", *local, "--max-cost", "0.05", "--fresh")
    assert capped.code == 5
    assert "capped at 5 calls instead" in capped.err
    assert len(server.requests) == 12 + 5


def test_two_sides_without_a_price_are_previewed_and_asked_within_a_cap_on_calls(
    command: Command, start_server: StartServer
) -> None:
    def answers(request: SeenRequest) -> Reply:
        if "accuracy" in request.prompt:
            return chat_reply(answer_json("TIE"))
        return chat_reply(f"From {request.json['model']}.")

    server = start_server(answers)
    assert command("init", "--judge", "openai:my-own-7b").code == 0
    test: tuple[str, ...] = (
        "ab",
        "prompts.jsonl",
        "--a",
        "openai:my-own-3b",
        "--b",
        "openai:my-own-7b",
    )
    sent = [f"--{side}base-url" for side in ("", "a-", "b-")]
    test += (*(word for each in sent for word in (each, server.url)), "--store", "s.db")
    preview = command(*test, "--max-cost", "5", "--dry-run")
    assert preview.code == 0, preview.err
    assert "cost     unknown (set --price)" in preview.out
    # Six answers of each side, and six pairs in both orders.
    assert "calls    at most about 24\n" in preview.out
    assert server.requests == []
    (command.directory / "evenhand.toml").write_text('criteria = ["accuracy"]\n', "utf-8")
    judged = (*test, "--judge", "openai:my-own-7b", "--max-cost", "0.1")
    ran = command(*judged)
    assert ran.code == 5
    assert "--b-price INPUT/OUTPUT" in ran.err
    assert len(server.requests) == 10
    # The cap holds over all commands of the test.
    assert command(*judged).code == 5
    assert len(server.requests) == 10
    assert command(*test, "--judge", "openai:my-own-7b", "--max-cost", "0.3").code == 0
    assert len(server.requests) == 24


def test_the_config_file_holds_every_setting(command: Command) -> None:
    command("init")
    text = (command.directory / "evenhand.toml").read_text("utf-8")
    options = [row.name for row in Settings.rows() if row.option.files == "any"]
    for name in (*options, *GATE, "criteria", "families"):
        assert re.search(rf"^(# )?\[?{name}\b", text, re.MULTILINE), name
    assert text.endswith(
        "# base_url, template and store can only be set in your own config file, the environment "
        "or an\n# option, because a file in the working directory may come from somebody else.\n"
    )
    settings = load_settings({}, user_file=Path("/dev/null"), directory=command.directory)
    assert [(each.name, each.weight) for each in settings.criteria] == [
        ("accuracy", 2.0),
        ("helpfulness", None),
        ("clarity", None),
    ]
    assert (settings.max_cost, settings.max_calls) == (5.0, 5000)
    assert settings.gate == GateOptions(
        min_win_rate=0.5, alpha=0.05, max_inconsistent=0.3, max_invalid=0.05, max_skipped=0.05
    )
    # What is commented out is what holds without it.
    shown = re.findall(r"^# (\w+ = \S+)", text, re.MULTILINE)
    assert len(shown) == 18
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
    ("judge", "refused"), [("replay:x.jsonl", "reads a file"), (" ", "give text")]
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
