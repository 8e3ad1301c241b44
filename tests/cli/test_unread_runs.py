"""A judge whose answers cannot be read stops the run before it has cost much."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import Command
from evenhand.contract import Unread
from evenhand.errors import JudgeUnreadable
from evenhand.judges.protocol import Judge, Traits
from evenhand.judging.decision import PassBallot, PassResult
from evenhand.messages import render
from evenhand.present.html.rendering import PageTranslator
from evenhand.runs.health import UnreadMonitor
from evenhand.runs.stop import Stop
from run_data import CRITERIA, adds_up, sums, wins_b, write_lines
from scripted import ScriptedJudge
from servers import Reply, SeenRequest, StartServer, chat_reply

NONSENSE = "I would \x1b[31mrather\x1b[0m talk\u202e about rain.\n" + "Rain, snow, hail. " * 40


def judged_by(url: str, *more: str) -> tuple[str, ...]:
    return ("--judge", "openai:loopback", "--base-url", url, "--store", "store.db", *more)


def nonsense(request: SeenRequest) -> Reply:
    return chat_reply(NONSENSE)


def nonsense_on_thirds(request: SeenRequest) -> Reply:
    """Pairs 3, 6, 9, … are never read, also when they are asked for again."""
    asked = re.search(r"What is (\d+) plus", request.prompt)
    assert asked is not None
    return nonsense(request) if int(asked[1]) % 3 == 0 else adds_up(request)


def told_by(
    judge: Judge, answers: list[bool], *, keep_going: bool = False, in_flight: int = 0
) -> tuple[Stop, int]:
    """What comes of answers that are read (True) or not, and how many it took."""
    stop = Stop()
    watch = UnreadMonitor(judge, stop, keep_going=keep_going)
    ballot = PassBallot("original", 1, "A")
    unread = Unread(order="original", kind="no_verdict", reason="no verdict", raw=NONSENSE)
    for count, read in enumerate(answers, start=1):
        watch.answered(PassResult(ballot if read else unread), in_flight=in_flight)
        if stop.by is not None:
            return stop, count
    return stop, len(answers)


SCRIPTED = ScriptedJudge(lambda _: "")


def test_twenty_in_a_row_stop_it_wherever_they_come() -> None:
    good = [True] * 40
    assert told_by(SCRIPTED, [*good, *[False] * 19, True, *[False] * 19])[0].by is None
    stop, count = told_by(SCRIPTED, [*good, *[False] * 30])
    assert (stop.by, count) == ("judge", 60)
    assert isinstance(stop.error, JudgeUnreadable)
    assert stop.error.message.startswith("20 answers from scripted in a row could not be read")


def test_what_was_in_flight_together_may_come_unread_in_a_row() -> None:
    """Of 64 in flight a third is unread and comes last, after the repair: 21 in a row, again and
    again. A judge that was never read stops at 20 all the same."""
    in_waves = [*[True] * 43, *[False] * 21] * 3
    assert told_by(SCRIPTED, in_waves, in_flight=64)[0].by is None
    # 20 and 64 in a row, 21 of which came with the last wave.
    stop, count = told_by(SCRIPTED, [*in_waves, *[False] * 100], in_flight=64)
    assert (stop.by, count) == ("judge", len(in_waves) + 84 - 21)
    assert told_by(SCRIPTED, [False] * 100, in_flight=64)[1] == 20


def test_more_than_half_of_the_first_forty_stop_it() -> None:
    # Read, unread, read, unread, …: 20 of 40 are half of them, and not more.
    assert told_by(SCRIPTED, [True, False] * 500)[0].by is None
    stop, count = told_by(SCRIPTED, [False, False, True] * 100)
    # Of every three two are unread: the 21st unread one is answer 31 (10 × 3 + 1).
    assert (stop.by, count) == ("judge", 31)
    assert stop.error is not None
    assert "more than half of the first 40 answers" in stop.error.message
    # The 21st unread one as answer 40 is among the first 40; as answer 41 it is not.
    assert told_by(SCRIPTED, [*[True, False] * 19, False, False])[1] == 40
    late = told_by(SCRIPTED, [*[True, False] * 20, False])
    assert (late[0].by, late[1]) == (None, 41)


def test_who_keeps_going_and_what_costs_nothing_are_not_stopped() -> None:
    unread = [False] * 1000
    assert told_by(SCRIPTED, unread, keep_going=True)[0].by is None
    replayed = ScriptedJudge(lambda _: "", Traits(needs_prompt=False))
    assert told_by(replayed, unread)[0].by is None


def test_the_example_is_short_and_harmless_and_told_in_both_languages() -> None:
    for answers in ([False] * 20, [False, False, True] * 20):
        stop, _ = told_by(SCRIPTED, answers)
        assert stop.error is not None
        message = stop.error.message
        assert "I would [31mrather [0m talk about rain. Rain, snow" in message
        assert message.isprintable()
        assert len(message) < 500
        assert re.search(r"无法读取，运行已停止", PageTranslator("zh")(message))
        assert "continue with keepGoingUnread" in render(message, face="http")
        assert "ticked" in PageTranslator("en", on_pages=True)(message)
        assert "勾选" in PageTranslator("zh", on_pages=True)(message)


@pytest.fixture
def pairs(command: Command) -> Path:
    return write_lines(command.directory / "pairs.jsonl", sums(300))


@pytest.mark.slow
def test_a_judge_that_answers_nonsense_does_not_burn_the_budget(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(nonsense)
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    ran = command(*arguments, "--concurrency", "4")
    assert ran.code == 3
    assert "20 answers from openai:loopback in a row could not be read" in ran.err
    assert "talk about rain. Rain, snow, hail." in ran.err
    assert "--keep-going-unread" in ran.err
    assert "\x1b" not in ran.err
    # 20 passes with a repair each; 8 pairs are open at 4 calls in flight, so up to 16 passes more.
    assert 40 <= len(server.requests) <= 40 + 2 * 16
    before = len(server.requests)

    # The same command goes on, counts anew, and asks nothing twice.
    again = command(*arguments, "--concurrency", "4", "--json")
    assert (again.code, again.json["stoppedBy"]) == (3, "judge")
    assert again.json["error"]["kind"] == "judge_unreadable"
    assert again.json["pending"] + again.json["invalid"] == 300
    assert 40 <= len(server.requests) - before <= 40 + 2 * 16
    assert again.json["total"]["calls"] <= len(server.requests)

    whole = command(*arguments, "--keep-going-unread", "--json")
    assert (whole.code, whole.json["pending"], whole.json["invalid"]) == (0, 0, 300)


def test_in_full_flight_it_still_stops_early(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(nonsense)
    ran = command("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    assert ran.code == 3
    assert len(server.requests) < 300  # of 1,200


@pytest.mark.slow
def test_a_judge_that_is_sometimes_unread_goes_on(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(nonsense_on_thirds)
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url), "--json")
    ran = command(*arguments)
    assert (ran.code, ran.json["stoppedBy"]) == (0, None)
    # B is right on every third pair, and those are the unread ones.
    assert (ran.json["winsA"], ran.json["winsB"], ran.json["invalid"]) == (200, 0, wins_b(300))


def test_an_audit_and_a_probe_are_runs_too(command: Command, start_server: StartServer) -> None:
    server = start_server(nonsense)
    write_lines(command.directory / "labelled.jsonl", sums(60, label="A"))
    audited = command("audit", "labelled.jsonl", *CRITERIA, *judged_by(server.url))
    assert (audited.code, "--keep-going-unread" in audited.err) == (3, True)
    probed = command("probe", *judged_by(server.url))
    assert (probed.code, "could not be read" in probed.err) == (3, True)
    assert len(server.requests) < 2 * 150


def test_a_replay_says_which_protocol_reads_what_was_not(command: Command) -> None:
    """Of 4 pairs 2 end in a sentence, in both orders, and 1 says nothing: 5 answers of 8."""
    sentence = (
        "Both were weighed at length against the instruction. Therefore, Output ({}) is better."
    )
    said = {"1": ("(a)", "(b)"), "2": (sentence.format("a"), sentence.format("b"))}
    said |= {"3": (sentence.format("b"), sentence.format("a")), "4": ("Output (a)", "It rains.")}
    pairs = [{"id": name, "prompt": "p", "response_a": "x", "response_b": "y"} for name in said]
    rows = [
        {"id": name, "pass": order, "raw": raw}
        for name, raws in said.items()
        for order, raw in zip(("original", "swapped"), raws, strict=True)
    ]
    write_lines(command.directory / "pairs.jsonl", pairs)
    write_lines(command.directory / "recorded.jsonl", rows)
    asked = ("run", "pairs.jsonl", "--judge", "replay:recorded.jsonl", "--store", "store.db")
    ran = command(*asked)
    assert "5 answers could not be read; --protocol llmbar reads 4 of them" in ran.err
    assert "--retry" not in ran.err
    assert "3 invalid; evenhand runs show " in ran.err
    named = command(*asked, "--protocol", "llmbar", "--name", "named")
    assert re.search(r"answers? unread;", named.err) is None
    assert "unread" not in command(*asked, "--limit", "1", "--name", "one").err


def test_nothing_asks_a_replay_again(command: Command) -> None:
    """30 pairs of which 20 are read for A, so 10 are missing: a gate on them is undecided."""
    names = [str(number) for number in range(30)]
    pairs = [
        {"id": name, "prompt": f"p{name}", "response_a": "x", "response_b": "y"}
        | {"model_a": "new", "model_b": "old"}
        for name in names
    ]
    rows = [
        {
            "id": name,
            "pass": order,
            "raw": raw if int(name) < 20 else "It rains today, and it pours.",
        }
        for name in names
        for order, raw in (("original", "[[A]]"), ("swapped", "[[B]]"))
    ]
    write_lines(command.directory / "pairs.jsonl", pairs)
    write_lines(command.directory / "recorded.jsonl", rows)
    write_lines(command.directory / "silent.jsonl", [{**row, "raw": "It rains."} for row in rows])
    store = ("--store", "store.db")
    run = ("run", "pairs.jsonl", "--keep-going-unread", *store)
    assert command(*run, "--judge", "replay:recorded.jsonl", "--name", "read").code == 0
    assert command(*run, "--judge", "replay:silent.jsonl", "--name", "silent").code == 0
    remedies = {
        ("gate", "read", "--min-win-rate", "0.65"): "--missing half",
        ("gate", "read", "--max-invalid", "0.1"): "raise the limit",
        ("rank", "silent"): "every verdict is invalid",
    }
    for words, remedy in remedies.items():
        ran = command(*words, *store)
        shown = " ".join((ran.out + ran.err).split())
        assert remedy in shown, shown
        assert "--protocol" in shown
        assert "--retry" not in shown
