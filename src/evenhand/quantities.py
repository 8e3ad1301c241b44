"""Counts, shares, rates and intervals as messages, so that every reader gets them in their own
language; how many digits a number has is decided in `messages.numbers`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from evenhand.messages import Message
from evenhand.messages.numbers import dollars as dollars
from evenhand.messages.numbers import number, rate, tenths, thousandths

# For analyses, which write numbers beside messages.
count = number


class AnyEstimate(Protocol):
    """A figure with its interval, or the reason why there is none."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...


class AnyShare(AnyEstimate, Protocol):
    @property
    def part(self) -> int: ...
    @property
    def of(self) -> int: ...


def counted(number: int, noun: str) -> Message:
    """`1 pair`, `2 pairs`; the nouns are in the catalogue under [count]."""
    return Message(f"count.{noun}", n=number)


def listed(texts: Iterable[str]) -> Message:
    return Message("figure.listed", each=list(texts))


def interval(low: float, high: float) -> Message:
    return Message("figure.interval", low=rate(low), high=rate(high))


def rate_with_interval(value: float, low: float, high: float) -> Message:
    return Message("figure.rate", rate=rate(value), interval=interval(low, high))


def _few(estimate: AnyEstimate) -> str:
    return estimate.reason or Message("figure.not_enough")


def share(estimate: AnyEstimate) -> str:
    """`58.1% (50.2 to 65.3)`, or why it is not known."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return _few(estimate)
    value, low, high = map(tenths, (estimate.value, estimate.low, estimate.high))
    return Message("figure.share", value=value, low=low, high=high)


def share_as_rate(estimate: AnyShare) -> str:
    """In a table that has the counts in other columns."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        few = "no_data" if not estimate.of else "too_few"
        return Message(f"figure.{few}", part=estimate.part, of=estimate.of)
    return rate_with_interval(estimate.value, estimate.low, estimate.high)


def counted_share(estimate: AnyShare) -> Message:
    """`12 of 40: 0.30 (0.18 to 0.45)`."""
    counts = {"part": estimate.part, "of": estimate.of}
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return Message("figure.counted_few", reason=_few(estimate), **counts)
    known = rate_with_interval(estimate.value, estimate.low, estimate.high)
    return Message("figure.counted", share=known, **counts)


def value(estimate: AnyEstimate) -> str:
    """`0.123 (0.045 to 0.201)`, of a figure that is no share."""
    if estimate.value is None:
        return _few(estimate)
    shown = thousandths(estimate.value)
    if estimate.low is None or estimate.high is None:
        return Message("figure.value_alone", value=shown, reason=estimate.reason or "")
    low, high = thousandths(estimate.low), thousandths(estimate.high)
    return Message("figure.value", value=shown, low=low, high=high)
