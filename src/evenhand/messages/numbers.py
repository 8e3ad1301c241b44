"""Numbers as people read them, on terminals, pages, charts and in sentences: two digits are enough,
as long as they say what is meant.

A rounded number never lands on one half or on a threshold, unless it is that number: one more
digit, and then "<50" or ">50", which no long tail of digits says better. Nor is a rate 0 or 100%
that is not; the end of an interval may be.
"""

from __future__ import annotations

from collections.abc import Iterable

_SMALLEST_P = 0.0001


def number(amount: float) -> str:
    """1,234."""
    return f"{amount:,.0f}"


def short(amount: float) -> str:
    """1.23 M, where the exact number is a guess."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount:.0f}"


def thousandths(value: float) -> str:
    """0.123, of what is no share; adding 0.0 takes the sign off a rounded zero."""
    return f"{round(value, 3) + 0.0:.3f}"


def dollars(amount: float | None) -> str:
    if amount is None:
        return "—"
    if amount == 0:
        return "$0"
    return f"${amount:,.2f}" if amount >= 0.1 else f"${amount:.2g}"


def duration(seconds: float | None) -> str:
    """9.5 s, 1 min 05 s, 2 h 00 min."""
    if seconds is None:
        return "—"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def percent(share: float) -> str:
    """0.923 is 92%."""
    return f"{_shown(100 * share, (0.0, 50.0, 100.0), digits=(0, 1))}%"


def points(share: float) -> str:
    """The end of an interval, without its sign."""
    return _shown(100 * share, (50.0,), digits=(0, 1))


def decimal(share: float, *thresholds: float) -> str:
    """0.923 is 0.92."""
    return _shown(share, (0.5, *thresholds), digits=(2, 3, 4))


def rate(share: float) -> str:
    """0.923 is 0.92, in tables and beside charts."""
    return _shown(share, (0.0, 0.5, 1.0), digits=(2, 3, 4))


def tenths(share: float) -> str:
    """0.923 is 92.3, in percent."""
    return _shown(100 * share, (0.0, 50.0, 100.0), digits=(1, 2, 3))


def level(share: float) -> str:
    """A confidence level is exact: 99.5833%."""
    return f"{100 * share:.6g}%"


def p_value(p: float) -> str:
    """With its sign: p = 0.12, whichever test's arithmetic left a trace in the last bit."""
    return f"p < {_SMALLEST_P:g}" if p < _SMALLEST_P else f"p = {round(p, 12):.2g}"


def _shown(value: float, marks: Iterable[float], *, digits: Iterable[int]) -> str:
    value += 0.0  # takes the sign off a zero
    marks = [mark for mark in marks if mark != value]
    for each in digits:
        text = f"{value:.{each}f}"
        if not any(_side(float(text), mark) != _side(value, mark) for mark in marks):
            return text
    nearest = min(marks, key=lambda mark: abs(value - mark))
    return f"{'>' if value > nearest else '<'}{nearest:g}"


def _side(value: float, mark: float) -> int:
    return (value > mark) - (value < mark)
