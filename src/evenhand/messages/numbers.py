"""Numbers as sentences show them: two digits are enough, as long as they say what is meant.

A rounded number never lands on one half or on a threshold, unless it is that number: one more
digit, and then "<50" or ">50", which no long tail of digits says better. Nor is a rate 0 or 100%
that is not; the end of an interval may be.
"""

from __future__ import annotations

from collections.abc import Iterable

_SMALLEST_P = 0.0001


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
    marks = [mark for mark in marks if mark != value]
    for each in digits:
        text = f"{value:.{each}f}"
        if not any(_side(float(text), mark) != _side(value, mark) for mark in marks):
            return text
    nearest = min(marks, key=lambda mark: abs(value - mark))
    return f"{'>' if value > nearest else '<'}{nearest:g}"


def _side(value: float, mark: float) -> int:
    return (value > mark) - (value < mark)
