"""Kill -9 in the middle of a background run: the next server goes on, nothing is there twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.loopback import loopback_environment
from sqlalchemy import func, select

from evenhand.store import open_store
from evenhand.store.schema import answers, passes, verdicts
from run_data import adds_up, sums, wins_b
from servers import JudgeServer, SeenRequest, Slow, StartServer, chat_reply, start_server

__all__ = ["start_server"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills by SIGKILL")

PAIRS = 200


def takes_its_time(request: SeenRequest) -> Slow:
    return Slow(0.02, adds_up(request))


class Serving:
    """`evenhand serve` in a process group of its own."""

    def __init__(self, judge: JudgeServer, store: str, folder: Path, *, workers: int = 1) -> None:
        words = ["--judge", "openai:loopback", "--base-url", judge.url, "--store", store]
        words += ["--port", "0", "--workers", str(workers)]
        self._log = (folder / "serve.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evenhand", "serve", *words],
            cwd=folder,
            env=loopback_environment() | {"XDG_CONFIG_HOME": str(folder / "no-config")},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        url = self.process.stdout.readline().strip()
        self.client = httpx.Client(base_url=url, trust_env=False, timeout=30)
        if not url:
            self.leave()
            raise AssertionError((folder / "serve.log").read_text("utf-8"))

    def kill(self) -> None:
        """All of its processes at once, as a power cut would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.leave()

    def end(self) -> int:
        self.process.terminate()
        return self.leave()

    def leave(self) -> int:
        code = self.process.wait(120)
        self.client.close()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
        return code

    def start_run(self, rows: list[Any]) -> str:
        answer = self.client.post("/v1/runs", json={"pairs": rows, "criteria": ["accuracy"]})
        assert answer.status_code in (200, 202), answer.text
        run_id: str = answer.json()["id"]
        return run_id

    def status(self, run_id: str) -> dict[str, Any]:
        answer = self.client.get(f"/v1/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told


@contextmanager
def serving(judge: JudgeServer, store: str, folder: Path, *, workers: int = 1) -> Iterator[Serving]:
    server = Serving(judge, store, folder, workers=workers)
    try:
        yield server
    except BaseException:
        sys.stderr.write((folder / "serve.log").read_text("utf-8"))  # shown with the failure
        raise
    finally:
        if server.process.poll() is None:
            server.kill()
        else:
            server.leave()


def wait_until(fact: Callable[[], bool], *, within_s: float = 120) -> None:
    deadline = time.monotonic() + within_s
    while not fact():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.02)


def stored(store: str) -> tuple[int, int]:
    """Passes and verdicts."""
    with open_store(store) as opened, opened.reading() as connection:
        counts = [
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (passes, verdicts)
        ]
    return counts[0], counts[1]


@pytest.mark.slow
def test_a_run_outlives_every_kill_of_its_server(
    start_server: StartServer, address: str, tmp_path: Path
) -> None:
    judge = start_server(takes_its_time)
    run_id = ""
    lost = 0
    for calls in (60, 150, 260):
        with serving(judge, address, tmp_path) as server:
            run_id = run_id or server.start_run(sums(PAIRS))
            wait_until(lambda calls=calls: len(judge.requests) >= calls)  # type: ignore[misc]
            server.kill()
        judge.wait_until_idle()
        # In flight is what the judge has seen and the store has not.
        lost = len(judge.requests) - stored(address)[0]
    with serving(judge, address, tmp_path) as server:
        wait_until(lambda: server.status(run_id)["state"] == "finished")
        status = server.status(run_id)
        assert server.start_run(sums(PAIRS)) == run_id  # and the same data is still the same run
        assert server.end() == 0
    assert (status["done"], status["pending"], status["invalid"]) == (PAIRS, 0, 0)
    assert (status["winsA"], status["winsB"]) == (PAIRS - wins_b(PAIRS), wins_b(PAIRS))
    assert stored(address) == (2 * PAIRS, PAIRS)
    assert 2 * PAIRS <= len(judge.requests) <= 2 * PAIRS + lost


@pytest.mark.slow
def test_no_stored_answer_is_asked_for_again_after_a_kill_among_answers(
    start_server: StartServer, address: str, tmp_path: Path
) -> None:
    """Two system prompts make two sides of one model: 2 answers a prompt, then 2 passes."""

    def model_or_judge(request: SeenRequest) -> Slow:
        asked = re.search(r"What is (\d+) plus", request.prompt)
        assert asked is not None
        if "Response A" in request.prompt:
            return takes_its_time(request)
        n, is_a = int(asked[1]), "Side A." in request.prompt
        said = 2 * n + ((n % 3 == 0) == is_a)
        return Slow(0.02, chat_reply(f"It is {said}, by counting."))

    judge = start_server(model_or_judge)
    rows = [{"id": row["id"], "prompt": row["prompt"]} for row in sums(PAIRS)]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    query = {"criteria": "accuracy", "modelA": "openai:loopback", "modelB": "openai:loopback"}
    query |= {"systemA": "Side A.", "systemB": "Side B."}
    form = {"file": ("prompts.jsonl", lines)}
    run_id = ""
    lost = 0
    for calls in (60, 200, 330):
        with serving(judge, address, tmp_path) as server:
            if not run_id:
                answer = server.client.post("/v1/runs", params=query, files=form)
                assert answer.status_code == 202, answer.text
                run_id = answer.json()["id"]
            wait_until(lambda calls=calls: len(judge.requests) >= calls)  # type: ignore[misc]
            assert server.status(run_id)["state"] in ("queued", "answering")
            server.kill()
        judge.wait_until_idle()
        lost = len(judge.requests) - stored_answers(address)
    with serving(judge, address, tmp_path) as server:
        wait_until(lambda: server.status(run_id)["state"] == "finished")
        status = server.status(run_id)
        assert server.end() == 0
    assert (status["pairs"], status["done"], status["skippedRows"]) == (PAIRS, PAIRS, 0)
    assert (status["winsA"], status["winsB"]) == (PAIRS - wins_b(PAIRS), wins_b(PAIRS))
    assert (stored_answers(address), stored(address)) == (2 * PAIRS, (2 * PAIRS, PAIRS))
    assert 4 * PAIRS <= len(judge.requests) <= 4 * PAIRS + lost


def stored_answers(store: str) -> int:
    with open_store(store) as opened, opened.reading() as connection:
        return connection.execute(select(func.count()).select_from(answers)).scalar_one()


@pytest.mark.slow
def test_a_run_goes_on_when_its_worker_dies(
    start_server: StartServer, address: str, tmp_path: Path
) -> None:
    judge = start_server(takes_its_time)
    with serving(judge, address, tmp_path, workers=2) as server:
        run_id = server.start_run(sums(PAIRS))
        wait_until(lambda: len(judge.requests) >= 100)
        # Whichever has the run: both are killed, one after the other, and started again.
        for worker in workers_of(server.process.pid):
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: state(server, run_id) == "finished")
        assert server.process.poll() is None  # however soon after its start they were killed
        assert server.end() == 0
    assert stored(address) == (2 * PAIRS, PAIRS)


def state(server: Serving, run_id: str) -> str | None:
    """None while nobody answers."""
    assert server.process.poll() is None, "the server ended with its workers"
    try:
        told: str = server.status(run_id)["state"]
    except httpx.HTTPError:
        return None
    return told


def workers_of(parent: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(None, 1) for line in listed.stdout.splitlines()]
    return [int(pid) for pid, words in lines if "resource_tracker" not in words]
