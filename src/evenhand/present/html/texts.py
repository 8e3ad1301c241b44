"""Prompts and responses as a page shows them: strangers' Markdown made inert, or raw, with the
words that differ marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from functools import cache
from itertools import accumulate, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from evenhand.report.records import PairReport
    from evenhand.store import ItemVote


# A word, a CJK sign or any other sign, with the spaces behind it.
_CJK = r"\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_TOKEN = re.compile(rf"(?:[^\W_{_CJK}]+|\S)\s*|\s+")
MOST_CHARACTERS = 200_000
# What a comparison may take, in steps of difflib's inner loop: a fifth of a second.
_MOST_STEPS = 1_000_000
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


class _TooFarApart(Exception):
    """Comparing would take too long."""


class _Matcher(SequenceMatcher[str]):
    """Ends once it has taken its steps: texts are strangers', and some take difflib for ever."""

    def __init__(self, a: Sequence[str], b: Sequence[str], *, autojunk: bool) -> None:
        super().__init__(None, a, b, autojunk=autojunk)
        # Documented, and not in typeshed.
        places: Mapping[str, list[int]] = self.b2j  # type: ignore[attr-defined]
        self._steps = list(accumulate((1 + len(places.get(each, ())) for each in a), initial=0))
        self._left = _MOST_STEPS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        self._left -= self._steps[-1 if ahi is None else ahi] - self._steps[alo]
        if self._left < 0:
            raise _TooFarApart
        return super().find_longest_match(alo, ahi, blo, bhi)


def compare_parts(a: Sequence[str], b: Sequence[str]) -> Differences | None:
    """None where they are too long, or too far apart to compare in time.

    Exchanged texts have exchanged differences: whichever of two equal readings is found, it is
    found from the same text.
    """
    if sum(map(len, a)) > MOST_CHARACTERS or sum(map(len, b)) > MOST_CHARACTERS:
        return None
    try:
        if list(b) < list(a):
            exchanged = _compared(b, a)
            return Differences(exchanged.b, exchanged.a, exchanged.alike)
        return _compared(a, b)
    except _TooFarApart:
        return None


def _compared(a: Sequence[str], b: Sequence[str]) -> Differences:
    tokens_a, tokens_b = [_TOKEN.findall(part) for part in a], [_TOKEN.findall(part) for part in b]
    flat_a = [token.rstrip() for part in tokens_a for token in part]
    flat_b = [token.rstrip() for part in tokens_b for token in part]
    same_a, same_b = bytearray(len(flat_a)), bytearray(len(flat_b))
    shared = 0
    for match in _matches(flat_a, flat_b):
        if not _is_readable(match, flat_a, flat_b):
            continue
        same_a[match.a : match.a + match.size] = b"\1" * match.size
        same_b[match.b : match.b + match.size] = b"\1" * match.size
        shared += sum(map(_is_word, flat_a[match.a : match.a + match.size]))
    words = max(sum(map(_is_word, flat_a)), sum(map(_is_word, flat_b)))
    alike = shared / words if words else 1.0
    return Differences(_spans(tokens_a, same_a), _spans(tokens_b, same_b), alike)


def _matches(a: Sequence[str], b: Sequence[str]) -> Iterator[Match]:
    """Beginnings and ends that are the same cost nothing; of long texts between them, words that
    stand everywhere are not looked for."""
    most = min(len(a), len(b))
    begun = next((at for at in range(most) if a[at] != b[at]), most)
    ended = next((at for at in range(most - begun) if a[-1 - at] != b[-1 - at]), most - begun)
    inner = a[begun : len(a) - ended], b[begun : len(b) - ended]
    try:
        found = _Matcher(*inner, autojunk=False).get_matching_blocks()
    except _TooFarApart:
        found = _Matcher(*inner, autojunk=True).get_matching_blocks()
    yield Match(0, 0, begun)
    yield from (Match(each.a + begun, each.b + begun, each.size) for each in found)
    yield Match(len(a) - ended, len(b) - ended, ended)


def marked(spans: Sequence[DiffSpan]) -> Markup:
    """As HTML; what differs is in a `mark`."""
    return Markup("").join(
        Markup("<mark>{}</mark>").format(text) if differs else escape(text)
        for text, differs in spans
    )


def _is_word(token: str) -> bool:
    return token[:1].isalnum()


def _is_readable(match: Match, a: Sequence[str], b: Sequence[str]) -> bool:
    at_start = match.a == match.b == 0
    at_end = match.a + match.size == len(a) and match.b + match.size == len(b)
    text = "".join(a[match.a : match.a + match.size])
    return at_start or at_end or len(text.strip()) >= _LEAST_MATCH


def _spans(parts: Sequence[Sequence[str]], same: bytearray) -> list[list[DiffSpan]]:
    places = iter(same)
    return [list(_joined(part, places)) for part in parts]


def _joined(tokens: Sequence[str], places: Iterator[int]) -> Iterator[DiffSpan]:
    """The spaces at the end of a difference are none of it."""
    told = [(token, not same) for token, same in zip(tokens, places, strict=False)]
    behind = ""
    for differs, group in groupby(told, key=itemgetter(1)):
        text = behind + "".join(token for token, _ in group)
        kept = text.rstrip() if differs else text
        behind = text[len(kept) :]
        if kept:
            yield DiffSpan(kept, differs)
    if behind:
        yield DiffSpan(behind, differs=False)


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
