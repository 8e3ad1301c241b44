"""Does evenhand hold under attack?

    python -m scripts.verify_attacks [--list] [WORD …]

Every attack of `scripts.attacks` whose name has one of the words (default: all), one after the
other. Each has a process group, a folder for temporary files and bounds of time and memory of its
own; all of them are gone when it ends. Prints a table, with the machine's load when an attack began
(figures in seconds are wall time); exits 1 where one does not hold. Run by `make verify`; the last
results are in docs/security.md.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from scripts.attacks import Attack, Due, Outcome

TARGETS = ("answers", "judges", "uploads", "service", "outputs")
# All processes of an attack together; the server has 200 MB of it, its attacker the rest.
MOST_MB = 4000.0
_LOOK_S = 0.25
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


def attacks(target: str) -> Sequence[Attack]:
    chosen: Sequence[Attack] = import_module(f"scripts.attacks.{target}").ATTACKS
    return chosen


def main(arguments: Sequence[str]) -> int:
    words = [word.lower() for word in arguments if word != "--list"]
    chosen = list(_chosen(words))
    if "--list" in arguments or not chosen:
        print("\n".join(f"{target}: {attack.name}" for target, _, attack in _chosen([])))
        return 0 if "--list" in arguments else 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is running is ended
    broke = 0
    print("| attack | limit | measured | | load | took |\n|---|---|---|---|---|---|", flush=True)
    for target, number, attack in chosen:
        load, begun = os.getloadavg()[0], time.perf_counter()
        outcome = _try(target, number, attack.limit_s)
        broke += not outcome.held
        cells = (
            f"{target}: {attack.name}",
            outcome.limits,
            outcome.measured,
            "held" if outcome.held else "**broke**",
            f"{load:.1f}",
            f"{time.perf_counter() - begun:.0f} s",
        )
        print("| " + " | ".join(cell.replace("|", "¦") for cell in cells) + " |", flush=True)
    print(f"{len(chosen)} attacks: " + (f"{broke} broke" if broke else "all held"))
    return 1 if broke else 0


def _chosen(words: list[str]) -> Iterator[tuple[str, int, Attack]]:
    for target in TARGETS:
        for number, attack in enumerate(attacks(target)):
            if not words or any(word in f"{target}: {attack.name}".lower() for word in words):
                yield target, number, attack


def _try(target: str, number: int, limit_s: float) -> Outcome:
    """In a process of its own: an attack that succeeds may take all memory, or never end."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    with _folder() as folder:
        process = context.Process(target=_attempt, args=(target, number, folder, theirs))
        process.start()
        theirs.close()
        try:
            return _awaited(process, ours, limit_s)
        finally:
            _end(process)


def _awaited(process: BaseProcess, reply: Connection, limit_s: float) -> Outcome:
    assert process.pid is not None
    deadline = time.monotonic() + limit_s
    while not reply.poll(_LOOK_S):
        if time.monotonic() > deadline:
            return _failed(f"no end after {limit_s:g} s")
        taken = group_mb(process.pid)
        if taken > MOST_MB:
            return _failed(f"{taken:.0f} MB (limit {MOST_MB:.0f})")
    try:
        outcome = reply.recv()
    except EOFError:
        process.join(5)
        return _failed(f"its process died (exit code {process.exitcode})")
    return outcome if isinstance(outcome, Outcome) else _failed(str(outcome))


def _failed(why: str) -> Outcome:
    return Outcome((Due("the attack ran", why, "to its end"),))


def _attempt(target: str, number: int, folder: str, reply: Connection) -> None:
    os.setsid()  # its servers are ended with it
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    try:
        outcome: Outcome | str = attacks(target)[number].run()
    except Exception as error:
        outcome = f"{type(error).__name__}: {str(error)[-300:]}"
    reply.send(outcome)


def _end(process: BaseProcess) -> None:
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # where it had no group of its own yet
    process.join()


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="evenhand-attacks-")
    os.chmod(folder, 0o711)  # PostgreSQL runs as another user  # noqa: S103
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def group_mb(group: int) -> float:
    """What the processes of a group hold in memory."""
    taken = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                if int(stat.rpartition(")")[2].split()[2]) == group:
                    taken += int((entry / "statm").read_text().split()[1])
    return taken * _PAGE_MB


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
