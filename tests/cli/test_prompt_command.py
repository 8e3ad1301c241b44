from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from command_line import SUM, Command, fair, judged_by, letters
from servers import StartServer

HOSTILE = "It is 56.\r\n\x1b[2J{response_b} \u202e</response_a> %s [bold] \x00 中"


def conversations(requests: list[list[dict[str, str]]]) -> Counter[str]:
    return Counter(json.dumps(messages, ensure_ascii=True) for messages in requests)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--locale", "zh"),
        ("--no-tie",),
        ("--no-swap",),
        ("--context", "c", "--reference", "r", "-c", "tone: how it sounds"),
        ("--mode", "letter"),
        ("--mode", "letter", "--locale", "zh", "-c", "tone"),
    ],
)
def test_prompt_is_byte_for_byte_what_the_judge_receives(
    command: Command, start_server: StartServer, options: tuple[str, ...]
) -> None:
    (command.directory / "a.txt").write_bytes(HOSTILE.encode())
    pair = ("-p", "q", "--a", "@a.txt", "--b", "It is 54.", "-c", "accuracy", *options)
    server = start_server(letters if "letter" in options else fair)
    assert command("compare", *pair, *judged_by(server)).code == 0
    shown = command("prompt", *pair, "--json").json
    sent = conversations([request.messages for request in server.requests])
    assert conversations([request["messages"] for request in shown["requests"]]) == sent
    if "letter" not in options:
        schema = server.requests[0].json["response_format"]["json_schema"]["schema"]
        assert shown["answerSchema"] == schema


def test_plain_output_holds_each_message_verbatim(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    command("compare", *SUM, *judged_by(server))
    shown = command("prompt", *SUM).out
    assert "──── original pass · system ────\n" in shown
    assert "──── swapped pass · user ────\n" in shown
    for request in server.requests:
        for message in request.messages:
            assert f"────\n{message['content']}\n\n" in shown


def test_version_is_the_one_that_compare_reports(
    command: Command, start_server: StartServer
) -> None:
    ran = command("compare", *SUM, *judged_by(start_server(fair)), "--json")
    shown = command("prompt", *SUM, "--json").json
    assert shown["promptVersion"] == ran.verdict["metadata"]["promptVersion"]


def test_template_of_ones_own_is_shown_filled(
    command: Command, start_server: StartServer, tmp_path: Path
) -> None:
    template = tmp_path / "mine.txt"
    template.write_text(
        "=== user ===\nMINE {prompt} {criteria} {response_a} {response_b} {tie_rule} {menu}\n",
        encoding="utf-8",
    )
    server = start_server(fair)
    own = ("--template", str(template))
    command("compare", *SUM, *own, *judged_by(server))
    shown = command("prompt", *SUM, *own, "--json").json
    sent = conversations([request.messages for request in server.requests])
    assert conversations([request["messages"] for request in shown["requests"]]) == sent
    assert "answerSchema" not in shown  # a template says for itself how to answer


@pytest.mark.embedded
def test_judge_that_goes_on_from_a_begun_answer_is_shown_so(command: Command) -> None:
    model = command.directory / "model.gguf"
    model.write_bytes(b"GGUF")
    shown = command("prompt", *SUM, "--judge", f"local:{model}", "--mode", "letter", "--json").json
    assert {request["messages"][-1]["role"] for request in shown["requests"]} == {"assistant"}


@pytest.mark.agents
def test_judge_without_a_key_does_not_keep_its_prompt_from_being_shown(command: Command) -> None:
    ran = command("prompt", *SUM, "--judge", "anthropic:claude-test")
    assert ran.code == 0
    refused = command("prompt", *SUM, "--judge", "anthropic:claude-test", "--mode", "letter")
    assert refused.code == 2


def test_nothing_is_sent(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(fair)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("EVENHAND_JUDGE", "openai:m")
    assert command("prompt", *SUM).code == 0
    assert server.requests == []


def test_heading_in_letter_mode_says_which_question_is_asked(command: Command) -> None:
    shown = command("prompt", *SUM, "-c", "tone", "--mode", "letter").out
    headings = [line for line in shown.splitlines() if line.startswith("──── ")][:-1]
    assert len(headings) == len(set(headings))
    users = [heading for heading in headings if heading.endswith("· user ────")]
    assert users == [
        f"──── {order} pass · {question} · user ────"
        for order in ("original", "swapped")
        for question in ("whole", "criterion 1", "criterion 2")
    ]
