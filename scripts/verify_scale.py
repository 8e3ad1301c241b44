"""The model of docs/scaling.md against this machine: bytes, processor time, and writers at once.

    python -m scripts.verify_scale [--pairs 5000] [--repeats 3] [--seconds 1.5]

A PostgreSQL with its own careful settings is started for it. Processor time is compared, because
the machine may be shared, and the best of the repeats counts; rates by the clock are only shown.
Run by `make verify`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from scripts.scale_measurements import (
    RunMeasured,
    WriterBench,
    Written,
    bytes_by_table,
    cpu_of_server,
    log_bytes,
    measure_run,
)
from scripts.scale_model import PASSES, Measured
from scripts.scale_simulation import Setup, finite_source_rate, simulate

# The tests' own PostgreSQL, which nothing that is installed needs.
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

_CLOSE_BYTES = 1.1
_CLOSE_CPU = 2.0  # another machine, another load; a model that is off by more is none
_CLOSE_RATE = 1.03


class Checks:
    def __init__(self) -> None:
        self.failed = 0

    def ratio(self, what: str, found: float, modelled: float, *, within: float) -> None:
        ratio = found / modelled
        held = 1 / within <= ratio <= within
        self.failed += not held
        print(
            f"  {what:<44} {found:12,.4g} {modelled:12,.4g} {ratio:7.2f}  "
            f"{'held' if held else f'NOT HELD (within {within:g})'}"
        )


def main() -> int:
    from postgres_server import find_binaries, running

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    given = parser.parse_args()
    binaries = find_binaries()
    if binaries is None:
        print("PostgreSQL is not installed; run scripts/install_postgres.sh")
        return 2
    checks = Checks()
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with running(binaries, ()) as server, tempfile.TemporaryDirectory() as folder:
        postmaster = (server.folder / "data" / "postmaster.pid").read_text().split()[0]
        clock = cpu_of_server(int(postmaster))
        runs: list[RunMeasured] = []
        for number in range(given.repeats):
            database = f"scale{number}"
            server.run(f"CREATE DATABASE {database}")
            logged = log_bytes(server)
            runs.append(
                measure_run(
                    Path(folder), server.url(database), pairs=given.pairs, database_cpu=clock
                )
            )
            logged = log_bytes(server) - logged
        sizes = bytes_by_table(server, database)
        _compare_run(checks, runs, sizes, logged)
        bench = WriterBench(server.url(database), runs[-1].comparisons, database_cpu=clock)
        _show_writers(bench, repeats=given.repeats, seconds=given.seconds)
    _compare_simulation(checks)
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    return 1 if checks.failed else 0


def _compare_run(
    checks: Checks, runs: list[RunMeasured], sizes: dict[str, int], logged: int
) -> None:
    model, pairs = Measured(), runs[0].pairs
    print(f"\none process, {pairs:,} pairs into PostgreSQL, the best of {len(runs)}")
    print(f"  {'':<44} {'measured':>12} {'model':>12}   ratio")
    checks.ratio(
        "CPU s of a call, the process",
        min(run.judging.own_cpu_s for run in runs) / pairs / PASSES,
        model.process_cpu_s,
        within=_CLOSE_CPU,
    )
    checks.ratio(
        "CPU s of a row of the intake, the process",
        min(run.intake.own_cpu_s for run in runs) / pairs,
        model.intake_own_cpu_s,
        within=_CLOSE_CPU,
    )
    checks.ratio(
        "CPU s of a row of the intake, PostgreSQL",
        min(run.intake.database_cpu_s for run in runs) / pairs,
        model.intake_database_cpu_s,
        within=_CLOSE_CPU,
    )
    checks.ratio(
        "CPU s of a comparison, PostgreSQL",
        min(run.judging.database_cpu_s for run in runs) / pairs,
        model.database_cpu_s,
        within=_CLOSE_CPU,
    )
    stored = sum(sizes.values()) / pairs
    checks.ratio("bytes of a comparison", stored, model.stored_bytes, within=_CLOSE_BYTES)
    checks.ratio("bytes of its log", logged / pairs, model.logged_bytes, within=_CLOSE_BYTES)
    by_table = ", ".join(f"{table} {size / pairs:,.0f}" for table, size in sizes.items())
    print(f"  of each comparison: {by_table} bytes")
    rate = max(PASSES * pairs / run.judging.seconds for run in runs)
    rows = max(pairs / run.intake.seconds for run in runs)
    print(f"  by the clock: {rate:,.0f} calls/s, {rows:,.0f} rows/s of intake")


def _show_writers(bench: WriterBench, *, repeats: int, seconds: float) -> None:
    model = Measured()
    print(f"\nwriters at once, the best of {repeats}")
    print("  writers  batch  comparisons/s  undisturbed ms  client CPU µs  PostgreSQL CPU µs")
    alone: dict[int, Written] = {}
    for writers, batch in ((1, 8), (1, 32), (1, 128), (2, 32), (4, 32), (2, 128), (4, 128)):
        tries = [
            bench.measure(writers=writers, batch=batch, seconds=seconds) for _ in range(repeats)
        ]
        best = max(tries, key=lambda each: each.per_s)
        micro = 1e6 / best.comparisons
        print(
            f"  {writers:>7}  {batch:>5}  {best.per_s:13,.0f}"
            f"  {min(each.undisturbed_s for each in tries) * 1e3:14.1f}"
            f"  {best.span.own_cpu_s * micro:13.0f}  {best.span.database_cpu_s * micro:17.0f}",
            flush=True,
        )
        if writers == 1:
            alone[batch] = min(tries, key=lambda each: each.undisturbed_s)
    slope = (alone[128].undisturbed_s - alone[8].undisturbed_s) / 120
    begin = alone[8].undisturbed_s - 8 * slope
    print(f"  a write takes {begin * 1e3:.1f} ms and {slope * 1e6:.0f} µs for each comparison")
    print(f"  (the model: {model.write_s * 1e3:.1f} ms, and PostgreSQL's processor time)")


def _compare_simulation(checks: Checks) -> None:
    print("\nthe simulation against the machine repair model, passes/s")
    print(f"  {'':<44} {'simulated':>12} {'exact':>12}   ratio")
    for workers, slots in ((1, 1), (10, 1), (50, 1), (50, 4), (200, 4)):
        setup = Setup(
            workers=workers,
            in_flight=1,
            judge_s=0.1,
            write_s=0.003,
            pass_s=0.0,
            slots=slots,
            enough=1,
            random_service=True,
        )
        exact = finite_source_rate(workers, 0.1, 0.003, slots)
        found = simulate(setup, passes=100_000).per_s
        checks.ratio(f"{workers} workers, {slots} at once", found, exact, within=_CLOSE_RATE)


if __name__ == "__main__":
    sys.exit(main())
