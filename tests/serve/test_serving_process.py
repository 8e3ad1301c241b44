"""`evenhand serve` as a process: how it starts, how it ends, and several of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.loopback import LoopbackServer, loopback_environment
from benchmarks.serve_pairs import bodies
from benchmarks.served import Served

from evenhand.cli.main import main
from evenhand.installation import install_command
from forked import ForkedCommand
from live_server import wait_until
from postgres_server import PASSWORD, PostgresServer
from run_data import sums

pytestmark = pytest.mark.slow

SECRET = "token-0123456789abcdef"
JSON = {"Content-Type": "application/json"}


class ForkedServer(Served):
    popen = ForkedCommand


@pytest.fixture(scope="module")
def judge() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer="short") as server:
        yield server


def client(served: Served, **options: Any) -> httpx.Client:
    return httpx.Client(base_url=served.url, trust_env=False, timeout=30, **options)


def compare(served: Served, *, headers: dict[str, str] | None = None) -> httpx.Response:
    body = next(bodies())
    with client(served) as asking:
        return asking.post("/v1/compare", content=body, headers=JSON | (headers or {}))


def command(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    started = [sys.executable, "-m", "evenhand", "serve", *words]
    with ForkedCommand(
        started,
        cwd=cwd,
        env=loopback_environment() | {"XDG_CONFIG_HOME": str(cwd / "no-config")} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(started, process.returncode, out, err)


def test_it_says_where_it_is_answers_and_ends_in_good_order(
    judge: LoopbackServer, tmp_path: Path
) -> None:
    with Served(judge.url, tmp_path) as served:
        assert served.url.startswith("http://127.0.0.1:")
        answer = compare(served)
        assert answer.json()["winner"] == "A"
    assert served.code == 0
    assert "judges: openai:bench; no token needed" in served.log
    assert "POST /v1/compare 200" in served.log
    assert "tide" not in served.log


def test_a_port_in_use_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ("--judge", "baseline:longer", "--port", port, "--store", "s.db")
        ended = command(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert f"cannot listen on port {port} of 127.0.0.1 (Address already in use)" in ended.stderr


def test_it_refuses_to_listen_where_others_reach_it_without_a_token(tmp_path: Path) -> None:
    ended = command("--judge", "baseline:longer", "--host", "0.0.0.0", cwd=tmp_path)
    assert ended.returncode == 2
    assert "no token is set; set EVENHAND_TOKEN" in ended.stderr


@pytest.mark.parametrize(
    "line",
    [
        'base_url = "http://127.0.0.1:1/v1"',
        'template = "evil.txt"',
        'api_key = "sk-evil-evil-evil"',
        'store = "evil.db"',
        'judge = "replay:evil.jsonl"',
    ],
)
def test_it_does_not_start_on_a_config_file_that_lies_in_wait(tmp_path: Path, line: str) -> None:
    """Somebody's checkout, and the server started inside of it."""
    (tmp_path / "evenhand.toml").write_text(line, encoding="utf-8")
    (tmp_path / "evil.txt").write_text("{prompt}", encoding="utf-8")
    ended = command("--judge", "openai:m", "--port", "0", cwd=tmp_path, OPENAI_API_KEY="sk-mine")
    assert ended.returncode == 2
    assert "evenhand.toml" in ended.stderr
    assert not (tmp_path / "evil.db").exists()


def test_a_judge_that_is_none_says_so_before_it_listens(tmp_path: Path) -> None:
    note = command("--judge", "baseline:nothing", "--port", "0", cwd=tmp_path)
    assert note.returncode == 2
    assert note.stdout == ""


def test_a_judges_caveat_is_said_at_the_start(tmp_path: Path, judge: LoopbackServer) -> None:
    options = ("--judge", "baseline:longer")
    with ForkedServer(judge.url, tmp_path, options=options) as served:
        pass
    assert "note  baseline:longer: " in served.log


def test_without_the_extra_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.setattr(sys, "argv", ["evenhand", "serve", "--judge", "baseline:longer"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert install_command("serve") in capsys.readouterr().err


class Asking(threading.Thread):
    """A request in flight."""

    def __init__(self, served: Served) -> None:
        super().__init__(daemon=True)
        self._served = served
        self.answer: httpx.Response | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = compare(self._served)
        except httpx.HTTPError as error:
            self.error = error


@pytest.mark.parametrize(
    ("sent", "workers"),
    [
        (signal.SIGTERM, 1),
        (signal.SIGINT, 1),
        (signal.SIGTERM, 2),
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow),
    ],
)
def test_what_is_in_flight_is_finished_at_the_end(
    tmp_path: Path, sent: signal.Signals, workers: int
) -> None:
    with LoopbackServer(answer="short", delay_ms=1500) as judge:
        options = ("--workers", str(workers))
        with ForkedServer(judge.url, tmp_path, options=options) as served:
            asking = Asking(served)
            assert wait_until(lambda: judge.count().waiting == 2)
            served.signal(sent)
            asking.join(20)
            assert asking.answer is not None
            assert asking.answer.json()["winner"] == "A"
            assert wait_until(lambda: not served.running)
        assert served.code == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, workers: int) -> None:
    with LoopbackServer(answer="short", delay_ms=60_000) as judge:
        options = ("--workers", str(workers))
        with ForkedServer(judge.url, tmp_path, options=options) as served:
            asking = Asking(served)
            assert wait_until(lambda: judge.count().waiting == 2)
            served.signal(signal.SIGTERM)
            assert wait_until(lambda: _refuses(served.port))
            assert served.running
            served.signal(signal.SIGTERM)
            assert wait_until(lambda: not served.running)
            asking.join(20)
            assert asking.answer is None
        assert served.code == 130


def test_what_does_not_end_in_time_is_ended(tmp_path: Path) -> None:
    with LoopbackServer(answer="short", delay_ms=60_000) as judge:
        with ForkedServer(judge.url, tmp_path, limits={"shutdown_s": 1}) as served:
            asking = Asking(served)
            assert wait_until(lambda: judge.count().waiting == 2)
            served.signal(signal.SIGTERM)
            assert wait_until(lambda: not served.running)
            asking.join(20)
            assert asking.answer is None or asking.answer.status_code >= 500
        assert served.code == 0


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return True
    return False


def workers_of(pid: int) -> set[int]:
    """The server processes among its children; Python's resource tracker is another."""
    found = set()
    for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = Path(f"/proc/{each}/cmdline").read_bytes()
        if b"spawn_main" in words:
            found.add(int(each))
    return found


def test_workers_share_a_rate_limit_and_add_up_their_metrics(
    judge: LoopbackServer, tmp_path: Path
) -> None:
    bearer = {"Authorization": f"Bearer {SECRET}"}
    with ForkedServer(
        judge.url,
        tmp_path,
        limits={"requests_per_minute": 12, "failures_per_minute": 1},
        options=("--workers", "3"),
        environment={"EVENHAND_TOKEN": f"ci={SECRET}"},
    ) as served:
        statuses = [compare(served, headers=bearer).status_code for _ in range(11)]
        assert statuses == [200] * 11
        with client(served) as asking:
            text = asking.get("/metrics", headers=bearer).text
        assert 'evenhand_comparisons_total{judge="openai:bench",outcome="win"} 11.0' in text
        assert compare(served, headers=bearer).status_code == 429
        wrong = {"Authorization": "Bearer wrong"}
        statuses = [compare(served, headers=wrong).status_code for _ in range(8)]
        assert statuses == [401] + [429] * 7
    assert served.code == 0


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(judge: LoopbackServer, tmp_path: Path) -> None:
    with ForkedServer(judge.url, tmp_path, options=("--workers", "2")) as served:
        before = workers_of(served.pid)
        assert len(before) == 2
        assert wait_until(lambda: served.cpu_s() >= 0)
        _age()
        os.kill(min(before), signal.SIGKILL)
        assert wait_until(lambda: len(workers_of(served.pid) - before) == 1, within_s=30)
        assert wait_until(lambda: compare(served).status_code == 200)
    assert served.code == 0


def _age() -> None:
    """A worker that dies in its first seconds is taken for one that cannot start."""
    threading.Event().wait(5.2)


def test_workers_do_not_outlive_a_parent_that_was_killed(
    judge: LoopbackServer, tmp_path: Path
) -> None:
    with ForkedServer(judge.url, tmp_path, options=("--workers", "2")) as served:
        workers = workers_of(served.pid)
        served.signal(signal.SIGKILL)
        assert wait_until(lambda: not any(_alive(pid) for pid in workers), within_s=30)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_log_is_json_where_it_is_wanted(judge: LoopbackServer, tmp_path: Path) -> None:
    with ForkedServer(judge.url, tmp_path, options=("--log-json",)) as served:
        assert compare(served).status_code == 200
    lines = [json.loads(line) for line in served.log.splitlines() if line.startswith("{")]
    (told,) = [line for line in lines if line.get("path") == "/v1/compare"]
    assert (told["status"], told["method"], told["client"]) == (200, "POST", "127.0.0.1")


def judged_by_workers(served: Served) -> dict[str, Any]:
    """A run started at whichever worker, told by all of them until it is at rest."""
    rows = sums(20, criteria=["accuracy"])
    with client(served) as asking:
        started = asking.post("/v1/runs", json={"pairs": rows})
    assert started.status_code == 202, started.text
    told: dict[str, Any] = {}

    def finished() -> bool:
        with client(served) as asking:  # a connection each time, so another worker perhaps
            told.update(asking.get(f"/v1/runs/{started.json()['id']}").json())
        return bool(told["state"] == "finished")

    assert wait_until(finished, within_s=60)
    return told


def test_workers_judge_runs_over_one_sqlite_store(judge: LoopbackServer, tmp_path: Path) -> None:
    judge.reset()
    with ForkedServer(judge.url, tmp_path, options=("--workers", "2")) as served:
        told = judged_by_workers(served)
    assert (told["pairs"], told["done"], told["calls"]) == (20, 20, 40)
    assert judge.count().requests == 40
    assert served.code == 0


def test_workers_judge_runs_over_one_postgresql_store(
    judge: LoopbackServer, tmp_path: Path, fresh_database: str, postgres: PostgresServer
) -> None:
    judge.reset()
    options = ("--workers", "2", "--store", fresh_database)
    with ForkedServer(judge.url, tmp_path, options=options) as served:
        told = judged_by_workers(served)
    assert (told["pairs"], told["done"], told["calls"]) == (20, 20, 40)
    assert judge.count().requests == 40


def test_a_stores_password_is_in_no_line_of_a_server_that_cannot_open_it(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    wrong = "wrong-password-of-the-store"
    store = postgres.loopback_url("postgres", wrong)
    words = ("--judge", "baseline:longer", "--port", "0", "--store", store)
    ended = command(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr
    for secret in (wrong, PASSWORD):
        assert secret not in ended.stderr + ended.stdout
