"""A run on a Ray cluster: a node killed, then the driver, then resumed; caps; and its speed.

    python -m scripts.verify_cluster [--pairs 20000] [--calls-capped 3000] [--speed-pairs 1500]

0 leaves a part out.

Three raylets on this machine's loopback and a real PostgreSQL. Every pair has its verdict, every
pass is stored once, and what the server saw beyond the least possible is no more than what was in
flight at the kills. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg
from benchmarks.children import Child, ChildFailed, run_child
from benchmarks.evenhand_run import RunCommand, Summary
from benchmarks.generated_pairs import Planned, write_pairs
from benchmarks.loopback import LoopbackServer, loopback_environment
from scripts.ray_cluster import RayCluster

KEY = "sk-planted-0123456789abcdef"
_STEP_S = 1_800.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where runs of this check are made: a cluster, a store, a server, a folder."""

    cluster: RayCluster
    store: str
    server: LoopbackServer
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        own = {"EVENHAND_STORE": self.store, "OPENAI_API_KEY": KEY}
        return {**loopback_environment(), **self.cluster.environment, **own}

    def command(self, pairs: Path, *, name: str, workers: int, each: int, more: str = "") -> Child:
        return Child(
            self._words(pairs, name=name, workers=workers, each=each, more=more),
            cwd=self.folder,
            environment=self.environment,
        )

    def run(self, pairs: Path, *, name: str, workers: int, each: int, more: str = "") -> Summary:
        words = self._words(pairs, name=name, workers=workers, each=each, more=more)
        ended = run_child(
            words, cwd=self.folder, within_s=_STEP_S, environment=self.environment, codes=(0, 5)
        )
        return Summary.of(ended)

    def _words(self, pairs: Path, *, name: str, workers: int, each: int, more: str) -> list[str]:
        where = ("--executor", "ray", "--ray-address", self.cluster.address)
        ray = (*where, "--ray-workers", str(workers), *more.split())
        # The store is named by the environment: a password is not for a command line.
        words = RunCommand(
            pairs, self.server.url, Path("-"), each * workers, more=ray, name=name
        ).words
        at = words.index("--store")
        return words[:at] + words[at + 2 :]


@dataclass(frozen=True, slots=True)
class KillReport:
    calls: int
    least_calls: int
    in_flight_at_most: int
    seconds: float
    problems: list[str] = field(default_factory=list)


def kill_and_resume(
    place: Place, *, pairs: int, workers: int = 4, each: int = 8, seed: int = 1
) -> KillReport:
    """One node of three is killed in the middle, later the driver; then the same command again."""
    begun = time.monotonic()
    path = place.folder / "killed.jsonl"
    planned = write_pairs(path, pairs, size="small", seed=seed)
    place.server.reset()
    child = place.command(path, name="killed", workers=workers, each=each)
    try:
        _wait_for_calls(place.server, child, planned.calls // 4)
        place.cluster.kill_node(2)
        _wait_for_calls(place.server, child, planned.calls * 3 // 5)
    finally:
        child.kill()
    summary = place.run(path, name="killed", workers=workers, each=each)
    served = place.server.wait_until_left(within_s=60)
    # Those of the node, at most all workers of which were there; and everybody's at the driver's.
    most = 2 * workers * each
    problems = summary.differences(planned)
    problems += _problems_in_store(place.store, planned)
    if served.distinct != planned.calls:
        problems.append(f"{served.distinct} different requests came, not {planned.calls}")
    if served.requests > planned.calls + most:
        problems.append(f"{served.requests} calls, {planned.calls} needed, {most} in flight")
    problems += _secrets_in(place.cluster.logs, (KEY, place.store.partition("@")[0]))
    seconds = time.monotonic() - begun
    return KillReport(served.requests, planned.calls, most, seconds, problems)


def check_caps(place: Place, *, calls: int, workers: int = 4, each: int = 8) -> list[str]:
    """What the server saw, against what was allowed."""
    path = place.folder / "capped.jsonl"
    write_pairs(path, calls, size="small", seed=7)
    problems = []
    place.server.reset()
    summary = place.run(
        path, name="capped", workers=workers, each=each, more=f"--max-calls {calls // 2}"
    )
    seen = place.server.wait_until_left(within_s=60).requests
    print(f"  --max-calls {calls // 2}: {seen} calls were made, {summary.stopped_by}")
    if seen > calls // 2 or summary.stopped_by != "max-calls":
        problems.append(f"--max-calls {calls // 2}: {seen} calls, {summary.stopped_by}")
    place.server.reset()
    cost = 0.25 * calls * _COST_USD
    summary = place.run(
        path,
        name="priced",
        workers=workers,
        each=each,
        more=f"--fresh --price 1/1 --max-cost {cost:.6f}",
    )
    seen = place.server.wait_until_left(within_s=60).requests
    print(f"  --max-cost {cost:.3f}: {seen * _COST_USD:.3f} was spent, {summary.stopped_by}")
    if seen * _COST_USD > cost + 1e-9 or summary.stopped_by != "max-cost":
        problems.append(f"--max-cost {cost}: {seen * _COST_USD} spent, {summary.stopped_by}")
    return problems


# What the loopback server says that a call took, 1,350 tokens in and 340 out, at 1/1.
_COST_USD = 1_690 / 1e6


def measure(place: Place, *, pairs: int, workers: int, each: int = 8) -> float:
    """Calls a second from the first to the last, as the server saw them."""
    path = place.folder / f"speed-{workers}.jsonl"
    write_pairs(path, pairs, size="small", seed=100 + workers)
    place.server.reset()
    place.run(path, name=f"speed-{workers}", workers=workers, each=each, more="--fresh")
    served = place.server.wait_until_left(within_s=60)
    return served.requests / served.first_to_last_s


def _wait_for_calls(server: LoopbackServer, child: Child, calls: int) -> None:
    while server.count().requests < calls:
        ended = child.poll()
        if ended is not None:
            raise ChildFailed(f"ended with {ended.code} before call {calls}: {ended.err[-2_000:]}")
        if child.running_s > _STEP_S:
            raise ChildFailed(f"call {calls} did not come in {_STEP_S:g} s")
        time.sleep(0.01)


def _problems_in_store(store: str, planned: Planned) -> list[str]:
    with psycopg.connect(store) as connection:
        passes, different = connection.execute(
            "SELECT count(*), count(DISTINCT (pair_id, judge_id, shown_order, sample)) FROM passes"
        ).fetchall()[0]
        verdicts = connection.execute("SELECT count(*) FROM verdicts").fetchall()[0][0]
    problems = []
    if passes != different:
        problems.append(f"{passes - different} passes are stored twice")
    if passes != planned.calls:
        problems.append(f"{passes} passes are stored, not {planned.calls}")
    if verdicts != planned.pairs:
        problems.append(f"{verdicts} verdicts are stored, not {planned.pairs}")
    return problems


def _secrets_in(logs: Path, secrets: tuple[str, ...]) -> list[str]:
    """Keys and passwords in anything that Ray wrote."""
    found = []
    for path in logs.rglob("*"):
        if path.is_file() and not path.is_symlink():
            said = path.read_bytes()
            found += [f"a secret is in {path.name}" for each in secrets if each.encode() in said]
    return found


def _speed(place: Place, asked: argparse.Namespace) -> list[str]:
    if not asked.speed_pairs:
        return []
    one = measure(place, pairs=asked.speed_pairs, workers=1)
    four = measure(place, pairs=4 * asked.speed_pairs, workers=4)
    print(f"one worker {one:.0f} calls/s, four {four:.0f}: {four / one:.2f} times")
    return [] if four >= 3.5 * one else [f"four workers reach {four / one:.2f} times one's rate"]


def _caps(place: Place, asked: argparse.Namespace) -> list[str]:
    return check_caps(place, calls=asked.calls_capped) if asked.calls_capped else []


def _kills(place: Place, asked: argparse.Namespace) -> list[str]:
    killed = kill_and_resume(place, pairs=asked.pairs)
    print(
        f"{asked.pairs:,} pairs, a node and the driver killed: {killed.calls:,} calls, "
        f"{killed.least_calls:,} needed, {killed.in_flight_at_most} in flight at most, "
        f"{killed.seconds:.0f} s"
    )
    return killed.problems


def main() -> int:
    # What the tests start is what this starts.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from postgres_server import PASSWORD, find_binaries, running

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pairs", type=int, default=20_000)
    options.add_argument("--calls-capped", type=int, default=3_000)
    options.add_argument("--speed-pairs", type=int, default=1_500)
    asked = options.parse_args()
    binaries = find_binaries()
    assert binaries is not None, "PostgreSQL is not installed; run scripts/install_postgres.sh"
    problems: list[str] = []
    with (
        running(binaries) as postgres,
        LoopbackServer(delay_ms=50, ledger=True) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        for part in (_speed, _caps, _kills):
            postgres.run("CREATE DATABASE cluster")
            store = postgres.loopback_url("cluster", quote(PASSWORD, safe=""))
            environment = {"EVENHAND_STORE": store, "OPENAI_API_KEY": KEY}
            with RayCluster(nodes=3, cpus=4, environment=environment) as cluster:
                problems += part(Place(cluster, store, server, Path(folder)), asked)
            postgres.run("DROP DATABASE cluster WITH (FORCE)")
    for problem in problems:
        print(f"PROBLEM  {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
