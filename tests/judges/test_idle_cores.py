"""How many threads a model gets: idle cores, within what the process was given."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evenhand.judges import llama_server as room
from evenhand.judges.llama_server import allowed_cores, idle_cores, threads_for_a_model

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@contextmanager
def counted(stat: Path, *, idle_after: int) -> Iterator[None]:
    """A system whose cores were idle for so many ticks more, a moment later."""
    stat.write_text("cpu  10 0 10 500 20 0 0 0 0 0\ncpu0 1 1 1 1\n")

    def later() -> None:
        stat.write_text(f"cpu  90 0 90 {500 + idle_after} 20 0 0 0 0 0\ncpu0 1 1 1 1\n")

    timer = threading.Timer(0.05, later)
    timer.start()
    yield
    timer.join()


@LINUX
def test_idle_time_is_shared_out_over_the_moment(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    ticks = os.sysconf("SC_CLK_TCK")
    with counted(stat, idle_after=3 * ticks):
        found = idle_cores(1.0, stat)
    # Three seconds of idle cores in a second, or in somewhat more on a slow machine.
    assert found is not None
    assert 0 < found <= 3


@pytest.mark.parametrize("told", ["", "cpu 1 2 3", "cpu a b c d e f", None])
def test_system_that_does_not_tell_is_not_guessed(tmp_path: Path, told: str | None) -> None:
    stat = tmp_path / "stat"
    if told is not None:
        stat.write_text(told)
    assert idle_cores(0, stat) is None


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 8), ("200000 100000", 2), ("50000 100000", 1), ("6400000 100000", 8), ("", 8)],
)
def test_a_containers_quota_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    assert allowed_cores(file) == cores


@LINUX
def test_affinity_counts(tmp_path: Path) -> None:
    asked = "from evenhand.judges.llama_server import allowed_cores; print(allowed_cores())"
    one = f"import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); {asked}"
    ran = subprocess.run([sys.executable, "-c", one], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "1"


@pytest.mark.parametrize(
    ("cores", "idle", "threads"),
    [
        (8, 7.9, None),  # nothing else is going on: as the model has it
        (8, 5.2, 5),
        (8, 0.1, 1),
        (2, 0.9, 1),
        (2, 1.8, None),
        (8, None, None),
        (1, 0.0, None),
    ],
)
def test_a_thread_for_each_idle_core(
    monkeypatch: pytest.MonkeyPatch, cores: int, idle: float | None, threads: int | None
) -> None:
    monkeypatch.setattr(room, "allowed_cores", lambda: cores)
    monkeypatch.setattr(room, "idle_cores", lambda _: idle)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert threads_for_a_model() == threads


def test_no_more_threads_than_the_container_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "allowed_cores", lambda: 2)
    monkeypatch.setattr(room, "idle_cores", lambda _: 60.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert threads_for_a_model() == 2
