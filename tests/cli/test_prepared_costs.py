"""What is prepared, as commands show it: before the run, and in its account."""

from __future__ import annotations

import pytest

from command_line import Command
from run_data import answer_to, pairings, write_lines
from servers import StartServer, chat_reply


def test_the_commands_show_it(command: Command) -> None:
    write_lines(command.directory / "pairs.jsonl", pairings(3, 4))
    judge = ("--judge", "openai:m", "-c", "accuracy", "--price", "1/2")
    more = ("--prepare", "metrics,analysis")
    shown = command("run", "pairs.jsonl", *judge, *more, "--dry-run")
    assert shown.code == 0, shown.err
    assert "──── to openai:m · metrics · system ────" in shown.out
    assert "at most about 51" in shown.out
    # 51 calls for 36 passes.
    plain = command("plan", "pairs.jsonl", *judge, "--json").json
    prepared = command("plan", "pairs.jsonl", *judge, *more, "--json").json
    assert prepared["callCost"]["requests"] == pytest.approx(51 / 36)
    assert prepared["callCost"]["usd"]["low"] > plain["callCost"]["usd"]["low"]


def test_the_report_of_a_run_counts_what_was_prepared(
    command: Command, start_server: StartServer
) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    server = start_server(lambda request: chat_reply(answer_to(request.prompt), usage=usage))
    write_lines(command.directory / "pairs.jsonl", pairings(2, 3))
    judge = ("--judge", "openai:m", "--base-url", server.url, "-c", "accuracy", "--price", "1/2")
    kept = ("--store", "s.db", "--name", "it", "--prepare", "metrics")
    ran = command("run", "pairs.jsonl", *judge, *kept, "--yes", "--json")
    assert ran.code == 0, ran.err
    # Two texts and twelve passes, of 100 tokens in and 10 out at 1 and 2 dollars for a million.
    assert ran.json["total"]["calls"] == 14
    told = command("runs", "show", "it", "--store", "s.db", "--json").json
    assert (told["calls"], told["spent"]["requests"], told["spent"]["passes"]) == (14, 14, 12)
    assert (told["spent"]["inputTokens"], told["spent"]["outputTokens"]) == (1_400, 140)
    assert told["spent"]["costUsd"] == pytest.approx(14 * 120 / 1e6)
    like = command("plan", "--like", "it", "--store", "s.db", "--json").json
    assert like["callCost"]["requests"] == pytest.approx(14 / 12)
    assert like["callCost"]["usd"]["low"] == pytest.approx(14 * 120 / 1e6 / 12)
