"""Several servers of one model on the command line: as options, in the environment, in a file."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp.test_utils import unused_port

from command_line import SUM, Command, fair, start_command
from run_data import CRITERIA, sums, wins_b, write_lines
from scripted import answer_json
from servers import JudgeServer, Reply, SeenRequest, StartServer, chat_reply, error_reply

JUDGE = ("--judge", "openai:m")
WITHIN_S = 120

# A server that can be killed as nothing else can: a process of its own. It tells its port, and
# when it has been asked some times.
SERVER = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from run_data import adds_up
from servers import JudgeServer, Slow
def answer(request):
    if request.count == 40:
        print("asked", flush=True)
    return Slow(0.01, adds_up(request))
with JudgeServer(answer) as server:
    print(server.port, flush=True)
    threading.Event().wait()
"""


def right(request: SeenRequest) -> Reply:
    """A judge that knows doctor's own sum."""
    better = "A" if request.prompt.index("is 56") < request.prompt.index("is 54") else "B"
    return chat_reply(answer_json(better, criteria=[("accuracy", better)]))


def addresses(*servers: JudgeServer | str) -> list[str]:
    urls = [each if isinstance(each, str) else each.url for each in servers]
    return [part for url in urls for part in ("--base-url", url)]


def nobody() -> str:
    return f"http://127.0.0.1:{unused_port()}/v1"


def test_a_comparison_goes_past_a_server_that_is_gone(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    ran = command(*("compare", *SUM, *JUDGE, *addresses(nobody(), nobody(), server), "--json"))
    assert ran.code == 0, ran.err
    assert ran.verdict["winner"] == "A"
    assert len(server.requests) == 2


@pytest.mark.parametrize("between", [",", " ", ", ", "\n"])
def test_the_environment_may_name_several_servers(
    command: Command, start_server: StartServer, monkeypatch: pytest.MonkeyPatch, between: str
) -> None:
    server = start_server(fair)
    monkeypatch.setenv("OPENAI_BASE_URL", between.join([nobody(), server.url]))
    assert command("compare", *SUM, *JUDGE).code == 0
    assert len(server.requests) == 2


def test_the_config_file_may_name_several_servers(
    command: Command, start_server: StartServer
) -> None:
    server = start_server(fair)
    path = command.directory / "config" / "evenhand" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(f'base_url = ["{nobody()}", "{server.url}"]\n', "utf-8")
    ran = command("compare", *SUM, *JUDGE)
    assert ran.code == 0, ran.err
    assert len(server.requests) == 2


def test_servers_that_are_all_gone_are_told_in_one_line(command: Command) -> None:
    urls = [nobody(), nobody()]
    ran = command("compare", *SUM, *JUDGE, *addresses(*urls), "--retries", "0")
    assert ran.code == 3
    assert re.search(
        r"none of the 2 servers answered; the last one: cannot connect to 127\.0\.0\.1:\d+ "
        r"\(connection refused\); check that the server is running and that the base URL is "
        r"right",
        ran.err,
    )


def test_judges_that_are_no_fleets_refuse_several_addresses(command: Command) -> None:
    ran = command("compare", *SUM, "--judge", "baseline:longer", *addresses(nobody(), nobody()))
    assert ran.code == 2
    assert "baseline:longer takes one base URL, but 2 are given; only openai: judges" in ran.err


def test_a_server_named_twice_is_refused(command: Command) -> None:
    ran = command("compare", *SUM, *JUDGE, *addresses("http://a/v1", "http://a/v1/"))
    assert ran.code == 2
    assert "base URL http://a/v1 is given twice; name each server once" in ran.err


def test_doctor_looks_at_every_server(command: Command, start_server: StartServer) -> None:
    well, broken = start_server(right), start_server(lambda _: error_reply(500, "on fire"))
    gone = nobody()
    ran = command("doctor", *JUDGE, *addresses(well, broken, gone))
    assert ran.code == 3
    *_, first, second, third = ran.out.splitlines()
    assert first.startswith(f"✓ judge openai:m at {well.url} ")
    assert second.startswith(f"✗ judge openai:m at {broken.url} ")
    assert "HTTP 500: on fire" in second
    assert third.startswith(f"✗ judge openai:m at {gone} ")
    assert "cannot connect" in third


@contextmanager
def server_process() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    tests = Path(__file__).parents[1]
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(tests)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process, f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait(WITHIN_S)
        process.stdout.close()


@pytest.mark.slow
def test_a_server_killed_in_the_middle_of_a_run_is_told_of_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    count = 200
    data = write_lines(tmp_path / "pairs.jsonl", sums(count))
    with server_process() as (_, one), server_process() as (other, two):
        run = start_command(
            [
                *("run", str(data), *CRITERIA, *JUDGE, *addresses(one, two)),
                *("--store", "s.db", "--concurrency", "8", "--json"),
            ],
            tmp_path,
        )
        assert other.stdout is not None
        assert other.stdout.readline() == b"asked\n"
        other.send_signal(signal.SIGKILL)
        out, err = run.communicate(timeout=WITHIN_S)
    assert run.returncode == 0, err
    told = err.decode()
    assert f"openai:m: {two} is skipped for now: " in told
    summary = json.loads(out)
    assert (summary["pending"], summary["invalid"]) == (0, 0)
    assert (summary["winsA"], summary["winsB"]) == (count - wins_b(count), wins_b(count))
    assert any(f"{two} is skipped for now" in note for note in summary["notes"])
