"""What so many comparisons take: judges, processes, connections, disk, hours and money.

    python -m scripts.scale_model [--server-calls-per-s 10] [--answer-s 3] [--cores 4]

Prints the tables of docs/scaling.md. `Measured` is what was measured on one machine (scripts/
verify_scale.py measures it anew); everything else is arithmetic on it and on the assumptions that
the options change.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass

from scripts.scale_simulation import Setup, simulate

from evenhand.judges.prices import Price, list_price_by_model

PASSES = 2  # of a comparison
_HOUR_S = 3600.0
_SIZES = (1_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
_WORKERS = (1, 10, 50, 100, 200)


@dataclass(frozen=True, slots=True)
class Measured:
    """One machine with two busy cores, 2026-11-16; pairs of 1.5 KB, answers of 1.4 KB."""

    process_cpu_s: float = 0.31e-3  # of a call, in the process, with PostgreSQL as store
    intake_own_cpu_s: float = 0.085e-3  # of a row, in the process that reads the data
    intake_database_cpu_s: float = 0.06e-3
    write_s: float = 2.5e-3  # a write to the database, beside its rows
    database_cpu_s: float = 0.13e-3  # of a comparison: both passes and the verdict
    stored_bytes: int = 5_850  # of a comparison, with indexes
    logged_bytes: int = 6_760  # of a comparison, in the write-ahead log, its intake included
    request_bytes: int = 6_100
    reply_bytes: int = 1_800
    input_tokens: int = 1_350  # of a call
    output_tokens: int = 340


@dataclass(frozen=True, slots=True)
class Assumed:
    """What nobody can measure here: judges, a database's server, a network."""

    server_calls_per_s: float = 10.0  # of one judge's server
    answer_s: float = 3.0  # a call's time at the judge
    database_cores: int = 4
    network_bytes_per_s: float = 1.25e9  # 10 Gbit/s
    most_in_flight: int = 4_096  # of a process: the largest --concurrency
    connections_a_process: int = 4  # three were seen: one writes, one reads, one holds the run
    server_dollars_per_h: float = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Comparisons a second that each part could do by itself."""

    judge: float
    places: float  # calls in flight
    processor: float  # of the processes
    network: float
    database: float

    @property
    def rate(self) -> float:
        return min(self._all.values())

    @property
    def first(self) -> str:
        """What saturates first."""
        return min(self._all, key=self._all.__getitem__)

    @property
    def _all(self) -> dict[str, float]:
        return {
            "judge": self.judge,
            "calls in flight": self.places,
            "processes": self.processor,
            "network": self.network,
            "database": self.database,
        }


def limits(
    *, servers: int, processes: int, in_flight: int, measured: Measured, assumed: Assumed
) -> Limits:
    """`in_flight` is of each process, and each process has a core."""
    bytes_a_call = measured.request_bytes + measured.reply_bytes
    return Limits(
        judge=servers * assumed.server_calls_per_s / PASSES,
        places=processes * in_flight / assumed.answer_s / PASSES,
        processor=processes / measured.process_cpu_s / PASSES,
        network=assumed.network_bytes_per_s / bytes_a_call / PASSES,
        database=assumed.database_cores / measured.database_cpu_s,
    )


@dataclass(frozen=True, slots=True)
class Needs:
    """What it takes to be done in time."""

    comparisons: int
    hours: float
    calls_per_s: float
    in_flight: int
    servers: int
    processes: int
    connections: int
    database_share: float  # of the assumed server's cores
    log_bytes_per_s: float
    disk_bytes: float
    intake_hours: float  # by one process, before the first call

    @property
    def server_hours(self) -> float:
        return self.servers * self.hours


def needs(comparisons: int, *, hours: float, measured: Measured, assumed: Assumed) -> Needs:
    calls_per_s = comparisons * PASSES / (hours * _HOUR_S)
    in_flight = math.ceil(calls_per_s * assumed.answer_s)  # Little's law
    processes = max(
        1,
        math.ceil(calls_per_s * measured.process_cpu_s),
        math.ceil(in_flight / assumed.most_in_flight),
    )
    per_s = calls_per_s / PASSES
    row_s = measured.intake_own_cpu_s + measured.intake_database_cpu_s
    return Needs(
        comparisons=comparisons,
        hours=hours,
        calls_per_s=calls_per_s,
        in_flight=in_flight,
        servers=max(1, math.ceil(calls_per_s / assumed.server_calls_per_s)),
        processes=processes,
        connections=processes * assumed.connections_a_process,
        database_share=per_s * measured.database_cpu_s / assumed.database_cores,
        log_bytes_per_s=per_s * measured.logged_bytes,
        disk_bytes=float(comparisons * measured.stored_bytes),
        intake_hours=comparisons * row_s / _HOUR_S,
    )


def dollars(comparisons: int, price: Price, *, measured: Measured, batch: bool = False) -> float:
    """Both passes of each; providers' batch APIs take half."""
    a_call = (
        measured.input_tokens * price.input_per_million
        + measured.output_tokens * price.output_per_million
    ) / 1e6
    return comparisons * PASSES * a_call * (0.5 if batch else 1.0)


def in_time(comparisons: int) -> float:
    """Hours that people would wait: an hour up to a hundred thousand, a day, a week."""
    return 1.0 if comparisons <= 100_000 else 24.0 if comparisons <= 10_000_000 else 168.0


def show_needs(measured: Measured, assumed: Assumed) -> None:
    print(
        "| comparisons | within h | calls/s | in flight | judge servers | processes | connections"
        " | database busy | log MB/s | disk | intake h |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for size in _SIZES:
        one = needs(size, hours=in_time(size), measured=measured, assumed=assumed)
        print(
            f"| {size:,} | {one.hours:g} | {one.calls_per_s:,.1f} | {one.in_flight:,}"
            f" | {one.servers:,} | {one.processes} | {one.connections} | {one.database_share:.1%}"
            f" | {one.log_bytes_per_s / 1e6:,.2f} | {_size(one.disk_bytes)}"
            f" | {one.intake_hours:,.2f} |"
        )


def show_limits(measured: Measured, assumed: Assumed) -> None:
    print(
        "| judge servers | processes, in flight each | judge | in flight | processes | network"
        " | database | saturates first |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for servers, processes, in_flight in (
        (1, 1, 64), (20, 1, 64), (500, 1, 4096), (500, 4, 1024), (5_000, 20, 1024),
        (20_000, 100, 2048),
    ):  # fmt: skip
        one = limits(
            servers=servers,
            processes=processes,
            in_flight=in_flight,
            measured=measured,
            assumed=assumed,
        )
        print(
            f"| {servers:,} | {processes} × {in_flight:,} | {one.judge:,.0f} | {one.places:,.0f}"
            f" | {one.processor:,.0f} | {one.network:,.0f} | {one.database:,.0f}"
            f" | {one.first}: {one.rate:,.0f}/s |"
        )


def show_money(measured: Measured, assumed: Assumed, models: list[str]) -> None:
    known = [(name, price) for name in models if (price := list_price_by_model(name)) is not None]
    print("| comparisons |" + "".join(f" {name} | batch |" for name, _ in known) + " own servers |")
    print("|---|" + "---|---|" * len(known) + "---|")
    for size in _SIZES:
        cells = [
            f" {_money(dollars(size, price, measured=measured))}"
            f" | {_money(dollars(size, price, measured=measured, batch=True))} |"
            for _, price in known
        ]
        hours = size * PASSES / assumed.server_calls_per_s / _HOUR_S
        print(f"| {size:,} |{''.join(cells)} {_money(hours * assumed.server_dollars_per_h)} |")


def show_simulation(measured: Measured, assumed: Assumed) -> None:
    """In comparisons, as everywhere; simulated are their passes."""
    print(
        "| workers | in flight each | offered/s | stored/s | database busy | passes a write"
        " | stored after ms |"
    )
    print("|---|---|---|---|---|---|---|")
    for in_flight in (64, 1024):
        for workers in _WORKERS:
            setup = Setup(
                workers=workers,
                in_flight=in_flight,
                judge_s=assumed.answer_s,
                write_s=measured.write_s,
                pass_s=measured.database_cpu_s / PASSES,
                slots=assumed.database_cores,
            )
            found = simulate(setup, passes=max(20_000, 2 * workers * in_flight))
            print(
                f"| {workers} | {in_flight:,} | {setup.offered / PASSES:,.0f}"
                f" | {found.per_s / PASSES:,.0f} | {found.busy:.0%} | {found.batch:.1f}"
                f" | {found.stored_after_s * 1e3:,.0f} |",
                flush=True,
            )


def _size(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}"
    return f"{count:,.0f} B"


def _money(amount: float) -> str:
    return f"${amount:,.2f}" if amount < 1_000 else f"${amount:,.0f}"


def main() -> int:
    default = Assumed()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--server-calls-per-s", type=float, default=default.server_calls_per_s)
    parser.add_argument("--answer-s", type=float, default=default.answer_s)
    parser.add_argument("--cores", type=int, default=default.database_cores)
    parser.add_argument("--model", action="append", help="whose list price is asked for")
    given = parser.parse_args()
    measured = Measured()
    assumed = Assumed(
        server_calls_per_s=given.server_calls_per_s,
        answer_s=given.answer_s,
        database_cores=given.cores,
    )
    print("What it takes\n")
    show_needs(measured, assumed)
    print("\nComparisons a second that each part could do\n")
    show_limits(measured, assumed)
    print("\nMoney\n")
    show_money(measured, assumed, given.model or ["gpt-4o-mini", "gpt-4o", "claude-sonnet-4-5"])
    print("\nMany workers, one database (simulated)\n")
    show_simulation(measured, assumed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
