"""Rankings of a million battles of a hundred models against evalica and arena-rank, in CPU time.

    python -m benchmarks.ranking

Each has an environment of its own and takes its turn, a few times over; the least of each counts.
BLAS has one thread everywhere. The last results are in docs/ranking.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.children import ChildFailed, run_child
from benchmarks.loopback import ROOT
from benchmarks.peers import Peer, environment_of, reason_of, version_of

ROUNDS = 2
_WITHIN_S = 900.0
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
EVALICA = Peer("evalica", "evalica", "peer_evalica", ("evalica",))
ARENA = Peer("arena-rank", "arena-rank", "peer_arena_rank", ("arena-rank",))
Measured = dict[str, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """At least `times` as fast as a peer, or at most so many times a yardstick."""

    what: str
    ours: float | None
    theirs: float | None
    times: float
    at_most: bool = False

    @property
    def ratio(self) -> float | None:
        if not self.ours or not self.theirs:
            return None
        return self.ours / self.theirs if self.at_most else self.theirs / self.ours

    @property
    def held(self) -> bool | None:
        ratio = self.ratio
        if ratio is None:
            return None
        return ratio <= self.times if self.at_most else ratio >= self.times


def limits(ours: Measured, evalica: Measured, arena: Measured) -> list[Limit]:
    found = []
    for make in ("lists", "own lists", "numpy", "pandas"):
        words = evalica.get(f"words, {make}", 0.0)
        for given, times in (("", 10), (" with an index", 4)):
            theirs = evalica.get(f"{make}{given}")
            theirs = None if theirs is None else theirs + words
            found.append(Limit(f"{make}, against evalica{given}", ours.get(make), theirs, times))
    found += [
        Limit(f"{make}, against arena-rank", ours.get(make), arena.get("pandas"), 10)
        for make in ("lists", "own lists", "numpy", "pandas", "arrow")
    ]
    lists = evalica.get("own lists")
    if lists is not None:
        lists += evalica.get("words, own lists", 0.0) + ours.get("arrow to lists", 0.0)
    found.append(Limit("arrow, against evalica by to_pylist", ours.get("arrow"), lists, 10))
    found.append(
        Limit(
            "codes without intervals, bincounts", ours.get("coded"), ours.get("bincount"), 3, True
        )
    )
    routes = [seconds for name, seconds in evalica.items() if name.startswith("bootstrap")]
    found.append(
        Limit(
            "1,000 replicates, against evalica's best route",
            ours.get("bootstrap"),
            min(routes, default=None),
            10,
        )
    )
    return found


def main() -> int:
    ours: Measured = {}
    evalica: Measured = {}
    arena: Measured = {}
    peers: list[tuple[Peer, Path, Measured]] = []
    for peer, into in ((EVALICA, evalica), (ARENA, arena)):
        try:
            python = environment_of(peer)
            print(f"{peer.label} {version_of(python, peer)}")
        except (subprocess.SubprocessError, OSError) as error:
            print(f"{peer.label} is not installed: {reason_of(error)}")
        else:
            peers.append((peer, python, into))
    for _ in range(ROUNDS):
        _measure("ranking_evenhand", Path(sys.executable), ours)
        for peer, python, into in peers:
            _measure(peer.adapter, python, into)
    for label, measured in (("evenhand", ours), ("evalica", evalica), ("arena-rank", arena)):
        print(f"{label}, CPU seconds")
        for name, seconds in measured.items():
            print(f"  {name:<40} {seconds:10.4f}")
    print("limits")
    for limit in limits(ours, evalica, arena):
        said = {True: "held", False: "NOT HELD", None: "not measured"}[limit.held]
        ratio = "     –" if limit.ratio is None else f"{limit.ratio:6.1f}"
        bound = f"{'at most' if limit.at_most else 'at least'} {limit.times:g}"
        print(f"  {limit.what:<50} {ratio}  ({bound})  {said}")
    return 0


def _measure(module: str, python: Path, into: Measured) -> None:
    """The least of this turn and those before."""
    environment = {**os.environ, **_ONE_THREAD}
    command = [str(python), "-m", f"benchmarks.{module}"]
    try:
        ended = run_child(command, cwd=ROOT, within_s=_WITHIN_S, environment=environment)
    except ChildFailed as error:
        print(f"{module} failed: {str(error).splitlines()[-1]}", file=sys.stderr)
        return
    for name, seconds in json.loads(ended.out).items():
        into[name] = min(seconds, into.get(name, float("inf")))


if __name__ == "__main__":
    sys.exit(main())
