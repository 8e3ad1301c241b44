"""Room for the texts of a drawn chart, whatever font they are shown in.

Whoever draws an SVG measures its texts in a font of its own; a browser shows them in the reader's,
which may be wider, and cuts off what goes beyond the picture. So the picture is made as large as
its texts are in the widest of the usual fonts.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"
_ROOT = re.compile(
    r'(<svg [^>]*?)width="([\d.]+)" height="([\d.]+)" viewBox="0 0 [\d.]+ [\d.]+"(>\s*)'
    r'(?:<rect width="[\d.]+" height="[\d.]+"( [^>]*?)/>)?'
)
_STEP = re.compile(r"(translate|rotate|scale)\(([^)]*)\)")
_MARGIN = 4.0
# In DejaVu Sans and Verdana, which are wider than most, as parts of the letters' height.
_NARROW = frozenset("iIjlftr.,:;'|!()[]{} /-")
_WIDE = frozenset("mwMWQ%@&—…")
_BOLD = 1.14


@dataclass(frozen=True, slots=True)
class _Plane:
    """Where a point of an element is in the picture: x' = a x + c y + e, y' = b x + d y + f."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def inside(self, transform: str) -> _Plane:
        plane = self
        for kind, given in _STEP.findall(transform):
            numbers = [float(each) for each in re.split(r"[\s,]+", given.strip())]
            if kind == "translate":
                own = _Plane(e=numbers[0], f=numbers[1] if len(numbers) > 1 else 0.0)
            elif kind == "scale":
                own = _Plane(a=numbers[0], d=numbers[-1])
            else:  # about the origin: nothing here is turned about another point
                angle = math.radians(numbers[0])
                sine, cosine = math.sin(angle), math.cos(angle)
                own = _Plane(cosine, sine, -sine, cosine)
            plane = plane._times(own)
        return plane

    def _times(self, own: _Plane) -> _Plane:
        e, f = self.at(own.e, own.f)
        return _Plane(
            self.a * own.a + self.c * own.b,
            self.b * own.a + self.d * own.b,
            self.a * own.c + self.c * own.d,
            self.b * own.c + self.d * own.d,
            e,
            f,
        )


def with_room(svg: str) -> str:
    """The same picture, with its edges moved out to where its texts may end."""
    head = _ROOT.match(svg)
    if head is None:
        return svg
    width, height = float(head[2]), float(head[3])
    # What is read here was drawn a moment ago, and names are no markup in it.
    corners = list(_corners(ElementTree.fromstring(svg), _Plane()))  # noqa: S314 - our own picture
    left = math.floor(min([0.0, *(x - _MARGIN for x, _ in corners)]))
    top = math.floor(min([0.0, *(y - _MARGIN for _, y in corners)]))
    wide = math.ceil(max([width, *(x + _MARGIN for x, _ in corners)])) - left
    high = math.ceil(max([height, *(y + _MARGIN for _, y in corners)])) - top
    size = f'width="{wide}" height="{high}"'
    ground = f'<rect x="{left}" y="{top}" {size}{head[5]}/>' if head[5] else ""
    start = f'{head[1]}{size} viewBox="{left} {top} {wide} {high}"{head[4]}{ground}'
    return start + svg[head.end() :]


def _corners(element: ElementTree.Element, plane: _Plane) -> Iterator[tuple[float, float]]:
    plane = plane.inside(element.get("transform", ""))
    if element.tag == f"{_SVG}text":
        yield from _corners_of_text(element, plane)
    else:
        for each in element:
            yield from _corners(each, plane)


def _corners_of_text(element: ElementTree.Element, plane: _Plane) -> Iterator[tuple[float, float]]:
    if element.get("opacity") == "0":
        return
    size = float((element.get("font-size") or "11").removesuffix("px"))
    bold = _BOLD if element.get("font-weight") in ("bold", "600", "700") else 1.0
    lines = [each.text or "" for each in element] or [element.text or ""]
    wide = max(map(_width, lines)) * size * bold
    left = {"middle": -wide / 2, "end": -wide}.get(element.get("text-anchor", ""), 0.0)
    for x in (left, left + wide):
        for y in (-size, (len(lines) - 0.7) * size):
            yield plane.at(x, y)


def _width(text: str) -> float:
    return sum(map(_width_of, text))


def _width_of(char: str) -> float:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.42
    if char in _WIDE:
        return 1.0
    return 0.79 if char.isupper() else 0.64 if char.isascii() else 0.9
