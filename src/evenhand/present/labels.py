"""The texts of charts: labels, and names and numbers shortened to one printable line."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from evenhand.messages import LabelCatalogue, render
from evenhand.messages.numbers import tenths
from evenhand.quantities import counted
from evenhand.report.files import JOINERS, MARKS, plain


class ChartWords(LabelCatalogue):
    """`say("win_rate")`: a label of charts."""

    def __call__(self, key: str, **values: Any) -> str:
        return super().__call__(f"drawing.{key}", **values)

    def outcome(self, kind: str) -> str:
        return super().__call__(f"outcome.{kind}")

    def counted(self, count: int, noun: str) -> str:
        return render(counted(count, noun.replace(" ", "_")), self.language)

    def sentence(self, sentence: str) -> str:
        """A reason or a note of the statistics."""
        return render(sentence, self.language)


ENGLISH = ChartWords("en")


# Names and numbers as the texts of a chart: one line, short, only what can be seen.

# What lies deeper inside a text than that is never drawn.
_MOST_READ = 1000


def shortened(text: str, most: int) -> str:
    """At most so many columns of a line. Names differ at both ends, so the middle goes."""
    if len(text) > 2 * _MOST_READ:
        text = f"{text[:_MOST_READ]}…{text[-_MOST_READ:]}"
    text = plain(text)
    if _columns(text) <= most:
        return text
    tail_columns = (most - 1) // 3
    tail = _leading(text[::-1], tail_columns)[::-1]
    return f"{_leading(text, most - 1 - tail_columns)}…{tail}"


def distinct(names: Iterable[str], most: int) -> list[str]:
    """A short text for each name, no two alike: two names must not share a row."""
    taken: set[str] = set()
    labels = []
    for name in names:
        short = label = shortened(name, most)
        count = 1
        while label in taken:
            count += 1
            label = f"{short} ({count})"
        taken.add(label)
        labels.append(label)
    return labels


def percent(share: float) -> str:
    return f"{tenths(share)}%"


def percent_range(low: float, high: float, say: ChartWords = ENGLISH) -> str:
    return say("range", low=tenths(low), high=tenths(high))


def listed(parts: Sequence[str]) -> str:
    return " · ".join(part for part in parts if part)


def _columns(text: str) -> int:
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in MARKS or char in JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _leading(text: str, most: int) -> str:
    used = 0
    for end, char in enumerate(text):
        used += _width(char)
        if used > most:
            return text[:end]
    return text


# How wide a text is at most, whatever font it is shown in: in DejaVu Sans and Verdana, which are
# wider than most, as parts of the letters' height. What goes beyond a picture is cut off.

_NARROW = frozenset("iIjlftr.,:;'|!()[]{} /-")
_WIDE = frozenset("mwMWQ%@&—…")
_BOLD = 1.14


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    return sum(map(_letter_width, text)) * size * (_BOLD if bold else 1.0)


def _letter_width(char: str) -> float:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.42
    if char in _WIDE:
        return 1.0
    return 0.79 if char.isupper() else 0.64 if char.isascii() else 0.9
