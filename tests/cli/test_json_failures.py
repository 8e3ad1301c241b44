"""With --json, whatever happens is one JSON object on standard output that fits the schema."""

from __future__ import annotations

import json

import pytest

from command_line import DOCUMENT, SUM, Command, judged_by, says
from servers import StartServer, error_reply


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--json"),
        ("compare", "--no-such-option", "--json"),
        ("compare", "--json", "--samples", "many"),
        ("compare", "--json", "--samples", "0"),
        ("compare", "--json", "--samples", "101"),
        ("compare", "--json", "--locale", "fr"),
        ("compare", "--json", "--mode", "sung"),
        ("compare", "--json", "--temperature", "-1"),
        ("compare", "--json", "--a"),
        ("compare", "--json", "one.json", "two.json"),
        ("compare", *SUM, "--json"),
        ("compare", *SUM, "--json", "--judge", "openai:"),
        ("compare", *SUM, "--json", "--judge", "openai:m", "--timeout", "nan"),
        ("compare", *SUM, "--json", "--judge", "openai:m", "--template", "missing.txt"),
        ("compare", *SUM, "--json", "--judge", "local:missing.gguf"),
        ("prompt", "--json"),
        ("prompt", "--json", "--locale", "fr"),
        ("prompt", *SUM, "--json", "--template", "."),
        ("prompt", *SUM, "--json", "--judge", "baseline:none"),
        ("doctor", "--json", "--timeout", "0"),
        ("nothing", "--json"),
        ("--json",),
    ],
)
def test_bad_input_is_one_json_object(command: Command, arguments: tuple[str, ...]) -> None:
    ran = command(*arguments)
    assert ran.code == 2
    assert ran.failure["retryable"] is False
    assert "\n" not in ran.failure["message"]
    assert ran.err == f"error  {ran.failure['message']}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--json"),
        ("run", "--json", "--rpm", "many"),
        ("run", "missing.jsonl", "--json", "--judge", "baseline:longer"),
        ("runs", "--json", "--no-such-option"),
        ("runs", "list", "--json", "--store", "."),
        ("runs", "show", "first", "--json", "--store", "nowhere.db"),
        ("runs", "--json", "show", "first", "--store", "nowhere.db"),
        ("show", "--json", "first", "1", "--store", "nowhere.db"),
    ],
)
def test_failure_of_many_pairs_tells_nothing_of_one(
    command: Command, arguments: tuple[str, ...]
) -> None:
    ran = command(*arguments)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert ran.failure["retryable"] is False
    assert ran.json["metadata"] == {}


@pytest.mark.parametrize(
    "content",
    ["judge = ", "colour = 1", "samples = 0", "base_url = 'http://elsewhere.example'", "\xff"],
)
@pytest.mark.parametrize("name", ["compare", "prompt"])
def test_bad_config_file_is_one_json_object(command: Command, name: str, content: str) -> None:
    (command.directory / "evenhand.toml").write_text(content, encoding="latin-1")
    ran = command(name, *SUM, "--json")
    assert (ran.code, ran.failure["kind"]) == (2, "settings")
    assert len(ran.err.splitlines()) == 1


def test_failed_judge_is_one_json_object_with_what_is_known(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(lambda request: error_reply(500))
    pair = json.dumps({**DOCUMENT, "id": "row 3"}).encode()
    arguments = ("compare", "-", *judged_by(server), "--retries", "1", "--json")
    ran = command(*arguments, stdin=pair)
    assert ran.code == 3
    metadata = ran.verdict["metadata"]
    assert metadata["id"] == "row 3"
    assert metadata["judge"] == "openai:loopback"
    assert metadata["outcome"] == "invalid"
    assert metadata["usage"]["requests"] == len(server.requests) == 4  # two orders, tried twice


def test_unread_answers_are_one_json_object_with_the_answers(
    command: Command, start_server: StartServer
) -> None:
    hostile = "\x1b[31m\u202eno verdict\x00\u2028"
    ran = command("compare", *SUM, *judged_by(start_server(says(hostile))), "--json")
    assert ran.code == 4
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("error  ")
    unread = ran.verdict["metadata"]["passes"][0]["unread"]
    assert unread["raw"] == hostile
    # Parsed it is verbatim, written it is harmless: nothing but printable characters.
    assert all(char == "\n" or char.isprintable() for char in ran.out)
