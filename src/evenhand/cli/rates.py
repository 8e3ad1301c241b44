"""Rates, intervals and p-values as people read them."""

from __future__ import annotations

_BAR_WIDTH = 25  # odd, so that one half has a place of its own
_SMALLEST_P = 0.0001
# Above a column of bars.
SCALE = f"0{'0.5':^{_BAR_WIDTH - 2}}1"


def rate(value: float) -> str:
    """Two digits, and more where two would read as certainty."""
    shown = f"{value:.2f}"
    for digits in (3, 4):
        if 0 < value < 1 and float(shown) in (0, 1):
            shown = f"{value:.{digits}f}"
    return shown


def interval(low: float, high: float) -> str:
    return f"{rate(low)} to {rate(high)}"


def percent(share: float) -> str:
    return f"{100 * share:.6g} %"


def p_value(p: float) -> str:
    return f"p < {_SMALLEST_P:g}" if p < _SMALLEST_P else f"p = {p:.2g}"


def bar(value: float, low: float, high: float) -> str:
    """The interval on a line from 0 to 1, with a mark at one half."""
    cells = [" "] * _BAR_WIDTH
    cells[_BAR_WIDTH // 2] = "|"
    for cell in range(_cell(low), _cell(high) + 1):
        cells[cell] = "━"
    cells[_cell(value)] = "•"
    return "".join(cells)


def _cell(value: float) -> int:
    return round(value * (_BAR_WIDTH - 1))
