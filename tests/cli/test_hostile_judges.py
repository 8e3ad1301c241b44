"""A judge's server that means harm: its replies are bounded before they are parsed, its numbers
before they are believed."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from cases import each_case
from command_line import KEY, SUM, Command
from evenhand.judges.openai import OpenAIJudge
from run_data import adds_up, sums, write_lines
from scripted import answer_json
from servers import Reply, StartServer, chat_reply, in_turn

ANSWER = answer_json("A", confidence=0.9, criteria=[("accuracy", "A")])


def asked(command: Command, url: str, *more: str) -> Any:
    judge = ("--judge", "openai:loopback", "--base-url", url)
    return command("compare", *SUM, *judge, "--retries", "0", "--json", *more)


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_a_reply_of_too_many_values_is_refused_unparsed(
    command: Command, start_server: StartServer
) -> None:
    body = b'{"choices":[' + b"[]," * 1_000_000 + b"[]]}"  # 1,000,003 values
    server = start_server(lambda _: Reply(body))
    failure = asked(command, server.url).failure
    assert failure["kind"] == "judge_garbled"
    assert "more than 1,000,000 values" in failure["message"]


def test_the_same_many_commas_in_a_text_are_one_value(
    command: Command, start_server: StartServer
) -> None:
    reply = chat_reply(ANSWER, message={"reasoning_content": "," * 1_100_000})
    server = start_server(lambda _: reply)
    assert asked(command, server.url).verdict["success"] is True


def test_nothing_beyond_twenty_entries_of_an_error_is_searched(
    command: Command, start_server: StartServer
) -> None:
    """The 21st names a parameter; were it searched, the request would be sent again without."""
    entries = [{"msg": "no"}] * 20 + [{"msg": "temperature is not supported"}]
    server = start_server(lambda _: Reply({"errors": entries}, status=404))
    assert asked(command, server.url).failure["kind"] == "judge_rejected"
    assert {request.json["temperature"] for request in server.requests} == {0.0}


def test_nothing_beyond_64_kib_of_an_error_is_searched(
    command: Command, start_server: StartServer
) -> None:
    text = "x" * 65_536 + " temperature is not supported"
    for body in ({"error": {"message": text}}, text.encode()):
        server = start_server(in_turn(Reply(body, status=404)))
        assert asked(command, server.url).failure["kind"] == "judge_rejected"
        assert {request.json["temperature"] for request in server.requests} == {0.0}


def test_an_error_of_many_values_is_shown_as_text(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(lambda _: Reply({"errors": [{"msg": "no"}] * 6_000}, status=404))
    assert '[{"msg": "no"}, {"msg": "no"}' in asked(command, server.url).failure["message"]


def test_a_large_reply_is_read_beside_the_event_loop(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    read = OpenAIJudge._read

    def spied(self: OpenAIJudge, *arguments: Any, **named: Any) -> Any:
        names.append(threading.current_thread().name)
        return read(self, *arguments, **named)

    monkeypatch.setattr(OpenAIJudge, "_read", spied)
    server = start_server(lambda _: chat_reply(ANSWER, message={"x": "y" * 300_000}))
    assert asked(command, server.url).verdict["success"] is True
    assert names
    assert all(name.startswith("evenhand-reply") for name in names)


def test_an_answer_beyond_a_million_characters_is_cut_and_unread(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(lambda _: chat_reply("x" * 1_500_000 + ANSWER))
    result = asked(command, server.url, "--repairs", "0").json
    unread = result["metadata"]["passes"][0]["unread"]
    assert unread["kind"] == "truncated"
    assert len(unread["raw"]) == 1_000_000


@each_case("count", [2**63, 10**4000, 10_000_001, -1, 1.5, True, "9", [9], None])
def test_a_count_of_tokens_that_cannot_be_is_unknown(
    command: Command, start_server: StartServer, count: Any
) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 7}
    server = start_server(lambda _: chat_reply(ANSWER, usage=usage))
    told = asked(command, server.url).verdict["metadata"]["usage"]
    assert told["inputTokens"] is None
    assert told["outputTokens"] == 14  # 7 in each order


def test_a_run_does_not_wait_for_tokens_that_nobody_can_have_used(
    command: Command, start_server: StartServer
) -> None:
    def claims(request: Any) -> Reply:
        reply = adds_up(request)
        usage = {"prompt_tokens": 2**63 - 1, "completion_tokens": 2**63 - 1}
        return Reply({**reply.body, "usage": usage})

    server = start_server(claims)
    write_lines(command.directory / "sums.jsonl", sums(4))
    judge = ("--judge", "openai:loopback", "--base-url", server.url, "--tpm", "1e9")
    run = command("run", "sums.jsonl", "-c", "accuracy", *judge, "--json")
    assert run.code == 0
    assert (run.json["pairs"], run.json["pending"]) == (4, 0)


@each_case(
    "logprob", [0.5, 10**4000, float("nan"), float("inf"), float("-inf"), True, "0", None, [0]]
)
def test_a_log_probability_that_cannot_be_is_unknown(
    command: Command, start_server: StartServer, logprob: Any
) -> None:
    place = {"token": "A", "logprob": logprob}
    server = start_server(lambda _: chat_reply("A", logprobs=[place]))
    result = asked(command, server.url, "--mode", "letter").json
    assert result["metadata"]["passes"][0]["unread"]["kind"] == "no_probabilities"


def test_log_probabilities_below_any_use_are_never(
    command: Command, start_server: StartServer
) -> None:
    """llama.cpp writes the least number there is for what it would never say."""
    top = [{"token": "A", "logprob": 0.0001}, {"token": "B", "logprob": -3.4e38}]
    place = {"token": "A", "logprob": 0, "top_logprobs": top}
    server = start_server(lambda _: chat_reply("A", logprobs=[place]))
    result = asked(command, server.url, "--mode", "letter").verdict
    probabilities = result["metadata"]["passes"][0]["ballot"]["probabilities"]
    assert probabilities == {"a": 1.0, "b": 0.0, "tie": 0.0}


@each_case("name", ["m" * 257, "m" * 1_000_000, ["m"], {"m": 1}, 7])
def test_a_name_that_cannot_be_one_is_unknown(
    command: Command, start_server: StartServer, name: Any
) -> None:
    server = start_server(lambda _: chat_reply(ANSWER, model=name, request_id=name))
    first = asked(command, server.url).verdict["metadata"]["passes"][0]
    assert first["model"] is None
    assert first["requestIds"] == []


@each_case(
    "body",
    [
        {"error": {"message": "m", "code": 10**4000, "type": [10**4000]}},
        {"detail": [{"loc": [10**4000] * 3, "msg": "m"}]},
        json.loads('{"a": ' + "[" * 300 + "]" * 300 + "}"),
        json.loads('{"choices": ' + "[" * 300 + "]" * 300 + "}"),
        [[[[]]]],
        {"choices": [{"message": {"content": [{"text": 10**4000}]}, "finish_reason": ["stop"]}]},
    ],
)
def test_no_shape_of_a_reply_is_a_bug(
    command: Command, start_server: StartServer, body: Any
) -> None:
    for status in (200, 400, 500):
        server = start_server(in_turn(Reply(body, status=status)))
        ran = asked(command, server.url)
        assert ran.code not in (0, 70)
        assert "bug" not in ran.out + ran.err
