"""What one machine does, measured: bytes, intake, one process, and writers to a PostgreSQL.

Rows are those of a real run against the loopback judge, written again under other judges' names.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.answers import CRITERIA
from benchmarks.generated_pairs import write_pairs
from benchmarks.loopback import LoopbackServer

from evenhand.contract import read_criteria
from evenhand.data.options import ReadOptions
from evenhand.judges.registry import JudgeOptions, open_judge
from evenhand.judging.config import JudgeConfig
from evenhand.runs import JudgePlan, Observer, PairFiles, RunOptions, judge_pairs
from evenhand.store import NewJudge, NewPass, NewVerdict, open_store
from evenhand.store.postgres import Growth
from evenhand.store.work import WorkStore

CpuClock = Callable[[], float]
TABLES = ("pairs", "items", "passes", "verdicts")
_JUDGES, _JUDGES_A_TIME = 400, 8  # names to write under; a comparison is new once for each
_IN_FLIGHT = 256


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is written for one: both passes and the verdict."""

    passes: tuple[NewPass, ...]
    verdict: NewVerdict

    def by(self, judge_id: int) -> Comparison:
        passes = tuple(each._replace(judge_id=judge_id) for each in self.passes)
        return Comparison(passes, self.verdict._replace(judge_id=judge_id))


@dataclass(frozen=True, slots=True)
class Span:
    """From one moment to another: by the clock, and of the processor, ours and the database's."""

    seconds: float
    own_cpu_s: float
    database_cpu_s: float


@dataclass(frozen=True, slots=True)
class _Moment:
    clock: float
    own_cpu: float
    database_cpu: float

    def until(self, later: _Moment) -> Span:
        return Span(
            later.clock - self.clock,
            later.own_cpu - self.own_cpu,
            later.database_cpu - self.database_cpu,
        )


@dataclass(frozen=True, slots=True)
class RunMeasured:
    """A whole run into a store: how long its two parts took, and what they left behind."""

    pairs: int
    intake: Span
    judging: Span
    comparisons: list[Comparison] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Written:
    """Writers at work at the same time; seconds of each write of each of them."""

    writers: int
    batch: int
    comparisons: int
    span: Span
    waits_s: list[float] = field(repr=False)

    @property
    def per_s(self) -> float:
        return self.comparisons / self.span.seconds

    @property
    def undisturbed_s(self) -> float:
        """A write's time while nobody else had the processor: the first tenth of them."""
        return sorted(self.waits_s)[len(self.waits_s) // 10]


def measure_run(
    folder: Path, address: str, *, pairs: int, database_cpu: CpuClock = lambda: 0.0
) -> RunMeasured:
    data = folder / "pairs.jsonl"
    write_pairs(data, pairs)
    reading = ReadOptions(criteria=read_criteria(CRITERIA))
    written: list[tuple[Sequence[NewPass], Sequence[NewVerdict]]] = []
    really = WorkStore.write

    def write(
        work: WorkStore, passes: Sequence[NewPass], verdicts: Sequence[NewVerdict], **more: Any
    ) -> None:
        written.append((passes, verdicts))
        really(work, passes, verdicts, **more)

    heard = _FirstCall(database_cpu)
    with (
        LoopbackServer(delay_ms=0) as server,
        open_store(address) as store,
        mock.patch.object(WorkStore, "write", write),
    ):
        options = JudgeOptions(base_url=f"{server.url}/v1", api_key="none")
        plan = JudgePlan(open_judge("openai:bench", options), JudgeConfig())
        run = RunOptions(name="measured", store=address, concurrency=_IN_FLIGHT)
        sources = PairFiles.of([data], reading)
        begun = _now(database_cpu)
        summary = asyncio.run(judge_pairs(sources, [plan], run, store=store, observer=heard))
        ended = _now(database_cpu)
    assert (summary.pending, summary.invalid) == (0, 0)
    assert heard.at is not None
    return RunMeasured(pairs, begun.until(heard.at), heard.at.until(ended), _joined(written))


class _FirstCall(Observer):
    def __init__(self, database_cpu: CpuClock) -> None:
        self._database_cpu = database_cpu
        self.at: _Moment | None = None

    def began(self, run: str, store: str, *, done: int, total: int) -> None:
        self.at = _now(self._database_cpu)


def _now(database_cpu: CpuClock) -> _Moment:
    return _Moment(time.monotonic(), time.process_time(), database_cpu())


def _joined(
    written: Sequence[tuple[Sequence[NewPass], Sequence[NewVerdict]]],
) -> list[Comparison]:
    """Passes by their pair, which here is one item's alone, numbered in the order of the pairs."""
    passes: dict[int, list[NewPass]] = {}
    verdicts: list[NewVerdict] = []
    for some_passes, some_verdicts in written:
        verdicts += some_verdicts
        for each in some_passes:
            passes.setdefault(each.pair_id, []).append(each)
    verdicts.sort(key=lambda verdict: verdict.number)
    both = [passes[pair_id] for pair_id in sorted(passes)]
    return [Comparison(tuple(p), v) for p, v in zip(both, verdicts, strict=True)]


class WriterBench:
    """Writers as processes of their own, each with its own store, each row new."""

    def __init__(
        self,
        address: str,
        comparisons: Sequence[Comparison],
        *,
        database_cpu: CpuClock = lambda: 0.0,
    ) -> None:
        self._address = address
        self._database_cpu = database_cpu
        self._comparisons = comparisons
        with open_store(address) as store:
            names = [NewJudge(f"writer-{n}", f"writer-{n}") for n in range(_JUDGES)]
            self._judges = iter([store.runs.add_judge(name) for name in names])

    def measure(self, *, writers: int, batch: int, seconds: float) -> Written:
        context = multiprocessing.get_context("fork")
        barrier = context.Barrier(writers)
        results: Any = context.Queue()
        # One judge for all of them and other pairs for each, as in a run over several machines; a
        # writer that comes to the end of its pairs goes on with the next judge.
        share = len(self._comparisons) // writers
        judges = list(islice(self._judges, _JUDGES_A_TIME))
        processes = [
            context.Process(
                target=self._write,
                args=(
                    self._comparisons[n * share : (n + 1) * share],
                    *(judges, batch, seconds, barrier, results),
                ),
            )
            for n in range(writers)
        ]
        before = self._database_cpu()
        for process in processes:
            process.start()
        told = [results.get(timeout=120) for _ in processes]
        for process in processes:
            process.join(timeout=60)
        span = Span(
            max(each[1] for each in told) - min(each[0] for each in told),
            sum(each[2] for each in told),
            self._database_cpu() - before,
        )
        waits = [wait for each in told for wait in each[3]]
        return Written(writers, batch, len(waits) * batch, span, waits)

    def _write(
        self,
        comparisons: Sequence[Comparison],
        judges: list[int],
        batch: int,
        seconds: float,
        barrier: Any,
        results: Any,
    ) -> None:
        rows = (one.by(judge) for judge in judges for one in comparisons)
        waits: list[float] = []
        # A store tells the server now and then how large its tables are. In a run that is rare; in
        # a process that lives for two seconds it would be most of what is measured.
        with open_store(self._address) as store, mock.patch.object(Growth, "note"):
            store.runs.all()
            barrier.wait(timeout=60)
            begun = now = time.monotonic()
            cpu = time.process_time()
            while now < begun + seconds and len(some := list(islice(rows, batch))) == batch:
                passes = [each for one in some for each in one.passes]
                asked = time.monotonic()
                store.work.write(passes, [one.verdict for one in some])
                now = time.monotonic()
                waits.append(now - asked)
            spent = time.process_time() - cpu
        results.put((begun, now, spent, waits))


def bytes_by_table(server: Any, database: str) -> dict[str, int]:
    """With indexes and what is kept beside the table."""
    return {
        table: int(server.run(f"SELECT pg_total_relation_size('{table}')", database)[0][0])
        for table in TABLES
    }


def log_bytes(server: Any) -> int:
    """How much the write-ahead log has grown since the server was made."""
    return int(server.run("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")[0][0])


def cpu_of_server(postmaster: int) -> CpuClock:
    """Processor seconds of a PostgreSQL so far: of the parent, its children, and those that left.
    Where there is no /proc, none."""
    ticks = os.sysconf("SC_CLK_TCK")

    def numbers(process: str) -> list[str]:
        with contextlib.suppress(OSError):
            # The name in brackets may hold spaces.
            return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
        return []

    def seconds() -> float:
        total = sum(int(each) for each in numbers(str(postmaster))[11:15])
        for folder in Path("/proc").glob("[0-9]*"):
            told = numbers(folder.name)
            if told and told[1] == str(postmaster):
                total += int(told[11]) + int(told[12])
        return total / ticks

    return seconds
