"""Flat memory: a run of a thousand pairs and one of a million take about the same.

    python -m scripts.verify_memory [--pairs 1000000]

At most 150 MB of resident memory lie between the two, and the CPU time per pair of the large run
does not grow as it goes on. Texts and answers are short, so that the store stays small; a million
pairs are two million calls. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.children import Child, ChildFailed, Ended
from benchmarks.evenhand_run import RunCommand, Summary
from benchmarks.generated_pairs import Planned, write_pairs
from benchmarks.loopback import LoopbackServer, loopback_environment

SMALL_PAIRS = 1_000
LIMIT_MB = 150.0
GROWTH_LIMIT = 1.25  # the last slices' CPU per pair over the first ones'
SLICES = 10
_SAMPLED_EVERY_S = 0.25
_PAIR_S = 0.01  # longer than this for each pair, and the run is given up
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """The process at one moment, and how many calls it had made."""

    calls: int
    wall_s: float
    cpu_s: float
    rss_mb: float
    store_mb: float


@dataclass(frozen=True, slots=True)
class Slice:
    """A tenth of the calls, from one sample to another."""

    begun: Sample
    ended: Sample

    @property
    def pairs(self) -> float:
        return (self.ended.calls - self.begun.calls) / 2

    @property
    def wall_us_per_pair(self) -> float:
        return (self.ended.wall_s - self.begun.wall_s) / self.pairs * 1e6

    @property
    def cpu_us_per_pair(self) -> float:
        return (self.ended.cpu_s - self.begun.cpu_s) / self.pairs * 1e6


@dataclass(frozen=True, slots=True)
class Watched:
    planned: Planned
    ended: Ended
    samples: list[Sample]
    store_mb: float

    def slices(self) -> list[Slice]:
        """The calls in equal parts; empty where the run was too short to be sampled."""
        calling = [sample for sample in self.samples if sample.calls > 0]
        if not calling:
            return []
        edges = [self.planned.calls * part / SLICES for part in range(SLICES + 1)]
        marks = [next((s for s in calling if s.calls >= edge), calling[-1]) for edge in edges]
        return [Slice(a, b) for a, b in itertools.pairwise(marks) if b.calls > a.calls]

    @property
    def reading(self) -> Sample | None:
        """The last sample before the first call."""
        return next((s for s in reversed(self.samples) if s.calls == 0), None)

    @property
    def growth(self) -> float | None:
        """CPU per pair in the last three slices over that in the first three."""
        costs = [part.cpu_us_per_pair for part in self.slices()]
        if len(costs) < SLICES:
            return None
        return statistics.mean(costs[-3:]) / statistics.mean(costs[:3])


def watch_run(folder: Path, pairs: int, *, concurrency: int = 128) -> Watched:
    """Leaves nothing in the folder."""
    path, store = folder / f"{pairs}.jsonl", folder / f"{pairs}.sqlite"
    planned = write_pairs(path, pairs, size="small")
    samples: list[Sample] = []
    with LoopbackServer(answer="short") as server:
        command = RunCommand(path, server.url, store, concurrency)
        child = Child(command.words, cwd=folder, environment=loopback_environment())
        try:
            while (ended := child.poll()) is None:
                sample = _sample(child, server.count().requests, store)
                if sample is not None:
                    samples.append(sample)
                if child.running_s > 60 + pairs * _PAIR_S:
                    raise ChildFailed(f"still running after {child.running_s:.0f} s")
                time.sleep(_SAMPLED_EVERY_S)
        finally:
            child.kill()
        served = server.count()
    if ended.code != 0:
        raise ChildFailed(f"ended with {ended.code}: {ended.err.strip()[-1_000:]}")
    wrong = Summary.of(ended).differences(planned)
    if served.requests != planned.calls:
        wrong.append(f"{served.requests} calls were made, not {planned.calls}")
    if wrong:
        raise ChildFailed("; ".join(wrong))
    store_mb = _size_mb(store)
    for left in folder.glob(f"{pairs}.*"):
        left.unlink()
    return Watched(planned, ended, samples, store_mb)


def _sample(child: Child, calls: int, store: Path) -> Sample | None:
    """None once the process is gone."""
    try:
        stat = Path(f"/proc/{child.pid}/stat").read_text()
        resident_pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return None
    # The command's name stands in brackets and may hold spaces; user and system time come later.
    user, system = stat.rpartition(")")[2].split()[11:13]
    cpu_s = (int(user) + int(system)) / _TICKS_PER_S
    return Sample(calls, child.running_s, cpu_s, resident_pages * _PAGE_MB, _size_mb(store))


def _size_mb(store: Path) -> float:
    return sum(f.stat().st_size for f in store.parent.glob(f"{store.name}*")) / 2**20


def show(watched: Watched) -> None:
    planned, ended = watched.planned, watched.ended
    print(
        f"{planned.pairs:,} pairs: peak {ended.peak_rss_mb:.0f} MB resident, {ended.wall_s:.1f} s, "
        f"CPU {ended.cpu_s:.1f} s, store {watched.store_mb:,.0f} MB"
    )
    reading = watched.reading
    if reading is not None:
        print(
            f"  before the first call: {reading.wall_s:.1f} s, CPU {reading.cpu_s:.1f} s, "
            f"{reading.rss_mb:.0f} MB"
        )
    parts = watched.slices()
    if len(parts) > 1:
        print("  pairs so far   s/1,000 pairs   CPU s/1,000 pairs   MB resident   store MB")
    for part in parts if len(parts) > 1 else ():
        print(
            f"  {part.ended.calls // 2:>12,}   {part.wall_us_per_pair / 1e3:>13.3f}"
            f"   {part.cpu_us_per_pair / 1e3:>17.3f}   {part.ended.rss_mb:>11.0f}"
            f"   {part.ended.store_mb:>8,.0f}"
        )
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--concurrency", type=int, default=128)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evenhand-memory-") as name:
        try:
            small = watch_run(Path(name), SMALL_PAIRS, concurrency=asked.concurrency)
            show(small)
            large = watch_run(Path(name), asked.pairs, concurrency=asked.concurrency)
            show(large)
        except ChildFailed as error:
            print(f"memory: {error}", file=sys.stderr)
            return 1
    difference = large.ended.peak_rss_mb - small.ended.peak_rss_mb
    held = difference <= LIMIT_MB
    print(f"  {difference:.0f} MB more, at most {LIMIT_MB:g}: {'held' if held else 'NOT HELD'}")
    growth = large.growth
    if growth is None:
        print("  the run was too short to tell whether the time per pair grows")
        return 0 if held else 1
    steady = growth <= GROWTH_LIMIT
    print(
        f"  CPU per pair at the end {growth:.2f} times that at the beginning, "
        f"at most {GROWTH_LIMIT:g}: {'held' if steady else 'NOT HELD'}"
    )
    return 0 if held and steady else 1


if __name__ == "__main__":
    sys.exit(main())
