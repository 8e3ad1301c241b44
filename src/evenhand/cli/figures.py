"""Numbers as people read them: amounts, shares, rates with intervals, p-values, bars, and tables of
win rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.messages.numbers import rate
from evenhand.present.terminal import (
    one_line,
    print_where_it_fits,
    table_of,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from evenhand.report.claims import ClaimedRate
    from evenhand.report.conclusions import SideRate
    from evenhand.runs import Range
    from evenhand.stats.always_valid import AlwaysValidInterval
    from evenhand.stats.estimates import EstimatedShare, EstimatedValue
    from evenhand.stats.rates.paired_difference import PairedDifference


def number(count: float) -> str:
    return f"{count:,.0f}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 pair`, `2 pairs`; `many` where it takes more than an s."""
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"


def dollars(amount: float) -> str:
    if amount == 0:
        return "$0"
    return f"${amount:,.2f}" if amount >= 0.1 else f"${amount:.2g}"


def seconds(duration: float) -> str:
    if duration < 60:
        return f"{duration:.1f} s" if duration < 10 else f"{duration:.0f} s"
    minutes, rest = divmod(round(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def tokens(amount: Range) -> str:
    return f"{_short(amount.low)} to {_short(amount.high)}"


def _short(amount: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount:.0f}"


def running_rate(watched: AlwaysValidInterval) -> str:
    """The win rate of a run that goes on, in per cent with its interval."""
    return f"{100 * watched.mean:.0f}% ({100 * watched.low:.0f}–{100 * watched.high:.0f})"


def share(part: EstimatedShare | EstimatedValue) -> str:
    if part.value is None or part.low is None or part.high is None:
        return part.reason or "not enough data"
    return f"{100 * part.value:.1f}% ({100 * part.low:.1f} to {100 * part.high:.1f})"


def share_as_rate(part: EstimatedShare) -> str:
    """For a table that has the counts in other columns."""
    if part.value is None or part.low is None or part.high is None:
        return "no data" if not part.of else f"{part.part} of {part.of}, too few"
    return f"{rate(part.value)} ({interval(part.low, part.high)})"


def counted_share(part: EstimatedShare) -> str:
    """`12 of 40: 0.30 (0.18 to 0.45)`, in a sentence."""
    counts = f"{number(part.part)} of {number(part.of)}"
    if part.value is None or part.low is None or part.high is None:
        return f"{counts} ({part.reason or 'not enough data'})"
    return f"{counts}: {rate(part.value)} ({interval(part.low, part.high)})"


def value(figure: EstimatedValue | PairedDifference) -> str:
    if figure.value is None:
        return figure.reason or "not enough data"
    if figure.low is None or figure.high is None:
        return f"{_plain(figure.value)} ({figure.reason})"
    return f"{_plain(figure.value)} ({_plain(figure.low)} to {_plain(figure.high)})"


def _plain(figure: float) -> str:
    """Without the sign of a nothing that rounding leaves."""
    return f"{round(figure, 3) + 0.0:.3f}"


# Rates, intervals and p-values as people read them.

_BAR_WIDTH = 25  # odd, so that one half has a place of its own
_HALF = _BAR_WIDTH // 2
# Above a column of bars.
SCALE = f"0{'0.5':^{_BAR_WIDTH - 2}}1"


def interval(low: float, high: float) -> str:
    return f"{rate(low)} to {rate(high)}"


def percent(share: float) -> str:
    return f"{100 * share:.6g}%"


def bar(value: float, low: float, high: float) -> str:
    """The interval on a line from 0 to 1. It covers the mark at one half where it holds that."""
    cells = [" "] * _BAR_WIDTH
    cells[_HALF] = "|"
    for cell in range(_cell(low), _cell(high) + 1):
        cells[cell] = "━"
    cells[_cell(value)] = "•"
    return "".join(cells)


def _cell(value: float) -> int:
    cell = round(value * (_BAR_WIDTH - 1))
    if cell == _HALF and value != 0.5:
        return cell + (1 if value > 0.5 else -1)
    return cell


# Win rates a line each: with bars where there is room for them.

_COUNTS = ("wins", "losses", "ties", "inconsistent", "invalid")


@dataclass(frozen=True, slots=True)
class RateLine:
    """A row of a table; without a rate it is a heading."""

    names: tuple[str, ...]
    own: SideRate | None = None
    claims: bool = True  # else something holds back what its interval shows
    claimed: ClaimedRate | None = None  # shown in the place of the judge's own

    @property
    def shows_difference(self) -> bool:
        """A claimed rate has no test of its own: what speaks against it holds the claim back."""
        own = self.claims if self.own is None or self.claimed else self.own.shows_difference
        return own and self.claims


def show_rates(console: Console, titles: tuple[str, ...], lines: Sequence[RateLine]) -> None:
    """As wide as there is room for: with bars, without them, or a line for each."""
    for bars in (True, False):
        if print_where_it_fits(console, _table(titles, lines, bars=bars)):
            return
    for line in (RateLine(titles), *lines):
        _stack(console, line)


def _table(titles: tuple[str, ...], lines: Sequence[RateLine], *, bars: bool) -> Table:
    from rich.text import Text

    left = (*titles, "win rate", *([SCALE] if bars else []))
    table = table_of(*left, *_COUNTS, left=left)
    for line in lines:
        if line.own is None:
            table.add_row(*(Text(name, "bold") for name in line.names))
            continue
        own, shown = line.own, line.claimed or line.own
        cells: list[Text | str] = [Text(one_line(name)) for name in line.names]
        if shown.rate is None or shown.low is None or shown.high is None:
            cells += [Text("not enough data", "dim"), *([""] if bars else [])]
        else:
            cells.append(_rate_of(line, shown.rate, shown.low, shown.high))
            style = style_of(shown.low, line.shows_difference)
            cells += [Text(bar(shown.rate, shown.low, shown.high), style)] if bars else []
        table.add_row(*cells, *map(number, _counts(own)))
    return table


def _stack(console: Console, line: RateLine) -> None:
    from rich.padding import Padding
    from rich.text import Text

    named = one_line(", ".join(line.names))
    if line.own is None:
        console.print(Text(named, "bold"))
        return
    own, claimed = line.own, line.claimed or line.own
    shown = "not enough data"
    if claimed.rate is not None and claimed.low is not None and claimed.high is not None:
        shown = _rate_of(line, claimed.rate, claimed.low, claimed.high)
    counts = ", ".join(
        f"{name} {number(count)}" for name, count in zip(_COUNTS, _counts(own), strict=True)
    )
    console.print(Text(f"{named}  {shown}"))
    console.print(Padding(Text(counts), (0, 0, 0, 2)))


def _rate_of(line: RateLine, value: float, low: float, high: float) -> str:
    by_labels = line.claimed is not None and line.claimed.estimator == "corrected"
    return f"{rate(value)} ({interval(low, high)}){', by labels' if by_labels else ''}"


def _counts(own: SideRate) -> tuple[int, ...]:
    counts = own.counts
    return *own.won_and_lost, counts.ties, counts.inconsistent, counts.invalid


def style_of(low: float, shown: bool) -> str:
    """Of an interval from here on, and whether a difference is shown."""
    if not shown:
        return "yellow"
    return "green" if low > 0.5 else "red"
