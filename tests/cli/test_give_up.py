"""A judge, or a model, that gives no answer: it is shown why, and the run stops and can go on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import SUM, Command, judged_by
from run_data import CRITERIA, adds_up, sums, write_lines
from scripted import answer_json
from servers import Reply, SeenRequest, StartServer, chat_reply, error_reply

HERE = ("--store", "evenhand.db")


def limited(wait_s: str = "1") -> Reply:
    return error_reply(429, "slow down", headers={"retry-after": wait_s})


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (429, "rate-limited by {}, retrying in "),
        (503, "{} returned a server error (5xx), retrying in "),
    ],
)
def test_run_without_an_answer_says_so_stops_and_goes_on(
    command: Command, start_server: StartServer, status: int, shown: str
) -> None:
    healed = False

    def script(request: SeenRequest) -> Reply:
        return adds_up(request) if healed else error_reply(status, "come back later")

    server = start_server(script)
    host = server.url.removeprefix("http://").partition("/")[0]
    pairs = write_lines(Path("sums.jsonl"), sums(4))
    build = ("run", str(pairs), *CRITERIA, *judged_by(server), *HERE, "--retries", "20")
    ran = command(*build, "--give-up-after", "0.3s", "--json")
    assert ran.code == 3
    assert f"0/4 pairs · {shown.format(host)}" in ran.err
    assert (ran.json["stoppedBy"], ran.json["pending"], ran.json["invalid"]) == ("judge", 4, 0)
    assert ran.json["error"]["retryable"] is True
    assert "openai:loopback has not answered for " in ran.json["error"]["message"]
    assert str(status) in ran.json["error"]["message"]
    assert ran.err.splitlines()[-1].startswith("stopped: the judge failed; 4 judgments are left")
    healed = True
    again = command(*build)
    assert (again.code, "4 pairs" in again.out) == (0, True)


def test_wait_that_a_server_asks_for_is_shown_and_not_waited_for_beyond_the_limit(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(lambda request: limited("590"))
    pairs = write_lines(Path("sums.jsonl"), sums(3))
    build = ("run", str(pairs), *CRITERIA, *judged_by(server), *HERE, "--give-up-after", "1")
    ran = command(*build)
    assert ran.code == 3
    assert ", retrying in 5" in ran.err  # 590 s, or a little less
    assert len(server.requests) == 1


def test_models_that_give_no_answer_stop_an_ab_test(
    command: Command, start_server: StartServer
) -> None:
    healed = False

    def script(request: SeenRequest) -> Reply:
        if not healed:
            return limited()
        judges = request.json["model"] == "loopback"
        return chat_reply(answer_json("TIE") if judges else f"It is {request.json['model']}.")

    server = start_server(script)
    rows = [{"id": row["id"], "prompt": row["prompt"]} for row in sums(3)]
    write_lines(Path("prompts.jsonl"), rows)
    models = ("--a", "openai:old", "--b", "openai:new")
    where = ("--a-base-url", server.url, "--b-base-url", server.url)
    test = ("ab", "prompts.jsonl", *models, *where, *CRITERIA, *judged_by(server), *HERE)
    ran = command(*test, "--give-up-after", "0.5")
    assert ran.code == 3
    assert "0 of 6 answers · rate-limited by 127.0.0.1:" in ran.err
    assert " has not answered for " in ran.err
    healed = True
    again = command(*test)
    assert again.code == 0, again.err


def test_answers_between_failures_keep_a_run_going(
    command: Command, start_server: StartServer
) -> None:
    """Every other call is refused, for longer in all than the limit."""
    seen = 0

    def script(request: SeenRequest) -> Reply:
        nonlocal seen
        seen += 1
        return error_reply(429, "slow down") if seen % 2 else adds_up(request)

    pairs = write_lines(Path("sums.jsonl"), sums(2))
    build = ("run", str(pairs), *CRITERIA, *judged_by(start_server(script)), *HERE)
    ran = command(*build, "--concurrency", "1", "--give-up-after", "20s")
    assert ran.code == 0, ran.err


def test_one_comparison_says_what_it_waits_for(command: Command, start_server: StartServer) -> None:
    seen = 0

    def script(request: SeenRequest) -> Reply:
        nonlocal seen
        seen += 1
        return limited() if seen <= 2 else chat_reply(answer_json("A"))

    ran = command("compare", *SUM, *judged_by(start_server(script)), "--json")
    assert ran.code == 0, ran.err
    assert re.search(
        r"^note  rate-limited by 127.0.0.1:\d+, retrying in 1 s$", ran.err, re.MULTILINE
    )


def test_one_comparison_ends_with_its_retries(command: Command, start_server: StartServer) -> None:
    server = start_server(lambda request: error_reply(429, "slow down"))
    ran = command("compare", *SUM, *judged_by(server), "--retries", "2")
    assert ran.code == 3
    assert re.search(
        r"^error  127.0.0.1:\d+ answered HTTP 429: slow down; .+ \(tried 3 times\)$",
        ran.err.splitlines()[-1],
    )
    assert len(server.requests) <= 6  # 3 in each order; the other one is not waited for


@pytest.mark.parametrize("value", ["soon", "0", "-1", "10 days", ""])
def test_time_that_is_none_is_refused(command: Command, value: str) -> None:
    pairs = write_lines(Path("sums.jsonl"), sums(2))
    build = ("run", str(pairs), *CRITERIA, "--judge", "baseline:longer", *HERE)
    ran = command(*build, "--give-up-after", value)
    assert (ran.code, ran.out) == (2, "")
    assert (
        f"--give-up-after is {value!r}; give a time such as 90s, 10m or 2h, or seconds" in ran.err
    )


def test_file_sets_the_time(command: Command, start_server: StartServer) -> None:
    Path("evenhand.toml").write_text("give_up_after_s = 0.2\n", "utf-8")
    server = start_server(lambda request: error_reply(429, "slow down"))
    pairs = write_lines(Path("sums.jsonl"), sums(2))
    ran = command("run", str(pairs), *CRITERIA, *judged_by(server), *HERE)
    assert (ran.code, "has not answered for " in ran.err) == (3, True)
