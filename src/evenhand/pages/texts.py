"""Prompts and responses as a page shows them: rendered or raw, and what differs marked."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from evenhand.pages.differences import Span, compare_parts, marked
from evenhand.pages.markdown import Document, is_renderable

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
    """`alike` is the share of words that both have; None where nothing is marked."""

    a: ShownText
    b: ShownText
    alike: float | None


def show_text(text: str, *, rendered: bool) -> ShownText:
    if rendered and is_renderable(text):
        return ShownText(Document(text).html(), raw=False, cut=0, length=len(text))
    return _raw(text, None)


def show_responses(a: str, b: str, *, rendered: bool, differences: bool) -> ShownResponses:
    if rendered and is_renderable(a) and is_renderable(b):
        first, second = Document(a), Document(b)
        found = compare_parts(first.parts, second.parts) if differences else None
        return ShownResponses(
            ShownText(first.html(found and found.a), raw=False, cut=0, length=len(a)),
            ShownText(second.html(found and found.b), raw=False, cut=0, length=len(b)),
            found and found.alike,
        )
    found = compare_parts([a], [b]) if differences else None
    return ShownResponses(
        _raw(a, found.a[0] if found else None),
        _raw(b, found.b[0] if found else None),
        found and found.alike,
    )


def _raw(text: str, spans: list[Span] | None) -> ShownText:
    kept = text[:MOST_SHOWN]
    # Texts whose differences are marked are shorter than what is shown of one.
    html = marked(spans if spans is not None else [Span(kept, differs=False)])
    return ShownText(html, raw=True, cut=len(text) - len(kept), length=len(text))
