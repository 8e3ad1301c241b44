"""Figures as people read them on a page: never a share or a rate without its uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from markupsafe import Markup

from evenhand.messages import Message, render
from evenhand.pages.told import Told

if TYPE_CHECKING:
    from evenhand.pages.wording import Wording

_TELLING = (0.0, 0.5, 1.0)
_SMALLEST_P = 0.0001


class Interval(Protocol):
    """A share, a rate, or another figure with its interval: what statistics give."""

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...

    @property
    def reason(self) -> str | None: ...


class Figures:
    """In one language."""

    def __init__(self, say: Wording) -> None:
        self._say = say
        self._told = Told(say.language)

    def share(self, value: float | None, of: Interval) -> Markup:
        """In per cent with its interval; a figure that cannot be had says why."""
        if value is None:
            return self._unknown(of)
        shown = Markup('<span class="figure">{}<small> %</small></span>').format(_percent(value))
        return shown + self._between(of, _percent)

    def plain(self, value: float | None, of: Interval) -> Markup:
        if value is None:
            return self._unknown(of)
        shown = Markup('<span class="figure">{}</span>').format(rate(value))
        return shown + self._between(of, rate)

    def counted(self, part: int, of: int) -> Markup:
        """So many of all, as a share with its interval."""
        from evenhand.stats.share import Share

        found = Share.of_counts(part, of)
        if found is None:
            return Markup('<span class="unknown">—</span>')
        low, high = _percent(found.low), _percent(found.high)
        return Markup('{}<small> %</small></span> <span class="interval">{}</span>').format(
            Markup('<span class="figure">{}').format(_percent(found.value)),
            self._say("figure.between", low=low, high=high),
        )

    def sentence(self, messages: Iterable[Message]) -> str:
        """A conclusion in words. Names are set apart, so that one cannot turn what follows it."""
        return render(
            [
                each.model_copy(
                    update={
                        "values": {
                            name: f"\u2068{value}\u2069" if isinstance(value, str) else value
                            for name, value in each.values.items()
                        }
                    }
                )
                for each in messages
            ],
            self._say.language,
        )

    def _unknown(self, of: Interval) -> Markup:
        return Markup('<span class="unknown">—</span>') + self._reason(of)

    def _between(self, of: Interval, write: Callable[[float], str]) -> Markup:
        shown = Markup(' <span class="interval">{}</span>')
        if of.low is None or of.high is None:
            return shown.format(self._say("figure.no_interval")) + self._reason(of)
        return shown.format(self._say("figure.between", low=write(of.low), high=write(of.high)))

    def _reason(self, of: Interval) -> Markup:
        if not of.reason:
            return Markup("")
        return Markup(' <small class="reason">{}</small>').format(self._told.shown(of.reason))


def number(count: float) -> str:
    return f"{count:,.0f}"


def rate(value: float) -> str:
    """Two digits, and more where two would read as certainty, or as even."""
    shown = f"{value:.2f}"
    for digits in (3, 4):
        if float(shown) in _TELLING and value not in _TELLING:
            shown = f"{value:.{digits}f}"
    return shown


def _percent(share: float) -> str:
    shown = f"{100 * share:.1f}"
    for digits in (2, 3):
        if float(shown) in (0, 50, 100) and share not in _TELLING:
            shown = f"{100 * share:.{digits}f}"
    return shown


def dollars(amount: float | None) -> str:
    if amount is None:
        return "—"
    if amount == 0:
        return "$0"
    return f"${amount:,.2f}" if amount >= 0.1 else f"${amount:.2g}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "—"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def p_value(p: float) -> str:
    return f"p < {_SMALLEST_P:g}" if p < _SMALLEST_P else f"p = {p:.2g}"


def moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
