"""Numbers as people read them on the command line: amounts, durations, tokens; the rest is in
`quantities`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.messages.numbers import level as percent
from evenhand.quantities import (
    count as number,
)
from evenhand.quantities import (
    counted_share,
    dollars,
    interval,
    share,
    share_as_rate,
    value,
)

if TYPE_CHECKING:
    from evenhand.runs import Range
    from evenhand.stats.always_valid import AlwaysValidInterval

__all__ = [
    "counted",
    "counted_share",
    "dollars",
    "interval",
    "number",
    "percent",
    "running_rate",
    "seconds",
    "share",
    "share_as_rate",
    "tokens",
    "value",
]


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 pair`, `2 pairs`; `many` where it takes more than an s."""
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"


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
