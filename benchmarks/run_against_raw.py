"""`evenhand run` and the bare client in turns, on the same pairs, bytes and server."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.children import ChildFailed, Ended, run_child
from benchmarks.evenhand_run import RunCommand, Summary
from benchmarks.generated_pairs import Planned, write_pairs
from benchmarks.loopback import ROOT, Count, LoopbackServer, loopback_environment
from benchmarks.recorded import LENGTH

_ROUND_S = 900.0
Loop = Literal["uvloop", "asyncio"]


@dataclass(frozen=True, slots=True)
class Measured:
    """One process from its start to its end."""

    calls: int
    wall_s: float
    cpu_s: float
    first_to_last_s: float  # from the first request to the last, as the server saw them
    server_cpu_s: float
    most_open: int
    peak_rss_mb: float

    @classmethod
    def of(cls, ended: Ended, served: Count) -> Measured:
        return cls(
            calls=served.requests,
            wall_s=ended.wall_s,
            cpu_s=ended.cpu_s,
            first_to_last_s=served.first_to_last_s,
            server_cpu_s=served.cpu_s,
            most_open=served.most_open,
            peak_rss_mb=ended.peak_rss_mb,
        )

    def calls_per_s(self, start: Measured | None = None) -> float:
        """Without what the same process takes for one pair, where that is given."""
        if start is None:
            return self.calls / self.wall_s
        return (self.calls - start.calls) / (self.wall_s - start.wall_s)

    def cpu_s_per_1000(self, start: Measured | None = None) -> float:
        if start is None:
            return self.cpu_s / self.calls * 1_000
        return (self.cpu_s - start.cpu_s) / (self.calls - start.calls) * 1_000


@dataclass(frozen=True, slots=True)
class Course:
    """One set of pairs, and the bytes that a run over them sends."""

    folder: Path
    pairs: Path
    bodies: Path
    planned: Planned

    @classmethod
    def laid_out(cls, folder: Path, pairs: int, *, in_flight: int) -> Course:
        """The bytes are recorded from a run that is not measured."""
        name = f"{pairs}-pairs"
        course = cls(folder, folder / f"{name}.jsonl", folder / f"{name}.bin", Planned.of(pairs))
        write_pairs(course.pairs, pairs)
        with LoopbackServer(record=course.bodies) as server:
            course.evenhand(server, in_flight=in_flight)
        return course

    def evenhand(self, server: LoopbackServer, *, in_flight: int) -> Measured:
        """With a fresh store; a run that does not come out as planned is an error."""
        server.reset()
        with tempfile.TemporaryDirectory(dir=self.folder) as fresh:
            store = Path(fresh) / "runs.sqlite"
            command = RunCommand(self.pairs, server.url, store, in_flight)
            ended = run_child(
                command.words,
                cwd=self.folder,
                within_s=_ROUND_S,
                environment=loopback_environment(),
            )
        served = server.reset()
        wrong = Summary.of(ended).differences(self.planned)
        if served.requests != self.planned.calls:
            wrong.append(f"{served.requests} calls were made, not {self.planned.calls}")
        if wrong:
            raise ChildFailed("; ".join(wrong))
        return Measured.of(ended, served)

    def raw(self, server: LoopbackServer, *, in_flight: int, loop: Loop = "uvloop") -> Measured:
        server.reset()
        command = [sys.executable, "-m", "benchmarks.raw_client"]
        command += [str(self.bodies), server.url, str(in_flight), loop]
        ended = run_child(command, cwd=ROOT, within_s=_ROUND_S, environment=loopback_environment())
        served = server.reset()
        recorded = self.bodies.stat().st_size - LENGTH.size * self.planned.calls
        if (served.requests, served.body_bytes) != (self.planned.calls, recorded):
            raise ChildFailed(f"the bare client sent {served.body_bytes} bytes, not {recorded}")
        return Measured.of(ended, served)


@dataclass(frozen=True, slots=True)
class Series:
    """The rounds of one of the two, and what it takes for one pair."""

    rounds: Sequence[Measured]
    start: Measured

    def calls_per_s(self, *, with_start: bool = True) -> float:
        start = None if with_start else self.start
        return statistics.median(row.calls_per_s(start) for row in self.rounds)

    def cpu_s_per_1000(self, *, with_start: bool = True) -> float:
        start = None if with_start else self.start
        return statistics.median(row.cpu_s_per_1000(start) for row in self.rounds)
