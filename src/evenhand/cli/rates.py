"""Rates, intervals and p-values as people read them."""

from __future__ import annotations

_BAR_WIDTH = 25  # odd, so that one half has a place of its own
_HALF = _BAR_WIDTH // 2
_SMALLEST_P = 0.0001
_TELLING = (0.0, 0.5, 1.0)
# Above a column of bars.
SCALE = f"0{'0.5':^{_BAR_WIDTH - 2}}1"


def rate(value: float) -> str:
    """Two digits, and more where two would read as certainty, or as even."""
    shown = f"{value:.2f}"
    for digits in (3, 4):
        if float(shown) in _TELLING and value not in _TELLING:
            shown = f"{value:.{digits}f}"
    return shown


def interval(low: float, high: float) -> str:
    return f"{rate(low)} to {rate(high)}"


def percent(share: float) -> str:
    return f"{100 * share:.6g} %"


def p_value(p: float) -> str:
    return f"p < {_SMALLEST_P:g}" if p < _SMALLEST_P else f"p = {p:.2g}"


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
