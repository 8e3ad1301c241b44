"""Prompts and responses as a page shows them: strangers' Markdown made inert, or raw, with the
words that differ marked.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from evenhand.report.records import PairReport
    from evenhand.store import ItemVote


# A word, a CJK sign, a run of spaces, or any other sign.
_TOKEN = re.compile(
    r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]"
    r"|[^\W_]+|\s+|[\W_]",
    re.UNICODE,
)
MOST_CHARACTERS = 200_000
_FULL_AT_MOST = 10_000  # cells of a gap that is compared word by word
_DEPTH = 12
# Of gaps without a word that stands once in both: so many tokens at a time, so many times.
_WINDOW, _WINDOWS = 100, 100
# Texts with less in common are two texts: most of both would be marked, and say nothing.
WORTH_MARKING = 0.6
# A match this short between two differences is chance, and makes them hard to read.
_LEAST_MATCH = 3


class DiffSpan(NamedTuple):
    text: str
    differs: bool


class Differences(NamedTuple):
    """Each text's parts as spans, in their order. `alike` is the share of words in both."""

    a: list[list[DiffSpan]]
    b: list[list[DiffSpan]]
    alike: float


class _Match(NamedTuple):
    a: int
    b: int
    size: int


def compare_parts(a: Sequence[str], b: Sequence[str]) -> Differences | None:
    """None where they are too long.

    Exchanged texts have exchanged differences: whichever of two equal readings is found, it is
    found from the same text. Not difflib's: 12,000 signs of 180 kinds take it 0.45 s of CPU, and
    twice as many four times that; this takes 0.01 s.
    """
    if sum(map(len, a)) > MOST_CHARACTERS or sum(map(len, b)) > MOST_CHARACTERS:
        return None
    if list(b) < list(a):
        exchanged = _compared(b, a)
        return Differences(exchanged.b, exchanged.a, exchanged.alike)
    return _compared(a, b)


def _compared(a: Sequence[str], b: Sequence[str]) -> Differences:
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
    return Differences(_spans(tokens_a, same_a), _spans(tokens_b, same_b), alike)


def marked(spans: Sequence[DiffSpan]) -> Markup:
    """As HTML; what differs is in a `mark`."""
    return Markup("").join(
        Markup("<mark>{}</mark>").format(text) if differs else escape(text)
        for text, differs in spans
    )


def _is_word(token: str) -> bool:
    return token[0].isalnum()


def _matches(a: Sequence[str], b: Sequence[str]) -> list[_Match]:
    """In the order of both texts."""
    matches: list[_Match] = []
    gaps = [(0, len(a), 0, len(b), _DEPTH)]
    windows = iter(range(_WINDOWS))
    while gaps:
        low_a, high_a, low_b, high_b, depth = gaps.pop()
        start = low_a
        while low_a < high_a and low_b < high_b and a[low_a] == b[low_b]:
            low_a, low_b = low_a + 1, low_b + 1
        if low_a > start:
            matches.append(_Match(start, low_b - (low_a - start), low_a - start))
        end = high_a
        while low_a < high_a and low_b < high_b and a[high_a - 1] == b[high_b - 1]:
            high_a, high_b = high_a - 1, high_b - 1
        if high_a < end:
            matches.append(_Match(high_a, high_b, end - high_a))
        if low_a == high_a or low_b == high_b:
            continue
        if (high_a - low_a) * (high_b - low_b) <= _FULL_AT_MOST:
            matches += _longest_common(a, b, low_a, high_a, low_b, high_b)
            continue
        anchors = _anchors(a, b, low_a, high_a, low_b, high_b) if depth else []
        at_a, at_b = low_a, low_b
        for anchor_a, anchor_b in anchors:
            gaps.append((at_a, anchor_a, at_b, anchor_b, depth - 1))
            matches.append(_Match(anchor_a, anchor_b, 1))
            at_a, at_b = anchor_a + 1, anchor_b + 1
        if anchors:
            gaps.append((at_a, high_a, at_b, high_b, depth - 1))
        elif _have_most_in_common(a[low_a:high_a], b[low_b:high_b]):
            matches += _in_windows(a, b, low_a, high_a, low_b, high_b, windows)
    return sorted(matches)


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


def _have_most_in_common(a: Sequence[str], b: Sequence[str]) -> bool:
    """In whatever order: else a closer look would find chance alone."""
    words = [Counter(filter(_is_word, each)) for each in (a, b)]
    shared = (words[0] & words[1]).total()
    return shared > WORTH_MARKING * max(each.total() for each in words)


def _in_windows(
    a: Sequence[str],
    b: Sequence[str],
    low_a: int,
    high_a: int,
    low_b: int,
    high_b: int,
    windows: Iterator[int],
) -> Iterator[_Match]:
    """Of texts that repeat themselves: each window begins behind the last match of the one before,
    or half a window on, so that no text takes long."""
    for _ in windows:
        if low_a >= high_a or low_b >= high_b:
            return
        ends = min(low_a + _WINDOW, high_a), min(low_b + _WINDOW, high_b)
        found = list(_longest_common(a, b, low_a, ends[0], low_b, ends[1]))
        yield from found
        low_a = max([low_a + _WINDOW // 2, *(each.a + 1 for each in found[-1:])])
        low_b = max([low_b + _WINDOW // 2, *(each.b + 1 for each in found[-1:])])


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


def _spans(parts: Sequence[Sequence[str]], same: bytearray) -> list[list[DiffSpan]]:
    spans: list[list[DiffSpan]] = []
    at = 0
    for part in parts:
        own: list[DiffSpan] = []
        text: list[str] = []
        differs = False
        for token in part:
            now = not same[at]
            at += 1
            if text and now != differs:
                own.append(DiffSpan("".join(text), differs))
                text = []
            differs = now
            text.append(token)
        if text:
            own.append(DiffSpan("".join(text), differs))
        spans.append(own)
    return spans


# Markdown that strangers wrote, as HTML that can do nothing: no HTML of theirs, no images, links
# to web pages and mail alone. What differs from another text can be marked in it.

# Longer ones are shown as they are: nobody waits for a page that formats a book.
LONGEST = 30_000
# And so is what consists of little else than marks: each may open something that ends far behind.
MOST_MARKS = 4_000
_MARKS = "[]*_`~<!"
_NESTED_AT_MOST = 20
_LINKS = ("http://", "https://", "mailto:")
# What is text to a reader, in the order of reading.
_TEXTS = frozenset({"text", "code_inline", "code_block", "fence"})


class Document:
    """`parts` are its texts, in their order; `html` may be given each part as spans."""

    def __init__(self, text: str) -> None:
        self._tokens = _plain(_parser().parse(text))
        self._texts = [token for token in _each(self._tokens) if token.type in _TEXTS]

    @property
    def parts(self) -> list[str]:
        return [token.content for token in self._texts]

    def html(self, spans: Sequence[Sequence[DiffSpan]] | None = None) -> Markup:
        shown = spans or [(DiffSpan(part, differs=False),) for part in self.parts]
        for token, its_spans in zip(self._texts, shown, strict=True):
            token.meta["shown"] = marked(its_spans)
        parser = _parser()
        # Each piece of it was escaped by the rules below, or by the renderer itself.
        # The parser takes no HTML and escapes every text that it renders.
        return Markup(parser.renderer.render(self._tokens, parser.options, {}))  # noqa: S704


def is_renderable(text: str) -> bool:
    return len(text) <= LONGEST and sum(map(text.count, _MARKS)) <= MOST_MARKS


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTED_AT_MOST})
    parser.enable(["table", "strikethrough"])
    # The parser's own way to be told which links are allowed is to set this.
    parser.validateLink = _may_be_linked  # type: ignore[method-assign]  # its documented way
    for kind, rule in {
        "text": _text,
        "code_inline": _code,
        "code_block": _block,
        "fence": _block,
        "image": _image,
    }.items():
        parser.add_render_rule(kind, rule)
    return parser


def _may_be_linked(url: str) -> bool:
    return url.strip().lower().startswith(_LINKS)


def _each(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        # What an image shows is its description, which is text of ours to escape, not marked.
        if token.children and token.type != "image":
            yield from _each(token.children)


def _plain(tokens: list[Token]) -> list[Token]:
    """Without what our pages forbid (styles) or need for themselves (headings, other classes)."""
    for token in _each(tokens):
        if token.type in ("heading_open", "heading_close"):
            level = token.tag.removeprefix("h")
            token.tag = "p"
            token.attrs = {"class": f"heading heading-{level}"} if token.nesting == 1 else {}
        elif token.type == "link_open":
            href = str(token.attrs.get("href", ""))
            linked = {"href": href, "rel": "noopener noreferrer nofollow", "target": "_blank"}
            # An empty address is never asked whether it may be linked; it would be this page's.
            token.attrs = {**linked} if _may_be_linked(href) else {}
        elif token.type in ("th_open", "td_open"):
            aligned = str(token.attrs.get("style", "")).removeprefix("text-align:")
            token.attrs = {"class": f"to-{aligned}"} if aligned in ("right", "center") else {}
    return tokens


def _text(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return str(tokens[at].meta["shown"]) if "shown" in tokens[at].meta else _escaped(tokens[at])


def _code(*given: Any) -> str:
    return f"<code>{_text(*given)}</code>"


def _block(*given: Any) -> str:
    return f'<pre tabindex="0"><code>{_text(*given)}</code></pre>\n'


def _image(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    """Never loaded: the address would tell its owner who looks at this page."""
    token = tokens[at]
    address = escape(token.attrs.get("src", ""))
    shown = escape(_described(token)) or address
    if not _may_be_linked(address):
        return str(shown)
    return (
        f'<a class="image" href="{address}" rel="noopener noreferrer nofollow" '
        f'target="_blank">{shown}</a>'
    )


def _described(image: Token) -> str:
    """As plain text, without what its description has of Markdown."""
    return "".join(
        "\n" if each.type in ("softbreak", "hardbreak") else each.content
        for each in _each(image.children or ())
        if each.type in _TEXTS or each.type in ("softbreak", "hardbreak", "image")
    )


def _escaped(token: Token) -> str:
    return str(escape(token.content))


# A response may have 50 million signs; a page that shows more than this helps nobody.
MOST_SHOWN = 300_000


@dataclass(frozen=True, slots=True)
class ShownText:
    """`raw`: as it was written, in a `pre`. `cut`: how many signs are left out at its end."""

    html: Markup
    raw: bool
    cut: int
    length: int


@dataclass(frozen=True, slots=True)
class ShownResponses:
    """`alike` is the share of words that both have; None where they were not compared: then nothing
    is marked. Else what differs is, and the page shows it or not."""

    a: ShownText
    b: ShownText
    alike: float | None

    @property
    def worth_marking(self) -> bool:
        return self.alike is not None and self.alike > WORTH_MARKING


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A pair as pages and the report in one file show it."""

    report: PairReport
    votes: tuple[ItemVote, ...]
    prompt: ShownText
    context: ShownText | None
    reference: ShownText | None
    responses: ShownResponses


def show_pair_texts(
    report: PairReport,
    votes: Sequence[ItemVote] = (),
    *,
    rendered: bool = True,
) -> ShownPair:
    pair = report.pair
    return ShownPair(
        report=report,
        votes=tuple(votes),
        prompt=show_text(pair.prompt, rendered=rendered),
        context=None if pair.context is None else show_text(pair.context, rendered=rendered),
        reference=None if pair.reference is None else show_text(pair.reference, rendered=rendered),
        responses=show_responses(pair.response_a, pair.response_b, rendered=rendered),
    )


def show_text(text: str, *, rendered: bool) -> ShownText:
    if rendered and is_renderable(text):
        return ShownText(Document(text).html(), raw=False, cut=0, length=len(text))
    return _raw(text, None)


def show_responses(a: str, b: str, *, rendered: bool, compare: bool = True) -> ShownResponses:
    as_documents = rendered and is_renderable(a) and is_renderable(b)
    first, second = (Document(a), Document(b)) if as_documents else (None, None)
    parts = (first.parts, second.parts) if first and second else ([a], [b])
    found = compare_parts(*parts) if compare else None
    alike = None if found is None else found.alike
    if first and second:
        own, other = (None, None) if found is None else (found.a, found.b)
        return ShownResponses(
            ShownText(first.html(own), raw=False, cut=0, length=len(a)),
            ShownText(second.html(other), raw=False, cut=0, length=len(b)),
            alike,
        )
    return ShownResponses(
        _raw(a, found.a[0] if found else None),
        _raw(b, found.b[0] if found else None),
        alike,
    )


def _raw(text: str, spans: list[DiffSpan] | None) -> ShownText:
    kept = text[:MOST_SHOWN]
    # Texts whose differences are marked are shorter than what is shown of one.
    html = marked(spans if spans is not None else [DiffSpan(kept, differs=False)])
    return ShownText(html, raw=True, cut=len(text) - len(kept), length=len(text))
