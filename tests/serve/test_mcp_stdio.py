"""`evenhand mcp` as a process of its own: the official client, and a pipe that is not so polite."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from command_line import start_command
from door_server import knows_56
from evenhand import tools
from mcp_clients import (
    HELLO,
    MODES,
    PAIR,
    READY,
    Mode,
    Pipe,
    a_pipe,
    by_pipe,
    call,
    checked,
    refused,
)
from run_data import adds_up, sums
from servers import Slow, StartServer, chat_reply, error_reply, start_server

__all__ = ["start_server"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_lists_the_tools_and_compares(
    mode: Mode, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    with (tmp_path / "log").open("w") as log:
        async with by_pipe(tmp_path, server.url, mode=mode, log=log) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names[0] == "pairwiseCompare"
            told = await checked(client, "pairwiseCompare", PAIR)
            assert told["winner"] == "A"
            error = await refused(client, "pairwiseCompare", PAIR | {"criteria": []})
            assert error["kind"] == "input"
            found = await checked(client, "startRun", {"pairs": [PAIR]})
            done = await checked(client, "runStatus", {"run": found["id"], "waitS": 60})
            assert done["state"] == "finished"
    assert "error" not in (tmp_path / "log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_a_failing_judge_is_a_tool_error_over_the_pipe_too(
    mode: Mode, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda _: error_reply(401, "no such key: sk-loopback-key"))
    with (tmp_path / "log").open("w") as log:
        async with by_pipe(tmp_path, server.url, mode=mode, log=log) as client:
            error = await refused(client, "pairwiseCompare", PAIR)
    assert error["kind"] == "judge_authentication"
    assert "sk-loopback-key" not in error["message"]
    # Who starts this command chose the judge, and is told where it was asked.
    assert f"127.0.0.1:{server.port}" in error["message"]


@pytest.mark.slow
def test_requests_before_the_end_of_the_input_are_answered_and_nothing_else_is_said(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda request: Slow(0.3, knows_56(request)))
    with a_pipe(tmp_path, server.url) as pipe:
        pipe.write(HELLO, READY, call(1, "pairwiseCompare", PAIR))
        code, answers, log = pipe.close()
    assert code == 0
    assert [answer["id"] for answer in answers] == [0, 1]
    assert answers[0]["result"]["serverInfo"]["name"] == "evenhand"
    result = answers[1]["result"]
    Draft202012Validator(tools.output_schema()).validate(result["structuredContent"])
    assert result["structuredContent"]["winner"] == "A"
    assert log == ""


@pytest.mark.slow
def test_line_ends_of_windows_blank_lines_and_a_last_line_without_end_do_no_harm(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    with a_pipe(tmp_path, server.url) as pipe:
        pipe.write(HELLO, b"", b"   ", READY, call("x", "pairwiseCompare", PAIR), end=b"\r\n")
        pipe.write({"jsonrpc": "2.0", "id": "last", "method": "ping"}, end=b"")
        code, answers, _ = pipe.close()
    assert code == 0
    assert {answer["id"] for answer in answers} == {0, "x", "last"}
    assert all("result" in answer for answer in answers)


def test_what_is_no_message_is_answered_and_the_next_one_is_served(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    config = tmp_path / "server.toml"
    config.write_text("[limits]\nbody_bytes = 100000\n")
    with a_pipe(tmp_path, server.url, "--config", str(config)) as pipe:
        pipe.write(HELLO, READY)
        assert pipe.read()["id"] == 0
        for line, number, code in (
            (b"{", None, -32700),
            (b"\xff\xfe nonsense", None, -32700),
            (b"[" * 50_000, None, -32700),
            (b"[]", None, -32600),
            (b'{"id": 7}', 7, -32600),
            (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "method": "x"}', None, -32600),
            (b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}', None, -32600),
            (b'{"jsonrpc": "2.0", "id": 8, "method": "no/such/thing"}', 8, -32601),
            (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {}}', 9, -32602),
            (b'"' + b"x" * 300_000 + b'"', None, -32600),
        ):
            pipe.write(line)
            told = pipe.read()
            assert (told["id"], told["error"]["code"]) == (number, code), line[:80]
            assert "Traceback" not in json.dumps(told)
        pipe.write(call(10, "pairwiseCompare", PAIR))
        assert pipe.answer_to(10)["result"]["structuredContent"]["winner"] == "A"
        assert pipe.close()[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_the_middle_of_a_comparison(
    number: signal.Signals, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda _: Slow(3600, chat_reply("late")))
    with a_pipe(tmp_path, server.url) as pipe:
        pipe.write(HELLO, READY, call(1, "pairwiseCompare", PAIR))
        assert pipe.read()["id"] == 0
        assert server.wait_until(lambda: len(server.requests) == 2)
        pipe.process.send_signal(number)
        # Its input stays open: nobody but the signal ends it.
        assert pipe.process.wait(timeout=60) == 0
        assert pipe.process.stderr is not None
        assert b"Traceback" not in pipe.process.stderr.read()
        # Whoever waits is told that nothing will come.
        assert pipe.answer_to(1)["error"]["code"] == -32000


def test_a_signal_ends_it_while_the_last_answers_are_awaited(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda _: Slow(3600, chat_reply("late")))
    with a_pipe(tmp_path, server.url) as pipe:
        pipe.write(HELLO, READY, call(1, "pairwiseCompare", PAIR))
        assert server.wait_until(lambda: len(server.requests) == 2)
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        pipe.process.stdin = None
        with pytest.raises(subprocess.TimeoutExpired):
            pipe.process.wait(timeout=1)
        pipe.process.send_signal(signal.SIGTERM)
        assert pipe.process.wait(timeout=15) == 0  # not after the 30 s in which they may come


def test_a_client_that_goes_away_without_reading_ends_it(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(knows_56)
    with a_pipe(tmp_path, server.url) as pipe:
        pipe.write(HELLO, READY)
        assert pipe.read()["id"] == 0
        assert pipe.process.stdout is not None
        pipe.process.stdout.close()
        pipe.write(call(1, "pairwiseCompare", PAIR))
        assert pipe.process.wait(timeout=60) == 0


@pytest.mark.slow
def test_a_background_run_is_saved_at_the_end_and_goes_on_at_the_next_start(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(lambda request: Slow(0.1, adds_up(request)))
    given = {"pairs": sums(60), "criteria": ["accuracy"]}
    with a_pipe(tmp_path, server.url) as pipe:
        pipe.write(HELLO, READY, call(1, "startRun", given))
        run = pipe.answer_to(1)["result"]["structuredContent"]["id"]
        assert server.wait_until(lambda: len(server.requests) > 4)
        code, _, _ = pipe.close()
        assert code == 0
    with a_pipe(tmp_path, server.url) as pipe:
        pipe.write(HELLO, READY, call(1, "runStatus", {"run": run, "waitS": 60}))
        status = pipe.answer_to(1)["result"]["structuredContent"]
        assert pipe.close()[0] == 0
    assert status["state"] == "finished"
    assert (status["done"], status["winsB"], status["invalid"]) == (60, 20, 0)
    # Two passes a pair, and none of them twice.
    assert len({request.prompt for request in server.requests}) == 120
    assert len(server.requests) == 120


def test_without_a_judge_it_starts_and_says_so(tmp_path: Path) -> None:
    process = start_command(["mcp"], tmp_path, stdin=subprocess.PIPE)
    pipe = Pipe(process)
    pipe.write(HELLO, READY, call(1, "pairwiseCompare", PAIR))
    code, answers, log = pipe.close()
    assert code == 0
    assert answers[1]["result"]["isError"] is True
    assert "this server has no judge" in answers[1]["result"]["content"][0]["text"]
    assert "no judge configured, so nothing can be compared; give --judge or --config" in log


def test_a_config_that_cannot_be_used_is_told_on_standard_error(tmp_path: Path) -> None:
    process = start_command(["mcp", "--config", "nowhere.toml"], tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert b"nowhere.toml" in err
