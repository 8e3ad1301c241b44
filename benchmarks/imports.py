"""What starting costs: CPU seconds beyond the bare interpreter, children's user and system time.

Run by `make bench`; the last results are in docs/benchmarks.md.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

ROUNDS = 15

# name, command, the limit that the project sets itself
STARTS = (
    ("bare interpreter", ["-c", "pass"], None),
    ("import evenhand", ["-c", "import evenhand"], 0.25),
    ("its main names", ["-c", "from evenhand import compare, Pair, JudgeConfig, open_judge"], None),
    ("evenhand --help", ["-m", "evenhand", "--help"], 0.5),
)
HEAVY = (
    "aiohttp", "anthropic", "fastapi", "genai_prices", "google.genai", "jinja2", "langchain_core",
    "numpy", "openai", "pydantic", "pydantic_ai", "rich", "scipy", "typer", "xllamacpp",
)  # fmt: skip


def cpu_s(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def loaded_by(statement: str) -> list[str]:
    code = f"import sys; {statement}; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.split()


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name, _, _ in STARTS}
    # Alternating, so that a busy moment hits all of them.
    for _ in range(ROUNDS):
        for name, arguments, _ in STARTS:
            taken[name].append(cpu_s(arguments))
    bare = statistics.median(taken["bare interpreter"])
    print(f"CPU seconds, median of {ROUNDS} alternating starts")
    for name, _, limit in STARTS:
        median = statistics.median(taken[name])
        beyond = "" if name == "bare interpreter" else f"   beyond bare {median - bare:6.3f}"
        within = f"   limit {limit}" if limit is not None else ""
        print(f"  {name:<18} {median:6.3f}{beyond}{within}")
    for statement in ("import evenhand", "from evenhand import compare, Pair, open_judge"):
        print(f"  heavy packages loaded by `{statement}`: {loaded_by(statement) or 'none'}")


if __name__ == "__main__":
    main()
