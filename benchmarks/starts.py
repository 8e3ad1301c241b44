"""What it costs to start the servers: CPU seconds from the start to the end in good order.

`evenhand serve` is ended once it has said its address, `evenhand mcp` once it has shaken hands
and listed its tools. Further arguments are `src` folders of other versions to take turns with:
`python -m benchmarks.starts OTHER/src`.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.loopback import loopback_environment
from benchmarks.served import Served

ROUNDS = 5
_CLIENT = {"name": "benchmark", "version": "1"}
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT}
_SAID = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def serve(folder: Path, source: str) -> None:
    with Served("http://127.0.0.1:9/v1", folder, environment={"PYTHONPATH": source}) as served:
        pass
    if served.code != 0:
        raise RuntimeError(f"evenhand serve ended with {served.code}: {served.log}")


def mcp(folder: Path, source: str) -> None:
    words = ["-m", "evenhand", "mcp", "-j", "baseline:longer", "--store", str(folder / "store.db")]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=loopback_environment() | {"PYTHONPATH": source},
        input="".join(json.dumps(each) + "\n" for each in _SAID),
        capture_output=True,
        text=True,
        check=True,
    )
    if len(done.stdout.splitlines()) != 2:
        raise RuntimeError(f"evenhand mcp did not answer: {done.stderr}")


def cpu_s(start: Callable[[Path, str], None], source: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start(Path(folder), source)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main() -> None:
    here = str(Path(__file__).resolve().parent.parent / "src")
    sources = (here, *(str(Path(each).resolve()) for each in sys.argv[1:]))
    taken: dict[tuple[str, str], list[float]] = {}
    # Taking turns, so that a busy moment hits all of them.
    for _ in range(ROUNDS):
        for source in sources:
            for start in (serve, mcp):
                taken.setdefault((start.__name__, source), []).append(cpu_s(start, source))
    print(f"CPU seconds of a start, median of {ROUNDS} (least, most)")
    for (name, source), seconds in sorted(taken.items()):
        told = "here" if source == here else source
        spread = f"({min(seconds):.2f}, {max(seconds):.2f})"
        print(f"  evenhand {name:<6} {told:<24} {statistics.median(seconds):5.2f}  {spread}")


if __name__ == "__main__":
    main()
