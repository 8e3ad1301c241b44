"""Which words of two texts are in one of them alone. Its time grows with their length, not with
its square: words that stand once in each text hold them together, and short gaps are compared
in full."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

# A word, a CJK sign, a run of spaces, or any other sign.
_TOKEN = re.compile(
    r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]"
    r"|[^\W_]+|\s+|[\W_]",
    re.UNICODE,
)
MOST_CHARACTERS = 200_000
_FULL_AT_MOST = 10_000  # cells of a gap that is compared word by word
_DEPTH = 12
# Texts with less in common are two texts, and marks on all of it would say nothing.
_LEAST_ALIKE = 0.15
# A match this short between two differences is chance, and makes them hard to read.
_LEAST_MATCH = 3


class Span(NamedTuple):
    text: str
    differs: bool


class Differences(NamedTuple):
    """Each text's parts as spans, in their order. `alike` is the share of words in both."""

    a: list[list[Span]]
    b: list[list[Span]]
    alike: float


class _Match(NamedTuple):
    a: int
    b: int
    size: int


def compare_parts(a: Sequence[str], b: Sequence[str]) -> Differences | None:
    """None where they are too long, or have too little in common to be worth marking.

    Exchanged texts have exchanged differences: whichever of two equal readings is found, it is
    found from the same text.
    """
    if sum(map(len, a)) > MOST_CHARACTERS or sum(map(len, b)) > MOST_CHARACTERS:
        return None
    if list(b) < list(a):
        exchanged = _compared(b, a)
        return exchanged and Differences(exchanged.b, exchanged.a, exchanged.alike)
    return _compared(a, b)


def _compared(a: Sequence[str], b: Sequence[str]) -> Differences | None:
    tokens_a, tokens_b = [_TOKEN.findall(part) for part in a], [_TOKEN.findall(part) for part in b]
    flat_a = [token for part in tokens_a for token in part]
    flat_b = [token for part in tokens_b for token in part]
    same_a, same_b = bytearray(len(flat_a)), bytearray(len(flat_b))
    shared = 0
    for match in _joined(_matches(flat_a, flat_b)):
        if not _is_readable(match, flat_a, flat_b):
            continue
        same_a[match.a : match.a + match.size] = b"\1" * match.size
        same_b[match.b : match.b + match.size] = b"\1" * match.size
        shared += sum(_is_word(token) for token in flat_a[match.a : match.a + match.size])
    words = max(sum(map(_is_word, flat_a)), sum(map(_is_word, flat_b)))
    alike = shared / words if words else 1.0
    if alike < _LEAST_ALIKE:
        return None
    return Differences(_spans(tokens_a, same_a), _spans(tokens_b, same_b), alike)


def marked(spans: Sequence[Span]) -> Markup:
    """As HTML; what differs is in a `mark`."""
    return Markup("").join(
        Markup("<mark>{}</mark>").format(text) if differs else escape(text)
        for text, differs in spans
    )


def _is_word(token: str) -> bool:
    return token[0].isalnum()


def _matches(a: Sequence[str], b: Sequence[str]) -> list[_Match]:
    """In the order of both texts."""
    found: list[_Match] = []
    gaps = [(0, len(a), 0, len(b), _DEPTH)]
    while gaps:
        low_a, high_a, low_b, high_b, depth = gaps.pop()
        start = low_a
        while low_a < high_a and low_b < high_b and a[low_a] == b[low_b]:
            low_a, low_b = low_a + 1, low_b + 1
        if low_a > start:
            found.append(_Match(start, low_b - (low_a - start), low_a - start))
        end = high_a
        while low_a < high_a and low_b < high_b and a[high_a - 1] == b[high_b - 1]:
            high_a, high_b = high_a - 1, high_b - 1
        if high_a < end:
            found.append(_Match(high_a, high_b, end - high_a))
        if low_a == high_a or low_b == high_b:
            continue
        if (high_a - low_a) * (high_b - low_b) <= _FULL_AT_MOST:
            found += _longest_common(a, b, low_a, high_a, low_b, high_b)
            continue
        anchors = _anchors(a, b, low_a, high_a, low_b, high_b) if depth else []
        at_a, at_b = low_a, low_b
        for anchor_a, anchor_b in anchors:
            gaps.append((at_a, anchor_a, at_b, anchor_b, depth - 1))
            found.append(_Match(anchor_a, anchor_b, 1))
            at_a, at_b = anchor_a + 1, anchor_b + 1
        if anchors:
            gaps.append((at_a, high_a, at_b, high_b, depth - 1))
    return sorted(found)


def _anchors(
    a: Sequence[str], b: Sequence[str], low_a: int, high_a: int, low_b: int, high_b: int
) -> list[tuple[int, int]]:
    """The most words that stand once in each gap and in the same order in both (patience)."""
    counts_a, counts_b = Counter(a[low_a:high_a]), Counter(b[low_b:high_b])
    place_b = {
        token: at
        for at, token in enumerate(b[low_b:high_b], start=low_b)
        if counts_b[token] == 1 and counts_a.get(token) == 1
    }
    pairs = [(at, place_b[a[at]]) for at in range(low_a, high_a) if a[at] in place_b]
    # The longest run of pairs that rises in b too.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        at = bisect_left(ends, place)
        before.append(last[at - 1] if at else -1)
        if at == len(ends):
            ends.append(place)
            last.append(index)
        else:
            ends[at] = place
            last[at] = index
    chain: list[tuple[int, int]] = []
    index = last[-1] if last else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _longest_common(
    a: Sequence[str], b: Sequence[str], low_a: int, high_a: int, low_b: int, high_b: int
) -> Iterator[_Match]:
    """A longest common subsequence by the textbook table; the gap is small."""
    rows, columns = high_a - low_a, high_b - low_b
    table = [[0] * (columns + 1)]
    for row in range(rows - 1, -1, -1):
        below, token = table[-1], a[low_a + row]
        line = [0] * (columns + 1)
        for column in range(columns - 1, -1, -1):
            if token == b[low_b + column]:
                line[column] = below[column + 1] + 1
            else:
                line[column] = max(below[column], line[column + 1])
        table.append(line)
    table.reverse()
    row = column = 0
    while row < rows and column < columns:
        if a[low_a + row] == b[low_b + column]:
            yield _Match(low_a + row, low_b + column, 1)
            row, column = row + 1, column + 1
        elif table[row + 1][column] >= table[row][column + 1]:
            row += 1
        else:
            column += 1


def _joined(matches: Sequence[_Match]) -> Iterator[_Match]:
    current: _Match | None = None
    for match in matches:
        if current and match.a == current.a + current.size and match.b == current.b + current.size:
            current = current._replace(size=current.size + match.size)
        else:
            if current:
                yield current
            current = match
    if current:
        yield current


def _is_readable(match: _Match, a: Sequence[str], b: Sequence[str]) -> bool:
    at_start = match.a == match.b == 0
    at_end = match.a + match.size == len(a) and match.b + match.size == len(b)
    text = "".join(a[match.a : match.a + match.size])
    return at_start or at_end or len(text.strip()) >= _LEAST_MATCH


def _spans(parts: Sequence[Sequence[str]], same: bytearray) -> list[list[Span]]:
    spans: list[list[Span]] = []
    at = 0
    for part in parts:
        own: list[Span] = []
        text: list[str] = []
        differs = False
        for token in part:
            now = not same[at]
            at += 1
            if text and now != differs:
                own.append(Span("".join(text), differs))
                text = []
            differs = now
            text.append(token)
        if text:
            own.append(Span("".join(text), differs))
        spans.append(own)
    return spans
