"""The fault test: a server that fails in every way, a run that ends by itself, no made-up tie.

    python -m scripts.verify_faults [--pairs 1000] [--seed 1]

The server answers 10% of the calls with 429, 5% with 500, 2% never, 2% with half a body and
3% with nonsense. Every pair has the verdict that the server's answers come to, resting on a ballot
in each order, or is invalid with its reason. Run by `make verify`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.children import ChildFailed, run_child
from benchmarks.evenhand_run import RunCommand, Summary
from benchmarks.faults import SHARES
from benchmarks.generated_pairs import write_pairs
from benchmarks.loopback import Count, LoopbackServer, loopback_environment
from benchmarks.stored_run import problems_in, stored_verdicts

_VERDICTS = 0
_SOME_INVALID = 4


@dataclass(frozen=True, slots=True)
class FaultReport:
    summary: Summary
    served: Count
    wall_s: float
    outcomes: Counter[str]
    reasons: Counter[str]  # of the invalid ones, by kind
    problems: list[str]


def run_with_faults(
    folder: Path,
    *,
    pairs: int,
    concurrency: int = 64,
    timeout_s: float = 2.0,
    retries: int = 3,
    seed: int = 1,
    within_s: float = 900.0,
) -> FaultReport:
    """Leaves `pairs.jsonl` and `runs.sqlite` in the folder."""
    path, store = folder / "pairs.jsonl", folder / "runs.sqlite"
    planned = write_pairs(path, pairs, size="small", seed=seed)
    with LoopbackServer(fault_seed=seed) as server:
        more = ("--timeout", f"{timeout_s:g}", "--retries", str(retries))
        command = RunCommand(path, server.url, store, concurrency, more)
        ended = run_child(
            command.words,
            cwd=folder,
            within_s=within_s,
            environment=loopback_environment(),
            codes=(_VERDICTS, _SOME_INVALID),
        )
        served = server.wait_until_left()
    summary = Summary.of(ended)
    outcomes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for verdict in stored_verdicts(store):
        outcomes[verdict.fate if verdict.outcome != "invalid" else "invalid"] += 1
        if verdict.outcome == "invalid":
            reasons[verdict.error_kind or "none"] += 1
    problems = problems_in(store, pairs=pairs, faults=True)
    told = {
        "A": summary.wins_a,
        "B": summary.wins_b,
        "TIE": summary.ties,
        "INCONSISTENT": summary.inconsistent,
        "invalid": summary.invalid,
    }
    problems += [
        f"the summary tells {count} of {name}, and the store holds {outcomes[name]}"
        for name, count in told.items()
        if count != outcomes[name]
    ]
    if summary.pairs != planned.pairs:
        problems.append(f"the summary tells {summary.pairs} pairs, not {planned.pairs}")
    if summary.calls != served.requests:
        problems.append(f"the summary tells {summary.calls} calls, not {served.requests}")
    if summary.invalid > pairs // 20:
        problems.append(
            f"{summary.invalid} of {pairs} pairs are invalid: asking again did not help"
        )
    return FaultReport(summary, served, ended.wall_s, outcomes, reasons, problems)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=1_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evenhand-faults-") as folder:
        try:
            report = run_with_faults(
                Path(folder), pairs=asked.pairs, concurrency=asked.concurrency, seed=asked.seed
            )
        except ChildFailed as error:
            print(f"fault test: {error}", file=sys.stderr)
            return 1
    calls = report.served.requests
    print(f"fault test: {asked.pairs:,} pairs, {calls:,} calls, {report.wall_s:.1f} s")
    for fault, share in SHARES:
        met = report.served.faults.get(fault, 0)
        print(f"  {fault:<9} {met:>6,} calls, {met / calls:6.1%} (drawn with {share:.0%})")
    for outcome, count in sorted(report.outcomes.items()):
        print(f"  {outcome:<12} {count:>6,} pairs")
    for kind, count in report.reasons.most_common():
        print(f"    invalid by {kind}: {count}")
    for problem in report.problems:
        print(f"  PROBLEM {problem}")
    print("  held" if not report.problems else "  NOT HELD")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
