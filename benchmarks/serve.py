"""What the server costs on POST /v1/compare beyond the comparer itself, in CPU time.

    python -m benchmarks.serve

Rounds of the server and of the bare comparer in turn, each in a process of its own, with the same
pairs and as many in flight, against the same loopback judge. The last results are in
docs/benchmarks.md.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from benchmarks.load import Target, closed_load
from benchmarks.loopback import ROOT, LoopbackServer, loopback_environment
from benchmarks.serve_pairs import bodies, is_right
from benchmarks.served import Served

IN_FLIGHT = 32
COMPARES = 1_000
ROUNDS = 8
LIMIT_MS = 1.5


def through_server(served: Served, count: int) -> float:
    """CPU milliseconds of the server for each comparison."""
    before = served.cpu_s()
    load = closed_load(
        Target(served.port, "/v1/compare"),
        islice(bodies(), count),
        clients=IN_FLIGHT,
        right=is_right,
    )
    tally = asyncio.run(load)
    if tally.statuses != {200: count} or tally.wrong:
        raise RuntimeError(f"not every request was answered right: {tally.statuses}")
    return (served.cpu_s() - before) / count * 1e3


def through_comparer(bare: subprocess.Popen[str], count: int) -> float:
    assert bare.stdin is not None
    assert bare.stdout is not None
    bare.stdin.write(f"{count}\n")
    bare.stdin.flush()
    return float(bare.stdout.readline()) / count * 1e3


def measure(*, compares: int, rounds: int) -> tuple[list[float], list[float]]:
    with (
        tempfile.TemporaryDirectory(prefix="evenhand-serve-") as folder,
        LoopbackServer() as judge,
        Served(judge.url, Path(folder)) as served,
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bare_compares", judge.url, str(IN_FLIGHT)],
            cwd=ROOT,
            env=loopback_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as bare,
    ):
        assert bare.stdout is not None
        assert bare.stdin is not None
        bare.stdout.readline()
        by_server, by_comparer = [], []
        for round_number in range(rounds + 1):
            of_comparer = through_comparer(bare, compares)
            of_server = through_server(served, compares)
            if round_number:  # the first opens the connections
                by_server.append(of_server)
                by_comparer.append(of_comparer)
        bare.stdin.close()
    return by_server, by_comparer


def main() -> int:
    by_server, by_comparer = measure(compares=COMPARES, rounds=ROUNDS)
    print(f"CPU milliseconds a comparison, {IN_FLIGHT} in flight, {ROUNDS} rounds of {COMPARES:,}")
    for name, spent in (("comparer", by_comparer), ("server", by_server)):
        print(f"  {name:<9} least {min(spent):.3f}   median {statistics.median(spent):.3f}")
    over = statistics.median(a - b for a, b in zip(by_server, by_comparer, strict=True))
    ratio = statistics.median(by_server) / statistics.median(by_comparer)
    held = over <= LIMIT_MS
    print(
        f"  the server's own {over:.3f} ms (ratio {ratio:.2f}), at most {LIMIT_MS:g}: "
        f"{'held' if held else 'NOT HELD'}"
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
