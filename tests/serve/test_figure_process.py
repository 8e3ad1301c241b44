"""Figures of large runs come from a process of their own: the same figures, the same errors, and no
process stays behind."""

from __future__ import annotations

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

from evenhand.errors import InputError, NotFound, ServerBusy
from evenhand.serve import figure_process, report_cache, reports
from evenhand.serve.figure_process import FigureBug, compute_apart, end_processes
from evenhand.serve.report_cache import Figure, ReportCache, cached_or_now
from evenhand.serve.values import AuditRun, DiffRuns, RankRuns
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


def is_killed(store: Store, runs: Sequence[RunRecord]) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def prints(store: Store, runs: Sequence[RunRecord]) -> Any:
    os.write(1, b"a library's progress bar")
    return reports.run_report("1").now(store)


def with_compute(compute: Any) -> Figure[Any]:
    return replace(reports.run_report("1"), compute=compute)


def test_it_is_the_figure_that_this_process_would_compute(store: Store) -> None:
    figure = reports.conclusions("1")
    assert compute_apart(store, figure) == figure.body(store)


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure",
    [
        *reports.usual_figures("1"),
        reports.run_overview("1"),
        reports.ranking(RankRuns(runs=("1", "2"))),
        reports.audit(AuditRun(run="1", against="2")),
        reports.diff("1", DiffRuns(against="2")),
        reports.calibration("1", None),
        reports.probes("1", ()),
        reports.votes("1"),
    ],
    ids=lambda figure: figure.what,
)
def test_every_figure_can_be_sent_and_comes_back_the_same(
    store: Store, figure: Figure[Any]
) -> None:
    def ended(compute: Callable[[], bytes]) -> tuple[type, str | bytes]:
        try:
            return bytes, compute()
        except InputError as error:
            return type(error), error.message

    assert ended(lambda: compute_apart(store, figure)) == ended(lambda: figure.body(store))


def test_what_cannot_be_computed_is_the_same_error(store: Store) -> None:
    with pytest.raises(NotFound) as raised:
        compute_apart(store, reports.run_report("77"))
    assert "77" in raised.value.message
    with pytest.raises(NotFound) as here:
        reports.run_report("77").now(store)
    assert (raised.value.message, vars(raised.value)) == (here.value.message, vars(here.value))


@pytest.mark.slow
def test_a_mistake_of_ours_comes_back_with_its_traceback(store: Store) -> None:
    with pytest.raises(FigureBug, match="unsupported operand type"):
        compute_apart(store, with_compute(operator.sub))


@pytest.mark.slow
def test_a_process_that_the_system_ends_leaves_the_server_and_says_so(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ServerBusy, match=r"was killed, perhaps for want of memory; try again"):
        compute_apart(store, with_compute(is_killed))
    assert "ended with code -9" in caplog.text
    assert compute_apart(store, with_compute(prints)).startswith(b"{")


def test_a_process_that_does_not_begin_says_so_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(sys, "path", [*sys.path, "x" * 1_000_000])  # more than a pipe holds
    with pytest.raises(ServerBusy, match="ended with code 1"):
        compute_apart(store, reports.run_report("1"))


def test_where_no_process_can_be_started_the_server_says_so_or_computes_itself(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ServerBusy, match="ended with code 2; try again later"):
        compute_apart(store, reports.run_report("1"))
    assert "no process could be started" in caplog.text
    assert figure_process.can_start()
    monkeypatch.setattr(report_cache, "LARGE", 0)
    for name, value in (("executable", ""), ("executable", None), ("frozen", True)):
        with monkeypatch.context() as patched:
            patched.setattr(sys, name, value, raising=False)
            assert not figure_process.can_start()
            assert cached_or_now(store, reports.run_report("1")).run == "one"


def test_another_version_on_the_disk_computes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure_process, "__version__", "0.0.1")
    with pytest.raises(ServerBusy, match=r"was upgraded from 0\.0\.1 to .*; restart it"):
        compute_apart(store, reports.run_report("1"))


def test_processes_end_with_the_server_that_asked(store: Store) -> None:
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            compute_apart(store, with_compute(sleeps))
        except ServerBusy as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: figure_process._running.get(store))
    begun = time.monotonic()
    end_processes(store)
    thread.join(_WAIT_S)
    assert failed
    assert time.monotonic() - begun < _WAIT_S / 2
    assert not figure_process._running[store]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="looks for processes in /proc")
def test_a_killed_server_takes_its_processes_along(store: Store, tmp_path: Path) -> None:
    asks = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import os, subprocess\n"
        "from test_figure_process import sleeps, with_compute\n"
        "from evenhand.serve.figure_process import compute_apart\n"
        "from evenhand.store import open_store\n"
        f"compute_apart(open_store({store.address!r}), with_compute(sleeps))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", asks], cwd=tmp_path)
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    until(lambda: children.read_text().split())
    (child,) = children.read_text().split()
    parent.kill()
    parent.wait()
    until(lambda: not _lives(child))


def test_large_runs_and_they_alone_are_computed_apart(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def noted(store: Store, figure: Figure[Any]) -> bytes:
        asked.append(figure.what)
        return compute_apart(store, figure)

    monkeypatch.setattr(report_cache, "compute_apart", noted)
    here = cached_or_now(store, reports.votes("1"))
    assert asked == []
    monkeypatch.setattr(report_cache, "LARGE", 23)
    assert cached_or_now(store, reports.votes("1")) == here
    assert asked == ["people's votes"]
    cached_or_now(store, reports.votes("2"))
    cached_or_now(store, reports.totals("1"))  # the database counts
    assert asked == ["people's votes"]


async def test_the_cache_keeps_what_the_process_came_to(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_cache, "LARGE", 0)
    cache = ReportCache(store)
    try:
        await cache.prepare([reports.run_overview("1"), with_compute(is_killed)])
        kept = await cache.get(reports.run_overview("1"))
        assert kept.value == reports.run_overview("1").now(store)
        failed = await cache.get(with_compute(is_killed))
        assert failed.error is not None
        assert failed.error.retryable
        assert "want of memory" in failed.error.message
    finally:
        await cache.close()


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
