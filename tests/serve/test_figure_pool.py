"""Figures of large runs come from a process of their own: the same figures, the same errors, and no
process stays behind."""

from __future__ import annotations

import asyncio
import multiprocessing
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.analyses.registry import AUDIT, CALIBRATE, DIFF, PROBE, RANK, REPORT, VOTES
from evenhand.analysis_options import (
    AuditOptions,
    CalibrateOptions,
    DiffOptions,
    RankOptions,
    ReportOptions,
    VotesOptions,
)
from evenhand.errors import InputError, NotFound, ServerBusy
from evenhand.serve import figure_pool, figures, reports
from evenhand.serve.figure_pool import FigurePool
from evenhand.serve.figures import CachedFigure, Figure, FigureCache
from evenhand.store import RunRecord, Store
from stored_runs import Row, make_run, opened, says

_WAIT_S = 30.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    rows = [
        Row(
            f"q{n}",
            says("A" if n % 3 else "B"),
            label="A" if n % 4 else "B",
            model_a="ada",
            model_b="bob",
            tags=("maths",),
        )
        for n in range(24)
    ]
    with opened(tmp_path_factory.mktemp("apart")) as store:
        make_run(store, "one", rows)
        make_run(store, "two", rows[:12])
        yield store


def sleeps(store: Store, runs: Sequence[RunRecord]) -> Any:
    time.sleep(_WAIT_S)


def report(run: str = "1") -> Figure[Any]:
    return reports.analysed(REPORT, (run,), ReportOptions())


def is_killed(store: Store, runs: Sequence[RunRecord]) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def prints(store: Store, runs: Sequence[RunRecord]) -> Any:
    os.write(1, b"a library's progress bar")
    return report().now(store)


@pytest.fixture
def pool(store: Store) -> Iterator[FigurePool]:
    pool = FigurePool(store.address)
    yield pool
    pool.close()


def with_compute(compute: Any) -> Figure[Any]:
    return replace(report(), compute=compute)


def test_it_is_the_figure_that_this_process_would_compute(store: Store, pool: FigurePool) -> None:
    figure = report()
    assert pool.compute(figure) == figure.body(store)


def votes(run_id: str) -> Figure[Any]:
    return reports.analysed(VOTES, (run_id,), VotesOptions())


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure",
    [
        reports.totals("1"),
        report(),
        reports.run_overview("1"),
        reports.analysed(RANK, ("1", "2"), RankOptions()),
        reports.analysed(AUDIT, ("1",), AuditOptions(against="2")),
        reports.analysed(DIFF, ("1", "2"), DiffOptions()),
        reports.analysed(CALIBRATE, ("1",), CalibrateOptions()),
        reports.analysed(PROBE, ("1",), PROBE.options()),
        votes("1"),
    ],
    ids=lambda figure: figure.name,
)
def test_every_figure_can_be_sent_and_comes_back_the_same(
    store: Store, pool: FigurePool, figure: Figure[Any]
) -> None:
    def ended(compute: Callable[[], bytes]) -> tuple[type, str | bytes]:
        try:
            return bytes, compute()
        except InputError as error:
            return type(error), error.message

    assert ended(lambda: pool.compute(figure)) == ended(lambda: figure.body(store))


def test_what_cannot_be_computed_is_the_same_error(store: Store, pool: FigurePool) -> None:
    with pytest.raises(NotFound) as raised:
        pool.compute(report("77"))
    assert "77" in raised.value.message
    with pytest.raises(NotFound) as here:
        report("77").now(store)
    assert (raised.value.message, vars(raised.value)) == (here.value.message, vars(here.value))


@pytest.mark.slow
def test_a_mistake_of_ours_comes_back(pool: FigurePool) -> None:
    with pytest.raises(TypeError, match="unsupported operand type"):
        pool.compute(with_compute(operator.sub))


@pytest.mark.slow
def test_a_process_that_the_system_ends_leaves_the_server_and_says_so(
    pool: FigurePool, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(
        ServerBusy, match=r"ended, perhaps because memory ran out; try again"
    ) as busy:
        pool.compute(with_compute(is_killed))
    assert busy.value.retryable
    assert "terminated abruptly" in caplog.text
    assert pool.compute(with_compute(prints)).startswith(b"{")


@pytest.fixture
def without_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def start(program: str) -> None:
        multiprocessing.set_executable(program)

    yield start
    multiprocessing.set_executable(sys.executable)


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/python"])
def test_a_process_that_does_not_begin_says_so_too(
    pool: FigurePool, without_python: Callable[[str], None], program: str
) -> None:
    without_python(program)
    with pytest.raises(ServerBusy, match="ended, perhaps because memory ran out"):
        pool.compute(report())


async def test_where_no_process_can_be_started_the_server_computes_itself(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert figure_pool.can_start()
    monkeypatch.setattr(figures, "LARGE", 0)
    cache = FigureCache(store)
    for name, value in (("executable", ""), ("executable", None), ("frozen", True)):
        with monkeypatch.context() as patched:
            patched.setattr(sys, name, value, raising=False)
            assert not figure_pool.can_start()
            assert cache.now(report()).run.run == "one"


def test_another_version_on_the_disk_computes_nothing(
    pool: FigurePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_pool, "__version__", "0.0.1")
    with pytest.raises(ServerBusy, match=r"was upgraded from 0\.0\.1 to .*; restart it"):
        pool.compute(report())


def test_processes_end_with_the_server_that_asked(pool: FigurePool) -> None:
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            pool.compute(with_compute(sleeps))
        except ServerBusy as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    until(multiprocessing.active_children)
    begun = time.monotonic()
    pool.close()
    thread.join(_WAIT_S)
    assert failed
    assert time.monotonic() - begun < _WAIT_S / 2
    until(lambda: not multiprocessing.active_children())
    with pytest.raises(ServerBusy):
        pool.compute(report())


def test_processes_end_once_nothing_is_left_to_compute(pool: FigurePool) -> None:
    pool.compute(report())
    until(lambda: not multiprocessing.active_children())
    assert pool.compute(report()).startswith(b"{")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="looks for processes in /proc")
def test_a_killed_server_takes_its_processes_along(store: Store, tmp_path: Path) -> None:
    asks = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import os, subprocess\n"
        "from test_figure_pool import sleeps, with_compute\n"
        "from evenhand.serve.figure_pool import FigurePool\n"
        f"FigurePool({store.address!r}).compute(with_compute(sleeps))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", asks], cwd=tmp_path)
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    until(lambda: children.read_text().split())
    begun = children.read_text().split()
    parent.kill()
    parent.wait()
    until(lambda: not any(map(_lives, begun)))


async def test_large_runs_and_they_alone_are_computed_apart(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    compute = FigurePool.compute

    def noted(pool: FigurePool, figure: Figure[Any]) -> bytes:
        asked.append(figure.name)
        return compute(pool, figure)

    monkeypatch.setattr(FigurePool, "compute", noted)
    cache = FigureCache(store)
    here = cache.now(votes("1"))
    assert asked == []
    monkeypatch.setattr(figures, "LARGE", 23)
    assert cache.now(votes("1")) == here  # it was kept
    forget(store)
    assert await asyncio.to_thread(cache.now, votes("1")) == here
    assert asked == ["votes"]
    cache.now(votes("2"))
    cache.now(reports.totals("1"))  # the database counts
    assert asked == ["votes"]


def forget(store: Store) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM figures")


async def test_the_cache_keeps_what_the_process_came_to(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "LARGE", 0)
    forget(store)
    cache = FigureCache(store)
    try:
        kept = await _settled(cache, reports.run_overview("1"))
        assert kept.value == reports.run_overview("1").now(store)
        failed = await _settled(cache, with_compute(is_killed))
        assert failed.error is not None
        assert failed.error.retryable
        assert "ended, perhaps because memory ran out" in failed.error.message
    finally:
        await cache.close()


async def _settled(cache: FigureCache, figure: Figure[Any]) -> CachedFigure[Any]:
    async with asyncio.timeout(_WAIT_S):
        while True:
            kept = await cache.get(figure)
            if kept.value is not None or kept.error is not None:
                return kept
            await asyncio.sleep(0.05)


def until(fact: Any) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
