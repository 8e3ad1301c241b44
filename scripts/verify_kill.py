"""The kill test: SIGKILL at random moments, the same command again each time, nothing lost.

    python -m scripts.verify_kill [--pairs 3000] [--kills 10] [--seed 1]

Every pair has its verdict, every pass is stored once, and what the server saw beyond the least
possible is no more than what was in flight at the kills. A pass is in flight until it is
committed, so at each kill that is what the server had seen and the store did not have. Run by
`make verify`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.children import Child, ChildFailed, run_child
from benchmarks.evenhand_run import RunCommand, Summary
from benchmarks.generated_pairs import write_pairs
from benchmarks.loopback import LoopbackServer, loopback_environment
from benchmarks.stored_run import problems_in, stored_passes

_STEP_S = 300.0
_START_S = 1.5  # imports, the store and the reading of the pairs come before the first call


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: so long after the start, or once the server has seen so many calls."""

    after_s: float | None = None
    after_calls: int | None = None

    def __str__(self) -> str:
        if self.after_s is not None:
            return f"{self.after_s:.2f} s after the start"
        return f"at call {self.after_calls:,}"


@dataclass(frozen=True, slots=True)
class Killed:
    moment: Moment
    calls: int  # that the server has seen in all
    passes: int  # that the store holds
    in_flight: int  # calls of this process that are not in the store


@dataclass(frozen=True, slots=True)
class KillReport:
    kills: list[Killed]
    calls: int
    least_calls: int
    problems: list[str] = field(default_factory=list)


def random_moments(kills: int, calls: int, *, seed: int) -> list[Moment]:
    """Most of them anywhere in the calls, some while a process starts."""
    rng = random.Random(seed)  # noqa: S311 - chooses moments, protects nothing
    starting = kills // 4
    counted = sorted(rng.randrange(1, calls) for _ in range(kills - starting))
    moments = [Moment(after_calls=count) for count in counted]
    for _ in range(starting):
        moment = Moment(after_s=rng.uniform(0.05, _START_S))
        moments.insert(rng.randrange(len(moments)), moment)
    return moments


def kill_and_resume(
    folder: Path,
    *,
    pairs: int,
    kills: int,
    concurrency: int = 64,
    delay_ms: float = 40.0,
    seed: int = 1,
) -> KillReport:
    """Leaves `pairs.jsonl` and `runs.sqlite` in the folder."""
    path, store = folder / "pairs.jsonl", folder / "runs.sqlite"
    planned = write_pairs(path, pairs, size="small", seed=seed)
    killed: list[Killed] = []
    with LoopbackServer(delay_ms=delay_ms, ledger=True) as server:
        command = RunCommand(path, server.url, store, concurrency)
        for moment in random_moments(kills, planned.calls, seed=seed):
            killed.append(_killed_at(moment, command, server, folder, before=killed))
        ended = run_child(
            command.words, cwd=folder, within_s=_STEP_S, environment=loopback_environment()
        )
        served = server.wait_until_left()
        problems = Summary.of(ended).differences(planned)
        again = run_child(
            command.words, cwd=folder, within_s=_STEP_S, environment=loopback_environment()
        )
        problems += Summary.of(again).differences(planned)
        if (more := server.count().requests - served.requests) != 0:
            problems.append(f"the finished run made {more} more calls when it was asked again")
    problems += problems_in(store, pairs=pairs, faults=False)
    problems += _problems_with_calls(killed, served.requests, planned.calls, concurrency)
    if served.distinct != planned.calls:
        problems.append(f"{served.distinct} different requests came, not {planned.calls}")
    if (stored := stored_passes(store)) != planned.calls:
        problems.append(f"{stored} passes are stored, not {planned.calls}")
    return KillReport(killed, served.requests, planned.calls, problems)


def _killed_at(
    moment: Moment,
    command: RunCommand,
    server: LoopbackServer,
    folder: Path,
    *,
    before: list[Killed],
) -> Killed:
    child = Child(command.words, cwd=folder, environment=loopback_environment())
    try:
        while not _reached(moment, child, server):
            ended = child.poll()
            if ended is not None:
                told = ended.err.strip()[-1_000:]
                raise ChildFailed(f"ended with {ended.code} before it was killed {moment}: {told}")
            if child.running_s > _STEP_S:
                raise ChildFailed(f"{moment} did not come in {_STEP_S:g} s")
            time.sleep(0.003)
    finally:
        child.kill()
    served = server.wait_until_left()
    passes = stored_passes(command.store)
    calls_before = before[-1].calls if before else 0
    passes_before = before[-1].passes if before else 0
    in_flight = (served.requests - calls_before) - (passes - passes_before)
    return Killed(moment, served.requests, passes, in_flight)


def _reached(moment: Moment, child: Child, server: LoopbackServer) -> bool:
    if moment.after_s is not None:
        return child.running_s >= moment.after_s
    assert moment.after_calls is not None
    return server.count().requests >= moment.after_calls


def _problems_with_calls(
    killed: list[Killed], calls: int, least: int, concurrency: int
) -> list[str]:
    problems = []
    in_flight = sum(kill.in_flight for kill in killed)
    if any(kill.in_flight < 0 for kill in killed):
        problems.append("the store holds passes that the server was never asked for")
    if not least <= calls <= least + in_flight:
        problems.append(
            f"{calls} calls were made; the least is {least}, and {in_flight} were in flight "
            "at the kills"
        )
    if in_flight > concurrency * len(killed):
        problems.append(
            f"{in_flight} passes were in flight at {len(killed)} kills, and at most {concurrency} "
            "may be at each"
        )
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=3_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evenhand-kill-") as folder:
        try:
            report = kill_and_resume(
                Path(folder),
                pairs=asked.pairs,
                kills=asked.kills,
                concurrency=asked.concurrency,
                seed=asked.seed,
            )
        except ChildFailed as error:
            print(f"kill test: {error}", file=sys.stderr)
            return 1
    print(f"kill test: {asked.pairs:,} pairs, {asked.concurrency} in flight, seed {asked.seed}")
    print("  killed                      calls seen   passes stored   in flight")
    for kill in report.kills:
        print(
            f"  {kill.moment!s:<26}  {kill.calls:>10,}   {kill.passes:>13,}   {kill.in_flight:>9}"
        )
    in_flight = sum(kill.in_flight for kill in report.kills)
    print(
        f"  {report.calls:,} calls in the end: the least possible {report.least_calls:,} "
        f"and {report.calls - report.least_calls:,} more, {in_flight:,} in flight at the kills"
    )
    for problem in report.problems:
        print(f"  PROBLEM {problem}")
    print("  held" if not report.problems else "  NOT HELD")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
