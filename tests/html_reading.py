"""A page's HTML, parsed as a browser would: elements, texts, and what could do harm.

`ATTACKS` would do something in a browser where a page took them for markup: each sets
`window.harmed`, opens a dialog, asks the network, or bends the page out of shape. Invisible
characters are written as escapes, so that this file shows what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()  # noqa: SIM905
)
_ADDRESSES = ("href", "src", "action", "formaction", "xlink:href", "poster", "data")


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    within: tuple[Element, ...] = ()
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


class Html(HTMLParser):
    """`elements` in their order; each has all the text inside of it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        self.elements.append(found)
        if tag not in _VOID:
            self._open.append(found)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self._open and self._open[-1] is self.elements[-1]:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place].tag == tag:
                del self._open[place:]
                return

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.texts.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """With these attributes; `class_` is one of an element's classes."""
        wanted_class = attributes.pop("class_", None)
        return [
            each
            for each in self.elements
            if each.tag == tag
            and all(each.attributes.get(name) == value for name, value in attributes.items())
            and (wanted_class is None or wanted_class in each.attributes.get("class", "").split())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found

    def by_id(self, name: str) -> Element:
        (found,) = [each for each in self.elements if each.attributes.get("id") == name]
        return found

    @property
    def text(self) -> str:
        return self.elements[0].text

    @property
    def links(self) -> list[str]:
        return [each.attributes["href"] for each in self.all("a") if "href" in each.attributes]


def harm_in(page: Html) -> list[str]:
    """Whatever could run, load from elsewhere, or break our policy; a page of ours has none."""
    found: list[str] = []
    for each in page.elements:
        if each.tag == "script" and not each.attributes.get("src", "").startswith("/static/"):
            found.append("script")
        if each.tag in ("iframe", "object", "embed", "base", "style", "foreignobject"):
            found.append(each.tag)
        if each.tag == "img" and not each.attributes.get("src", "").startswith("/"):
            found.append(f"img {each.attributes.get('src')}")
        for name, value in each.attributes.items():
            if name.startswith("on") or name in ("style", "srcdoc"):
                found.append(f"{each.tag} {name}")
            if name in _ADDRESSES:
                scheme = value.strip().lower().partition(":")[0] if ":" in value else ""
                local = value.startswith(("/", "#", "?")) and not value.startswith("//")
                if not local and scheme not in ("http", "https", "mailto"):
                    found.append(f"{each.tag} {name}={value[:40]}")
    return found


HARM = "window.harmed=true"
ELSEWHERE = "http://127.0.0.1:9"  # where nothing may be asked for


@dataclass(frozen=True)
class Attack:
    name: str
    text: str


_TEXTS = {
    "script-tag": f"<script>{HARM}</script>",
    "script-from-elsewhere": f'<script src="{ELSEWHERE}/harm.js"></script>',
    "script-in-capitals": f"<ScRiPt>{HARM}</sCrIpT>",
    "end-of-script": f"</script><script>{HARM}</script>",
    "end-of-textarea": f"</textarea><script>{HARM}</script>",
    "end-of-title": f"</title><script>{HARM}</script>",
    "end-of-comment": f"--><script>{HARM}</script><!--",
    "end-of-data": f"]]><script>{HARM}</script>",
    "image-error": f"<img src=x onerror={HARM}>",
    "svg-load": f"<svg onload={HARM}><circle r=9 /></svg>",
    "svg-script": f"<svg><script>{HARM}</script></svg>",
    "svg-animate": f"<svg><animate onbegin={HARM} attributeName=x dur=1s></svg>",
    "svg-foreign": f"<svg><foreignObject><img src=x onerror={HARM}></foreignObject></svg>",
    "mathml": f"<math><mtext><img src=x onerror={HARM}></mtext></math>",
    "end-of-attribute": f'"><img src=x onerror={HARM}>',
    "end-of-quote": f"' autofocus onfocus='{HARM}' x='",
    "toggled": f"<details open ontoggle={HARM}><summary>x</summary></details>",
    "frame": f'<iframe srcdoc="<script>parent.harmed=true</script>"></iframe>{HARM}',
    "form": f'<form action="{ELSEWHERE}/take"><button autofocus>Log in</button></form>',
    "base": f'<base href="{ELSEWHERE}/">',
    "refresh": f'<meta http-equiv="refresh" content="0; url={ELSEWHERE}/">',
    "style": f"<style>body {{ display: none; background: url({ELSEWHERE}/seen) }}</style>",
    "style-sheet": f'<link rel="stylesheet" href="{ELSEWHERE}/harm.css">',
    "javascript-link": f"<a href=javascript:{HARM}>open</a>",
    "markdown-javascript": f"[open](javascript:{HARM})",
    "markdown-entity": f"[open](javascript&colon;{HARM})",
    "markdown-spaced": f"[open](java\tscript:{HARM})",
    "markdown-data": f"[open](data:text/html,<script>{HARM}</script>)",
    "markdown-image": f"![seen]({ELSEWHERE}/seen.png)",
    "markdown-quote": f'[open](http://x.example/"onmouseover="{HARM}")',
    "markdown-reference": f"[open][r]\n\n[r]: javascript:{HARM}",
    "markdown-autolink": f"<javascript:{HARM}>",
    "markdown-html-block": f"<div>\n\n<img src=x onerror={HARM}>\n\n</div>",
    "markdown-fence": f"```html onload={HARM}\n<script>{HARM}</script>\n```",
    "template": "{{ 7 * 7 }} {% raw %} ${7 * 7} #{7 * 7} <%= 7 * 7%>",
    "number-format": "%s %n {0} {0.__class__}",
    "huge-word": "w" * 5_000,
    "right-to-left": "\u202egnp.exe\u202c \u2067\u0634\u0631\u062d\u2069 \u202d",
    "unclosed-right-to-left": "\u202e\u2067\u202b never closed",
    "stacked-marks": "Z" + "\u0351\u0352\u0353\u0354" * 60,
    "zero-width": "a\u200bb\u200dc\ufeffd\u2028e\u2029f",
    "surrogates-and-plane-16": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0010ffff",
}
ATTACKS = tuple(Attack(name, text) for name, text in _TEXTS.items())
