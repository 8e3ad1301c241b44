"""Markdown that strangers wrote, as HTML that can do nothing: no HTML of theirs, no images, links
to web pages and mail alone. What differs from another text can be marked in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from evenhand.pages.differences import Span, marked

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

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

    def html(self, spans: Sequence[Sequence[Span]] | None = None) -> Markup:
        shown = spans or [(Span(part, differs=False),) for part in self.parts]
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
    parser.validateLink = _may_be_linked  # type: ignore[method-assign]
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
