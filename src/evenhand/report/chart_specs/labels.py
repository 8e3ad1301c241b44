"""Names and numbers as the texts of a chart: one line, short, only what can be seen."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from evenhand.report.chart_specs.words import ENGLISH, ChartWords

# Joiners build letters and emoji; every other invisible format character only misleads.
_JOINERS = frozenset("\u200c\u200d")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MARKS = frozenset({"Mn", "Me"})
# Letters of living languages carry two or three marks; a tower of them hides the rows above.
_MOST_MARKS = 3
# What lies deeper inside a text than that is never drawn.
_MOST_READ = 1000
NAMELESS = "(no name)"


def plain(text: str) -> str:
    """The text on one line, without what a reader cannot see and XML cannot hold."""
    kept: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in _MARKS else 0
        if category in _UNSEEN and char not in _JOINERS:
            kept.append(" " if char.isspace() else "")
        elif marks <= _MOST_MARKS and not _is_noncharacter(char):
            kept.append(char)
    return " ".join("".join(kept).split()) or NAMELESS


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
    return f"{_tenths(share)} %"


def percent_range(low: float, high: float, say: ChartWords = ENGLISH) -> str:
    return say("range", low=_tenths(low), high=_tenths(high))


def listed(parts: Sequence[str]) -> str:
    return " · ".join(part for part in parts if part)


def _tenths(share: float) -> str:
    text = f"{100 * share:.1f}"
    return "0.0" if text == "-0.0" else text


def _is_noncharacter(char: str) -> bool:
    code = ord(char)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _columns(text: str) -> int:
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in _MARKS or char in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _leading(text: str, most: int) -> str:
    used = 0
    for end, char in enumerate(text):
        used += _width(char)
        if used > most:
            return text[:end]
    return text
