"""Win rates a line each: with bars where there is room for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.cli.amounts import number
from evenhand.cli.rates import SCALE, bar, interval, rate
from evenhand.cli.terminal import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evenhand.report.conclusions import SideRate

_COUNTS = ("wins", "losses", "ties", "inconsistent", "invalid")


@dataclass(frozen=True, slots=True)
class RateLine:
    """A row of a table; without a rate it is a heading."""

    names: tuple[str, ...]
    own: SideRate | None = None


def show_rates(console: Console, titles: tuple[str, ...], lines: Sequence[RateLine]) -> None:
    """As wide as there is room for: with bars, without them, or a line for each."""
    for bars in (True, False):
        table = _table(titles, lines, bars=bars)
        needed = console.measure(table, options=console.options.update(width=10_000)).maximum
        if not console.is_terminal:
            console.width = max(console.width, needed)  # a pipe has no width, lines stay whole
        if needed <= console.width:
            console.print(table)
            return
    for line in (RateLine(titles), *lines):
        _stack(console, line)


def _table(titles: tuple[str, ...], lines: Sequence[RateLine], *, bars: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in (*titles, "win rate", *([SCALE] if bars else [])):
        table.add_column(name, no_wrap=True)
    for name in _COUNTS:
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        if line.own is None:
            table.add_row(*(Text(name, "bold") for name in line.names))
            continue
        own = line.own
        cells: list[Text | str] = [Text(one_line(name)) for name in line.names]
        if own.rate is None or own.low is None or own.high is None:
            cells += [Text("not enough data", "dim"), *([""] if bars else [])]
        else:
            cells.append(f"{rate(own.rate)} ({interval(own.low, own.high)})")
            cells += [Text(bar(own.rate, own.low, own.high), style_of(own))] if bars else []
        table.add_row(*cells, *map(number, _counts(own)))
    return table


def _stack(console: Console, line: RateLine) -> None:
    from rich.padding import Padding
    from rich.text import Text

    named = one_line(", ".join(line.names))
    if line.own is None:
        console.print(Text(named, "bold"))
        return
    own = line.own
    told = "not enough data"
    if own.rate is not None and own.low is not None and own.high is not None:
        told = f"{rate(own.rate)} ({interval(own.low, own.high)})"
    counts = ", ".join(
        f"{name} {number(count)}" for name, count in zip(_COUNTS, _counts(own), strict=True)
    )
    console.print(Text(f"{named}  {told}"))
    console.print(Padding(Text(counts), (0, 0, 0, 2)))


def _counts(own: SideRate) -> tuple[int, ...]:
    counts = own.counts
    return *wins_and_losses(own), counts.ties, counts.inconsistent, counts.invalid


def wins_and_losses(own: SideRate) -> tuple[int, int]:
    counts = own.counts
    return (counts.wins_a, counts.wins_b) if own.side == "A" else (counts.wins_b, counts.wins_a)


def style_of(own: SideRate) -> str:
    if own.low is None or own.high is None:
        return ""
    if own.low > 0.5:
        return "green"
    return "red" if own.high < 0.5 else "yellow"
