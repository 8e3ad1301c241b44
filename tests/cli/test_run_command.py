"""`evenhand run` as its users give it: files, options, exit codes, what is printed."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from command_line import Command, start_command
from evenhand.store import open_store
from run_data import CRITERIA, adds_up, sums, write_lines
from scripted import answer_json
from servers import Reply, SeenRequest, Slow, StartServer, chat_reply, error_reply

SUMMARY = [
    "run",
    "pairs",
    "winsA",
    "winsB",
    "ties",
    "inconsistent",
    "invalid",
    "skippedRows",
    "calls",
    "reusedPasses",
    "inputTokens",
    "outputTokens",
    "costUsd",
    "seconds",
    "stoppedBy",
]


def judged_by(url: str, *more: str) -> tuple[str, ...]:
    return ("--judge", "openai:loopback", "--base-url", url, "--store", "store.db", *more)


@pytest.fixture
def pairs(command: Command) -> Path:
    return write_lines(command.directory / "pairs.jsonl", sums(12))


def test_the_summary_is_one_json_object(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    ran = command("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url), "--json")
    assert ran.code == 0
    assert set(SUMMARY) <= set(ran.json)
    assert (ran.json["pairs"], ran.json["winsA"], ran.json["winsB"]) == (12, 8, 4)
    assert ran.json["calls"] == len(server.requests) == 24
    assert ran.json["stoppedBy"] is None


def test_a_person_reads_a_table(command: Command, pairs: Path, start_server: StartServer) -> None:
    server = start_server(adds_up)
    ran = command("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url, "--name", "sums"))
    assert ran.code == 0
    assert "run sums" in ran.out
    assert "inconsistent" in ran.out
    assert "24 calls" in ran.out
    assert "at most about 12 pairs, 24 calls" in ran.err


def test_the_same_command_again_says_that_it_is_done(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    command(*arguments)
    ran = command(*arguments)
    assert (ran.code, len(server.requests)) == (0, 24)
    assert "all 12 pairs are already judged; nothing to do" in ran.err


def test_one_pair_and_one_call_are_told_as_one(command: Command, start_server: StartServer) -> None:
    server = start_server(adds_up)
    write_lines(command.directory / "pairs.jsonl", sums(1))
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    first = command(*arguments, "--max-calls", "1")
    assert "at most about 1 pair, 2 calls, " in first.err
    assert "1 pair, stored in " in first.out
    assert "1 call, " in first.out
    assert "1 judgment is left; run the same command to judge it" in first.err
    second = command(*arguments)
    assert "1 call, 1 pass reused, " in second.out
    third = command(*arguments)
    assert "its 1 pair is already judged; nothing to do" in third.err
    assert "0 calls" in third.out


@pytest.mark.parametrize(
    ("models", "called"),
    [
        ((None, None), ("v1/out.jsonl", "v2/out.jsonl")),  # the files are called the same
        (("small", "large"), ("small", "large")),
    ],
)
def test_models_are_called_the_same_everywhere(
    command: Command, models: tuple[str | None, str | None], called: tuple[str, str]
) -> None:
    for cycle, folder, model in zip((2, 3), ("v1", "v2"), models, strict=True):
        (command.directory / folder).mkdir()
        rows = [{"id": n, "prompt": f"p{n}", "response": "yes" * (n % cycle)} for n in range(8)]
        named = [row | ({"model": model} if model else {}) for row in rows]
        write_lines(command.directory / folder / "out.jsonl", named)
    files = ("--a", "v1/out.jsonl", "--b", "v2/out.jsonl")
    judged = ("-j", "baseline:longer", "--store", "s.db", "--name", "named")
    told = "A is {}, B is {}".format(*called)
    assert f"note  {told}" in command("run", *files, *judged).err
    assert told in command("run", *files, *judged, "--json").json["notes"]  # nothing is read again
    report = command("report", "named", "--store", "s.db", "--json").json["conclusions"]
    assert {report["conclusions"][0][each] for each in ("model", "against")} == set(called)
    ranking = command("rank", "named", "--store", "s.db", "--json").json
    assert {each["model"] for each in ranking["ranking"]["models"]} == set(called)


def test_rows_that_repeat_another_are_told_and_judged_once(command: Command) -> None:
    rows = sums(4)
    write_lines(command.directory / "pairs.jsonl", [*rows, rows[0], rows[3], rows[0]])
    arguments = ("run", "pairs.jsonl", "-j", "baseline:longer", "--store", "s.db", "--name", "sums")
    told = "3 rows repeat another row with the same id and content; each pair is judged once"
    for _ in range(2):  # the second time nothing is read
        ran = command(*arguments, "--json")
        assert (ran.code, ran.json["pairs"], ran.json["calls"] in (0, 8)) == (0, 4, True)
        assert ran.json["notes"] == [told]
    assert f"note  {told}" in command(*arguments).err
    shown = command("runs", "show", "sums", "--store", "s.db")
    assert "4, skipped rows 0, repeated rows 3" in shown.out


def test_two_models_outputs_are_the_everyday_case(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    rows = sums(9)
    for name, side in (("old", "response_a"), ("new", "response_b")):
        outputs = [{"id": r["id"], "prompt": r["prompt"], "output": r[side]} for r in rows]
        write_lines(command.directory / f"{name}.jsonl", outputs)
    ran = command(
        "run", "--a", "old.jsonl", "--b", "new.jsonl", *CRITERIA, *judged_by(server.url), "--json"
    )
    assert ran.code == 0
    assert ran.json["run"].startswith("old-vs-new-")
    assert (ran.json["winsA"], ran.json["winsB"]) == (6, 3)


def test_prompts_that_only_one_of_two_models_answered_are_counted_or_left_out(
    command: Command,
) -> None:
    def answers(model: str, numbers: range) -> list[dict[str, Any]]:
        return [{"id": n, "prompt": f"p{n}", "output": model * n} for n in numbers]

    write_lines(command.directory / "old.jsonl", answers("o", range(1, 101)))
    write_lines(command.directory / "new.jsonl", answers("new", range(10, 101, 10)))
    joined = ("--a", "old.jsonl", "--b", "new.jsonl", "-j", "baseline:longer", "--store", "s.db")
    refused = command("run", *joined)
    assert refused.code == 2
    assert "the answer to '1' has no counterpart from new" in refused.err
    assert "--bad-rows skip" in refused.err
    assert "--prompts common" in refused.err
    skipping = command("run", *joined, "--bad-rows", "skip", "--json")
    assert (skipping.code, skipping.json["pairs"], skipping.json["skippedRows"]) == (0, 10, 90)
    assert any(
        "(90 in old but not in new) and count as missing" in n for n in skipping.json["notes"]
    )
    common = command("run", *joined, "--prompts", "common", "--json")
    assert (common.code, common.json["pairs"], common.json["skippedRows"]) == (0, 10, 0)
    assert any(
        "(90 in old but not in new) and are left out" in note for note in common.json["notes"]
    )
    assert common.json["run"] != skipping.json["run"]
    pairs = write_lines(command.directory / "pairs.jsonl", sums(2))
    wrong = command("run", pairs.name, "--prompts", "common", "-j", "baseline:longer")
    assert (
        wrong.code,
        "--prompts requires --a/--b or --outputs; it does not apply to PAIRS" in wrong.err,
    ) == (2, True)


def test_several_models_are_compared_with_each_other_or_with_a_baseline(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    rows = sums(4)
    for name, wrong in (("one", 0), ("two", 1), ("three", 1)):
        outputs = [
            {
                "id": r["id"],
                "prompt": r["prompt"],
                "output": f"It is {2 * n + wrong}, by counting." + " " * (name == "three"),
            }
            for n, r in enumerate(rows, start=1)
        ]
        write_lines(command.directory / f"{name}.jsonl", outputs)
    files = [part for name in ("two", "one", "three") for part in ("--outputs", f"{name}.jsonl")]
    ran = command("run", *files, "--baseline", "one", *CRITERIA, *judged_by(server.url), "--json")
    assert (ran.code, ran.json["pairs"], ran.json["winsA"]) == (0, 8, 8)
    assert command("run", *files[:2], *CRITERIA, *judged_by(server.url)).code == 2


def test_gzip_csv_and_standard_input_are_read(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    judge = judged_by(server.url, "--json")
    data = pairs.read_bytes()
    (command.directory / "packed.jsonl.gz").write_bytes(gzip.compress(data))
    assert command("run", "packed.jsonl.gz", *CRITERIA, *judge).json["pairs"] == 12
    ran = command("run", "-", *CRITERIA, *judge, stdin=data)
    assert (ran.json["pairs"], ran.json["calls"], ran.json["reusedPasses"]) == (12, 0, 24)
    lines = ["id,question,answer_a,answer_b"]
    lines += [f'{r["id"]},{r["prompt"]},"{r["response_a"]}","{r["response_b"]}"' for r in sums(12)]
    (command.directory / "pairs.csv").write_bytes("\r\n".join(lines).encode())
    ran = command("run", "pairs.csv", "--map", "prompt=question", *CRITERIA, *judge)
    assert (ran.json["pairs"], ran.json["calls"]) == (12, 0)


def test_a_bad_row_is_told_with_its_number(command: Command, start_server: StartServer) -> None:
    server = start_server(adds_up)
    rows: list[Any] = sums(5)
    rows[2] = {"id": "x", "prompt": "What?"}
    write_lines(command.directory / "pairs.jsonl", rows)
    ran = command("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    assert (ran.code, server.requests) == (2, [])
    assert "pairs.jsonl, row 3: " in ran.err
    assert "--bad-rows skip" in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    ran = command(
        "run", "pairs.jsonl", *CRITERIA, *judged_by(server.url), "--bad-rows", "skip", "--json"
    )
    assert (ran.code, ran.json["pairs"], ran.json["skippedRows"]) == (0, 4, 1)


def test_a_file_cut_in_a_line_is_an_error_before_anything_is_spent(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    pairs.write_bytes(pairs.read_bytes()[:-20])
    ran = command("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    assert (ran.code, server.requests) == (2, [])
    assert "row 12" in ran.err


def test_a_cap_stops_with_code_5_and_the_same_command_goes_on(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    ran = command(*arguments, "--max-calls", "7", "--json")
    assert (ran.code, ran.json["stoppedBy"], len(server.requests)) == (5, "max-calls", 7)
    ran = command(*arguments, "--json")
    assert (ran.code, ran.json["stoppedBy"], len(server.requests)) == (0, None, 24)
    assert ran.json["winsA"] + ran.json["winsB"] == 12


def test_a_cap_on_cost_uses_the_price_that_is_given(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    def told(request: SeenRequest) -> Reply:
        body = adds_up(request).body
        body["usage"] = {"prompt_tokens": 1000, "completion_tokens": 1000}
        return Reply(body)

    server = start_server(told)
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url, "--concurrency", "1"))
    # 0.001 + 0.003 dollars a call: five calls are 0.02.
    ran = command(*arguments, "--max-cost", "0.02", "--price", "1/3", "--json")
    assert (ran.code, ran.json["stoppedBy"], ran.json["calls"]) == (5, "max-cost", 5)
    assert ran.json["costUsd"] == pytest.approx(0.02)
    assert command(*arguments, "--price", "cheap").code == 2


def test_a_dear_run_wants_a_yes(command: Command, pairs: Path, start_server: StartServer) -> None:
    server = start_server(adds_up)
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url, "--price", "1000/1000"))
    ran = command(*arguments)
    assert (ran.code, server.requests) == (2, [])
    assert "--confirm-above 5" in ran.err
    assert command(*arguments, "--yes").code == 0


def test_a_wrong_key_ends_with_one_line_and_code_3(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(lambda request: error_reply(401, "no such key"))
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url))
    ran = command(*arguments)
    assert (ran.code, len(server.requests)) == (3, 1)
    assert sum("no such key" in line for line in ran.err.splitlines()) == 1
    told = command(*arguments, "--json")
    assert told.code == 3
    assert told.json["stoppedBy"] == "judge"
    assert told.json["error"]["kind"] == "judge_authentication"


def test_a_server_that_is_not_there_ends_with_code_3(command: Command, pairs: Path) -> None:
    ran = command(
        "run", "pairs.jsonl", *CRITERIA, *judged_by("http://127.0.0.1:9/v1", "--retries", "0")
    )
    assert ran.code == 3
    assert "cannot connect" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to judge"),
        (("pairs.jsonl", "--a", "x"), "--b is missing"),
        (("pairs.jsonl", "--a", "x", "--b", "y"), "give only one of PAIRS"),
        (("missing.jsonl",), "cannot read missing.jsonl"),
        (("pairs.jsonl", "--map", "prompt"), "FIELD=COLUMN"),
        (("pairs.jsonl", "--retry", "all"), "failed or unread"),
        (
            ("pairs.jsonl", "--baseline", "x"),
            "--baseline requires --a/--b or --outputs; it does not apply to PAIRS",
        ),
        (("--a", "pairs.jsonl", "--b", "pairs.jsonl", "--baseline", "x"), "A is --a"),
        (("pairs.jsonl", "--concurrency", "0"), "--concurrency"),
        (("pairs.jsonl", "--judge", "nobody"), "nobody"),
    ],
)
def test_what_makes_no_sense_is_refused_on_one_line(
    command: Command, pairs: Path, arguments: tuple[str, ...], message: str
) -> None:
    ran = command("run", *arguments, "-c", "accuracy", "--store", "s.db", "-j", "baseline:longer")
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_rows_without_criteria_need_some(command: Command, pairs: Path) -> None:
    ran = command("run", "pairs.jsonl", "--store", "s.db", "-j", "openai:x")
    assert ran.code == 2
    assert "criteria" in ran.err


def test_the_store_is_named_by_the_environment(
    command: Command, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_STORE", "elsewhere.db")
    assert command("run", "pairs.jsonl", "-j", "baseline:longer", "--json").code == 0
    assert (command.directory / "elsewhere.db").stat().st_mode & 0o077 == 0


def test_a_replay_is_a_run_too(command: Command) -> None:
    write_lines(command.directory / "pairs.jsonl", sums(4))
    recorded = [
        {"id": f"sum-{n}", "pass": order, "verdict_as_shown": "A"}
        for n in range(1, 5)
        for order in ("original", "swapped")
    ]
    write_lines(command.directory / "said.jsonl", recorded)
    ran = command("run", "pairs.jsonl", "-j", "replay:said.jsonl", "--store", "s.db", "--json")
    assert (ran.code, ran.json["inconsistent"], ran.json["costUsd"]) == (0, 4, 0.0)


def test_two_judges_are_told_apart(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    ran = command(
        "run", "pairs.jsonl", *CRITERIA, *judged_by(server.url), "-j", "baseline:longer", "--json"
    )
    assert [judge["judge"] for judge in ran.json["judges"]] == [
        "openai:loopback",
        "baseline:longer",
    ]


def test_a_base_url_is_not_given_to_a_judge_of_another_provider(
    command: Command, pairs: Path, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")  # nobody is there
    server = start_server(adds_up)
    command(
        *("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url, "--retries", "0")),
        *("--judge", "anthropic:claude-x", "--max-calls", "6"),
    )
    assert all("sk-ant" not in str(request.headers) for request in server.requests)
    assert all(request.path == "/v1/chat/completions" for request in server.requests)


def slowly(wait_s: float) -> Any:
    return lambda request: Slow(wait_s, adds_up(request))


def stored(path: Path, question: str) -> int:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
        return int(store.execute(question).fetchone()[0])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_finishes_what_is_in_flight_saves_and_says_how_to_go_on(
    command: Command, start_server: StartServer, number: signal.Signals
) -> None:
    server = start_server(slowly(0.2))
    write_lines(command.directory / "pairs.jsonl", sums(100))
    arguments = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url, "--concurrency", "4"))
    process = start_command((*arguments, "--json"), command.directory)
    assert server.wait_until(lambda: len(server.requests) >= 9, within_s=120)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert json.loads(out)["stoppedBy"] == "interrupt"
    assert "press Ctrl-C again to quit now" in err.decode()
    asked = len(server.requests)
    kept = stored(command.directory / "store.db", "select count(*) from passes")
    assert kept == asked  # nothing that was asked for is lost
    ran = command(*arguments, "--json", "--max-calls", "4")
    assert ran.json["calls"] == 4
    assert stored(command.directory / "store.db", "select count(*) from passes") == kept + 4


def test_a_second_ctrl_c_leaves_at_once(command: Command, start_server: StartServer) -> None:
    server = start_server(slowly(30))
    write_lines(command.directory / "pairs.jsonl", sums(20))
    process = start_command(
        ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url)), command.directory
    )
    assert server.wait_until(lambda: len(server.requests) >= 1, within_s=120)
    process.send_signal(signal.SIGINT)
    threading.Timer(0.5, process.send_signal, (signal.SIGINT,)).start()
    begun = time.monotonic()
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert time.monotonic() - begun < 15  # not the thirty seconds of what is in flight


def test_an_unread_answer_is_invalid_and_no_tie(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(lambda request: chat_reply("I would rather not say."))
    asking = ("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url), "--json")
    ran = command(*asking, "--keep-going-unread")
    assert (ran.code, ran.json["invalid"], ran.json["ties"]) == (0, 12, 0)


def test_hostile_ids_and_answers_do_nothing_to_the_terminal(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(
        lambda request: chat_reply(answer_json("A", reasoning="\x1b]0;owned\x07\x1b[2J"))
    )
    rows = sums(2)
    rows[0]["id"] = "\x1b[31mred"
    write_lines(command.directory / "pairs.jsonl", rows)
    ran = command("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url, "--name", "x\x1b[2Jy"))
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX")
def test_the_default_store_is_the_users_own(
    command: Command, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(command.directory / "data"))
    ran = command("run", "pairs.jsonl", "-j", "baseline:longer", "--json")
    store = Path(ran.json["store"])
    assert store.is_relative_to(command.directory / "data")
    assert store.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_until_decided_says_what_it_will_do_and_what_it_saved(
    command: Command, start_server: StartServer
) -> None:
    write_lines(command.directory / "many.jsonl", sums(400))
    server = start_server(adds_up)
    asked = ("run", "many.jsonl", *CRITERIA, *judged_by(server.url), "--until-decided")
    ran = command(*asked)
    assert ran.code == 0
    assert "Up to 400 prompts are judged in random order (seed 0)." in ran.err
    assert "A is better. That saved" in ran.err
    assert "ended: the winner is decided" in ran.err
    calls = len(server.requests)
    assert calls < 700
    again = command(*asked, "--json")
    assert again.code == 0
    assert len(server.requests) == calls
    assert again.json["stoppedBy"] == "decided"
    assert again.json["decision"]["decided"] == "A"
    assert again.json["decision"]["plan"]["alpha"] == 0.05


def test_rank_adaptive_keeps_to_its_budget(command: Command, start_server: StartServer) -> None:
    files = []
    for model, wrong in (("good", 9), ("fair", 3), ("poor", 2)):
        answers = [
            {
                "id": f"{n}",
                "prompt": f"What is {n} plus {n}?",
                "output": f"It is {2 * n + (n % wrong == 0)}, by counting.",
            }
            for n in range(1, 41)
        ]
        files += ["--outputs", str(write_lines(command.directory / f"{model}.jsonl", answers))]

    def judge(request: SeenRequest) -> Reply:
        first, second = re.findall(r"It is (\d+), by counting", request.prompt)
        right = str(2 * int(re.findall(r"What is (\d+) plus", request.prompt)[0]))
        winner = {(True, False): "A", (False, True): "B"}.get((first == right, second == right))
        return chat_reply(answer_json(winner or "TIE", criteria=[("accuracy", winner or "TIE")]))

    server = start_server(judge)
    ran = command(
        *("run", *files, *CRITERIA, *judged_by(server.url)),
        *("--rank-adaptive", "--budget", "60", "--certainty", "0.9999", "--json"),
    )
    assert ran.code == 0
    assert ran.json["stoppedBy"] == "budget"
    assert ran.json["pairs"] - ran.json["pending"] == 60
    assert len(server.requests) <= 120  # equal texts are judged once
    assert ran.json["ranking"]["models"] == ["good", "fair", "poor"]
    told = command(
        *("run", *files, *CRITERIA, *judged_by(server.url)),
        *("--rank-adaptive", "--budget", "60", "--certainty", "0.9999"),
    ).err
    ended, following = told.splitlines()[-2:]
    assert ended == (
        "ended: the budget is used up; raise --budget to continue; 60 pairs were not asked"
    )
    assert following.startswith("next  evenhand rank good-vs-fair-vs-poor-")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--alpha", "0.01"), "--alpha requires --until-decided"),
        (("--budget", "9"), "--budget requires --rank-adaptive"),
        (("--certainty", "0.9"), "--certainty requires --rank-adaptive"),
        (("--seed", "3"), "--seed requires --until-decided, --rank-adaptive or"),
        (("--rank-adaptive",), "--rank-adaptive needs --budget"),
        (("--rank-adaptive", "--budget", "9", "--until-decided"), "cannot be combined; give one"),
        (("--rank-adaptive", "--budget", "9"), "needs rows that name their two models"),
    ],
)
def test_ends_that_do_not_fit_are_refused(
    command: Command, pairs: Path, start_server: StartServer, given: tuple[str, ...], told: str
) -> None:
    server = start_server(adds_up)
    ran = command("run", "pairs.jsonl", *CRITERIA, *judged_by(server.url), *given)
    assert ran.code == 2
    assert told in ran.err
    assert server.requests == []


def test_a_run_knows_the_runs_that_it_grew_from(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    at = ("--base-url", server.url, "--store", "store.db")

    def run(name: str, rows: list[dict[str, Any]], judge: str = "openai:loopback") -> None:
        file = write_lines(command.directory / f"{name}.jsonl", rows)
        judged = ("run", file.name, *CRITERIA, "--judge", judge, *at, "--name", name)
        assert command(*judged).code == 0

    run("other judge", sums(20), "openai:another")
    run("first", sums(20))
    run("grown", sums(22))
    run("hardly any of it", [*sums(6), *sums(8, begin=70)])
    run("the rest of it", sums(20, begin=50))
    run("all", sums(40))
    with open_store(command.directory / "store.db") as store:
        found = {}
        for each in store.runs.all():
            (judge,) = store.runs.judges(each.id)
            found[each.name] = store.runs.grown_from(each.id, judge.id)
    assert found.pop("grown") == ("first",)
    # Six of the fourteen pairs of another run are no look at these.
    assert found.pop("all") == ("first", "grown")
    assert set(found.values()) == {()}


def test_a_run_obeys_the_caps_of_the_config_file(
    command: Command, pairs: Path, start_server: StartServer
) -> None:
    server = start_server(adds_up)
    config = command.directory / "evenhand.toml"
    config.write_text('criteria = ["accuracy"]\nmax_calls = 6\n')
    ran = command("run", "pairs.jsonl", *judged_by(server.url))
    assert (ran.code, len(server.requests)) == (5, 6)
    # What the command says wins: eight more.
    ran = command("run", "pairs.jsonl", *judged_by(server.url), "--max-calls", "8")
    assert (ran.code, len(server.requests)) == (5, 14)
