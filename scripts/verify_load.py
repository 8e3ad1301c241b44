"""Twice what the server can do, for a minute: no crash, flat memory, everything accepted answered.

    python -m scripts.verify_load [--seconds 60] [--workers 1]

The capacity is measured first, by as many clients as comparisons are judged at once. Then twice
as many requests a second come in, whatever becomes of them: each must be answered, with a right
verdict or with 429 and Retry-After, and the judge must have been asked twice for each verdict and
for nothing else. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from benchmarks.load import Tally, Target, closed_load, open_load
from benchmarks.loopback import LoopbackServer
from benchmarks.serve_pairs import bodies, is_right
from benchmarks.served import Served

SLOTS = 16
QUEUE = 16
DELAY_MS = 100.0
GROWTH_LIMIT_MB = 10.0
_SAMPLED_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class LoadReport:
    capacity_per_s: float
    tally: Tally
    judge_calls: int
    resident_mb: list[float]
    exit_code: int | None
    problems: list[str] = field(default_factory=list)

    @property
    def growth_mb(self) -> float:
        """From the second sixth to the last: the first warms up."""
        part = max(1, len(self.resident_mb) // 6)
        early, late = self.resident_mb[part : 2 * part], self.resident_mb[-part:]
        return statistics.median(late) - statistics.median(early) if early else 0.0


def overload(
    folder: Path, *, seconds: float, slots: int = SLOTS, queue: int = QUEUE, workers: int = 1
) -> LoadReport:
    limits = {"compares": slots, "compare_queue": queue}
    options = ("--workers", str(workers))
    with (
        LoopbackServer(delay_ms=DELAY_MS, answer="short") as judge,
        Served(judge.url, folder, limits=limits, options=options) as served,
    ):
        target = Target(served.port, "/v1/compare")
        capacity = asyncio.run(_capacity(target, slots * workers, seconds=min(5.0, seconds)))
        judge.reset()
        tally, resident = asyncio.run(_watched(served, target, per_s=2 * capacity, for_s=seconds))
        calls = judge.count().requests
        alive = served.running
    problems = _problems(tally, calls)
    if not alive:
        problems.append(f"the server ended with {served.code}: {served.log[-500:]}")
    elif served.code != 0:
        problems.append(f"at its end the server left with {served.code}")
    if "failed:" in served.log:
        problems.append("the server's log tells of faults of its own")
    return LoadReport(capacity, tally, calls, resident, served.code, problems)


async def _capacity(target: Target, clients: int, *, seconds: float) -> float:
    deadline = time.monotonic() + seconds
    timed = takewhile(lambda _: time.monotonic() < deadline, bodies())
    began = time.perf_counter()
    tally = await closed_load(target, timed, clients=clients, right=is_right)
    return tally.statuses[200] / (time.perf_counter() - began)


async def _watched(
    served: Served, target: Target, *, per_s: float, for_s: float
) -> tuple[Tally, list[float]]:
    load = asyncio.create_task(
        open_load(target, bodies(), per_s=per_s, for_s=for_s, right=is_right)
    )
    resident = []
    while not load.done():
        if served.running:
            resident.append(served.resident_mb())
        await asyncio.wait([load], timeout=_SAMPLED_EVERY_S)
    return load.result(), resident


def _problems(tally: Tally, calls: int) -> list[str]:
    problems = []
    if tally.unanswered:
        problems.append(f"{tally.unanswered} requests got no answer")
    if others := {s: n for s, n in tally.statuses.items() if s not in (200, 429)}:
        problems.append(f"other answers than 200 and 429 came: {others}")
    if tally.wrong:
        problems.append(f"{tally.wrong} verdicts are wrong")
    if tally.without_retry_after:
        problems.append(f"{tally.without_retry_after} refusals have no Retry-After")
    if not tally.statuses[429]:
        problems.append("nothing was refused, so it was no load")
    if calls != 2 * tally.statuses[200]:
        problems.append(f"{calls} judge calls were made for {tally.statuses[200]} verdicts")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evenhand-load-") as name:
        report = overload(Path(name), seconds=asked.seconds, workers=asked.workers)
    tally = report.tally
    took = sorted(tally.seconds)
    print(
        f"capacity {report.capacity_per_s:.0f} comparisons a second; twice that for "
        f"{asked.seconds:g} s: {tally.sent:,} requests, {tally.statuses[200]:,} verdicts "
        f"(median {took[len(took) // 2] * 1e3:.0f} ms, 99% in {took[len(took) * 99 // 100]:.2f} "
        f"s), {tally.statuses[429]:,} refused with 429"
    )
    if asked.workers == 1:
        growth = report.growth_mb
        held = growth <= GROWTH_LIMIT_MB
        print(
            f"  memory {report.resident_mb[-1]:.0f} MB, {growth:+.1f} MB in the run, at most "
            f"{GROWTH_LIMIT_MB:g}: {'held' if held else 'NOT HELD'}"
        )
        if not held:
            report.problems.append("memory grew")
    for problem in report.problems:
        print(f"  {problem}", file=sys.stderr)
    print("  held" if not report.problems else "  NOT HELD")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
