"""A page's HTML, parsed as a browser would: elements, texts, and what could do harm."""

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
