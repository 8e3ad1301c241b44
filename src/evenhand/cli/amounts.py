"""Numbers as people read them; all formatting of amounts is here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.report import Share
    from evenhand.runs import Range
    from evenhand.stats.always_valid import AlwaysValidInterval


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


def share(part: Share) -> str:
    """In per cent, with its 95 % interval."""
    return f"{100 * part.value:.0f} % ({100 * part.low:.0f}–{100 * part.high:.0f})"


def rate(watched: AlwaysValidInterval) -> str:
    """The same of a run that goes on."""
    return f"{100 * watched.mean:.0f} % ({100 * watched.low:.0f}–{100 * watched.high:.0f})"
