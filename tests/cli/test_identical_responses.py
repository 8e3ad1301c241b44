"""Identical responses are a tie by rule: no call, no cost, and in no figure about the judge."""

from __future__ import annotations

import re
from typing import Any

from command_line import Command
from run_data import CRITERIA, sums, write_lines
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply

STORE = ("--store", "store.db")


def takes_the_first(request: SeenRequest) -> Reply:
    return chat_reply(answer_json("A", confidence=0.9, criteria=[("accuracy", "A")]))


def rows(different: int, identical: int) -> list[dict[str, Any]]:
    alike = [{**row, "response_b": row["response_a"]} for row in sums(identical, begin=100)]
    return [
        {**row, "label": label}
        for group, label in ((sums(different), "A"), (alike, "TIE"))
        for row in group
    ]


def judged(command: Command, start_server: StartServer, *more: str) -> list[SeenRequest]:
    server = start_server(takes_the_first)
    write_lines(command.directory / "pairs.jsonl", rows(different=6, identical=4))
    judge = ("--judge", "openai:m", "--base-url", server.url, "--name", "r")
    ran = command("run", "pairs.jsonl", *CRITERIA, *STORE, *judge, *more, "--json")
    assert ran.code == 0, ran.err
    return server.requests


def test_a_run_makes_no_call_for_them_and_says_so(
    command: Command, start_server: StartServer
) -> None:
    assert len(judged(command, start_server)) == 12  # 6 pairs in two orders, and none for the rest
    report = command("report", "r", *STORE, "--json").json["conclusions"]
    (conclusion,) = report["conclusions"]
    assert (conclusion["identical"], conclusion["winRate"]["counts"]["ties"]) == (4, 4)
    # Every pair that was asked about flipped: 0 of 6 consistent, and not 4 of 10.
    consistency = conclusion["position"]["consistency"]
    assert (consistency["part"], consistency["of"]) == (0, 6)
    assert conclusion["position"]["unread"] == 0
    assert "4 pairs have identical responses: ties by rule" in command("report", "r", *STORE).out


def test_an_audit_counts_them_apart(command: Command, start_server: StartServer) -> None:
    judged(command, start_server)
    audit = command("audit", "r", *STORE, "--json").json
    assert (audit["identical"], audit["n"]) == (4, 6)
    # No pair that the judge was asked about is right; the ties by rule would make it 4 of 10.
    assert (audit["accuracy"]["part"], audit["accuracy"]["of"]) == (0, 6)
    assert audit["inconsistent"]["part"] == 6


def test_a_gate_on_flips_counts_only_what_was_asked(
    command: Command, start_server: StartServer
) -> None:
    judged(command, start_server)
    gate = ("gate", "r", *STORE, "--min-win-rate", "0", "--max-inconsistent", "0.7")
    ran = command(*gate)
    assert "6 of 6" in ran.out + ran.err  # 100%, and not 60% of 10


def test_asking_for_them_is_another_run(command: Command, start_server: StartServer) -> None:
    assert len(judged(command, start_server, "--ask-identical")) == 20
    (conclusion,) = command("report", "r", *STORE, "--json").json["conclusions"]["conclusions"]
    assert conclusion["identical"] == 0
    assert conclusion["winRate"]["counts"]["inconsistent"] == 10
    again = ("run", "pairs.jsonl", *CRITERIA, *STORE, "--judge", "openai:m", "--name", "r")
    ran = command(*again, "--base-url", "http://127.0.0.1:9")
    assert ran.code == 2
    shown = command("runs", "show", "r", *STORE).out
    assert "--ask-identical" in " ".join(shown.split())


def test_a_jury_counts_them_in_rates_and_as_nobodys_vote(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(takes_the_first)
    judges = ("--judge", "openai:m", "--judge", "openai:n", "--base-url", server.url)
    judged(command, start_server, *judges[2:4], "--base-url", server.url)
    report = command("jury", "r", *STORE, "--json").json
    # Both judges flip on all 6 pairs that they were asked about; the 4 ties by rule are no votes.
    assert [each["votes"] for each in report["judges"]] == [0, 0]
    assert (report["counts"]["ties"], report["counts"]["unanimous"]) == (4, 0)
    assert report["between"][0]["pairs"] == 0
    assert "4 pairs have identical responses" in " ".join(command("jury", "r", *STORE).out.split())


def test_a_dry_run_counts_no_call_for_them(command: Command) -> None:
    write_lines(command.directory / "pairs.jsonl", rows(different=6, identical=4))
    dry = ("run", "pairs.jsonl", *CRITERIA, *STORE, "--judge", "openai:gpt-4o", "--dry-run")
    assert re.search(r"calls +at most about 12\b", command(*dry).out)
    assert re.search(r"calls +at most about 20\b", command(*dry, "--ask-identical").out)
