"""Does evenhand hold under attack?

    python -m scripts.verify_attacks [WORD …]

Every attack of `scripts.attacks` whose name has one of the words (default: all), one after the
other, each in a process of its own with a limit of time. Prints what was measured; exits 1 where
one does not hold. Run by `make verify`; the last results are in docs/security.md.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection

from scripts.attacks import Attack, Outcome

TARGETS = ("answers", "uploads", "service", "outputs")


def attacks(target: str) -> Sequence[Attack]:
    found: Sequence[Attack] = import_module(f"scripts.attacks.{target}").ATTACKS
    return found


def main() -> int:
    words = [word.lower() for word in sys.argv[1:]]
    failed = 0
    for target, number, attack in _chosen(words):
        begun = time.perf_counter()
        outcome = _tried(target, number, attack.limit_s)
        failed += not outcome.held
        held = "held" if outcome.held else "BROKE"
        took = time.perf_counter() - begun
        print(f"{held:5}  {target}: {attack.name}: {outcome.figure} [{took:.1f} s]", flush=True)
    print(f"{failed} broke" if failed else "all held")
    return 1 if failed else 0


def _chosen(words: list[str]) -> Iterator[tuple[str, int, Attack]]:
    for target in TARGETS:
        for number, attack in enumerate(attacks(target)):
            if not words or any(word in f"{target}: {attack.name}".lower() for word in words):
                yield target, number, attack


def _tried(target: str, number: int, limit_s: float) -> Outcome:
    """In a process of its own: an attack that succeeds may take all memory, or never end."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_attempt, args=(target, number, theirs))
    process.start()
    theirs.close()
    try:
        if ours.poll(limit_s):
            outcome = ours.recv()
            return outcome if isinstance(outcome, Outcome) else Outcome(False, str(outcome))
        return Outcome(False, f"no end after {limit_s:g} s")
    except EOFError:
        process.join(5)
        return Outcome(False, f"its process died (exit code {process.exitcode})")
    finally:
        process.kill()
        process.join()


def _attempt(target: str, number: int, reply: Connection) -> None:
    reply.send(attacks(target)[number].run())


if __name__ == "__main__":
    sys.exit(main())
