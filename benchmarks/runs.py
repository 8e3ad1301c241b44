"""A whole run against its limit and its peers: calls per second, CPU seconds per 1,000 calls.

    python -m benchmarks.runs [--pairs 15000] [--rounds 5] [--peer-calls 1500]

The limit is a bare aiohttp client that sends the very bytes that `evenhand run` sends. Both are
processes of their own, measured from start to end, and take turns; the server's CPU counts for
neither. Run by `make bench`; the last results are in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.children import ChildFailed
from benchmarks.loopback import LoopbackServer
from benchmarks.peers import PEERS, PeerMeasured, measure_peer
from benchmarks.run_against_raw import Course, Measured, Series

CPU_LIMIT = 2.5  # times raw's, at most
RATE_LIMIT = 0.5  # of raw's, at least
PEER_LIMIT = 5.0  # times the best peer's rate, at least
IN_FLIGHT = 128
SLOW_DELAY_MS, SLOW_IN_FLIGHT, SLOW_ROUNDS = 50.0, 512, 2


def compare(
    course: Course, one_pair: Course, *, delay_ms: float, in_flight: int, rounds: int
) -> tuple[Series, Series]:
    """Prints raw and evenhand side by side, and returns both."""
    print(f"\n{course.planned.calls:,} calls, {in_flight} in flight, delay {delay_ms:g} ms")
    print("  round  who       calls/s  first to last  CPU s/1,000  server's   open  peak MB")
    raws: list[Measured] = []
    plains: list[Measured] = []
    evenhands: list[Measured] = []
    with LoopbackServer(delay_ms=delay_ms) as server:
        for number in range(1, rounds + 1):
            raws.append(course.raw(server, in_flight=in_flight))
            _show_round(number, "raw", raws[-1])
            plains.append(course.raw(server, in_flight=in_flight, loop="asyncio"))
            _show_round(number, "asyncio", plains[-1])
            evenhands.append(course.evenhand(server, in_flight=in_flight))
            _show_round(number, "evenhand", evenhands[-1])
        raw = Series(raws, one_pair.raw(server, in_flight=in_flight))
        plain = Series(plains, one_pair.raw(server, in_flight=in_flight, loop="asyncio"))
        evenhand = Series(evenhands, one_pair.evenhand(server, in_flight=in_flight))
    _show_medians(raw, plain, evenhand)
    return raw, evenhand


def _show_round(number: int, who: str, row: Measured) -> None:
    print(
        f"  {number:>5}  {who:<8} {row.calls_per_s():8,.0f}"
        f"  {row.calls / row.first_to_last_s:13,.0f}  {row.cpu_s_per_1000():11.3f}"
        f"  {row.server_cpu_s / row.calls * 1_000:8.3f}  {row.most_open:>5}"
        f"  {row.peak_rss_mb:7.0f}",
        flush=True,
    )


def _show_medians(raw: Series, plain: Series, evenhand: Series) -> None:
    print("  medians         calls/s  CPU s/1,000  without start  CPU s/1,000  start s  its CPU")
    for who, series in (("raw", raw), ("asyncio", plain), ("evenhand", evenhand)):
        print(
            f"         {who:<8} {series.calls_per_s():8,.0f}  {series.cpu_s_per_1000():11.3f}"
            f"  {series.calls_per_s(with_start=False):13,.0f}"
            f"  {series.cpu_s_per_1000(with_start=False):11.3f}"
            f"  {series.start.wall_s:7.2f}  {series.start.cpu_s:7.2f}"
        )
    for loop, limit in (("uvloop", raw), ("asyncio's own loop", plain)):
        cpu = evenhand.cpu_s_per_1000() / limit.cpu_s_per_1000()
        rate = evenhand.calls_per_s() / limit.calls_per_s()
        print(
            f"  raw on {loop}: CPU {cpu:.2f} times, at most {CPU_LIMIT:g}:"
            f" {_held(cpu <= CPU_LIMIT)}; rate {rate:.2f}, at least {RATE_LIMIT:g}:"
            f" {_held(rate >= RATE_LIMIT)}",
            flush=True,
        )


def compare_with_peers(raw: Series, evenhand: Series, pairs: Path, *, calls: int) -> None:
    """The peers without their start-up, evenhand with it."""
    print(f"\npeers, {calls:,} calls, {IN_FLIGHT} in flight, no delay")
    print("  who                        version   calls/s  of raw  CPU s/1,000  times raw")

    def show(who: str, version: str, rate: float, cpu: float) -> None:
        print(
            f"  {who:<26} {version:<8} {rate:8,.0f}  {rate / raw.calls_per_s():6.3f}"
            f"  {cpu:11.3f}  {cpu / raw.cpu_s_per_1000():9.1f}",
            flush=True,
        )

    measured = []
    for peer in PEERS:
        row = measure_peer(peer, pairs, calls=calls, in_flight=IN_FLIGHT)
        if isinstance(row, PeerMeasured):
            measured.append(row)
            show(peer.label, row.version, row.calls_per_s, row.cpu_s_per_1000)
        else:
            print(f"  {peer.label:<26} {row.reason}", flush=True)
    rate, cpu = evenhand.calls_per_s(), evenhand.cpu_s_per_1000()
    show("evenhand run, with start", "", rate, cpu)
    if measured:
        by_rate = rate / max(row.calls_per_s for row in measured)
        by_cpu = min(row.cpu_s_per_1000 for row in measured) / cpu
        held = _held(by_rate >= PEER_LIMIT)
        print(f"  {by_rate:.1f} times the best peer's rate, at least {PEER_LIMIT:g}: {held}")
        print(f"  the best peer takes {by_cpu:.1f} times as much CPU")


def _held(fact: bool) -> str:
    return "held" if fact else "NOT HELD"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=int, default=15_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-calls", type=int, default=1_500, help="0: leave the peers out")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evenhand-bench-") as name:
        folder = Path(name)
        try:
            course = Course.laid_out(folder, asked.pairs, in_flight=IN_FLIGHT)
            one_pair = Course.laid_out(folder, 1, in_flight=IN_FLIGHT)
            raw, evenhand = compare(
                course, one_pair, delay_ms=0.0, in_flight=IN_FLIGHT, rounds=asked.rounds
            )
            compare(
                course,
                one_pair,
                delay_ms=SLOW_DELAY_MS,
                in_flight=SLOW_IN_FLIGHT,
                rounds=min(asked.rounds, SLOW_ROUNDS),
            )
        except ChildFailed as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        if asked.peer_calls:
            calls = min(asked.peer_calls, asked.pairs)
            compare_with_peers(raw, evenhand, course.pairs, calls=calls)
    return 0


if __name__ == "__main__":
    sys.exit(main())
