"""Small drawings inside a table: an interval on a line, shares as one bar. As SVG without a style
or a script; what it shows stands beside it in figures, so readers of screens skip it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

_WIDTH = 160.0
_HEIGHT = 16
_MIDDLE = _HEIGHT / 2
_OPEN = Markup(
    '<svg class="{}" viewBox="0 0 {:g} {}" width="{:g}" height="{}" aria-hidden="true" '
    'focusable="false"{}>'
)


def interval_line(value: float | None, low: float | None, high: float | None) -> Markup:
    """From 0 to 1, with a tick at the middle; nothing where there is no figure."""
    if value is None:
        return Markup("")
    shapes = [
        _line("axis", 0, _WIDTH, _MIDDLE),
        Markup('<line class="even" x1="{0:g}" x2="{0:g}" y1="1" y2="{1}"/>').format(
            _WIDTH / 2, _HEIGHT - 1
        ),
    ]
    if low is not None and high is not None:
        shapes.append(_line("range", _at(low), _at(high), _MIDDLE))
    shapes.append(Markup('<circle cx="{:.1f}" cy="{:g}" r="4"/>').format(_at(value), _MIDDLE))
    return _drawn("interval-line", shapes)


def share_bar(counts: Sequence[tuple[str, int]]) -> Markup:
    """Each kind's share of all, in the order that is given; a kind is a class of the style."""
    total = sum(count for _, count in counts)
    shapes: list[Markup] = []
    at = 0.0
    for kind, count in counts:
        width = _WIDTH * count / total if total else 0.0
        if width:
            shapes.append(
                Markup(
                    '<rect class="part-{}" x="{:.2f}" y="2" width="{:.2f}" height="{}"/>'
                ).format(kind, at, width, _HEIGHT - 4)
            )
        at += width
    return _drawn("share-bar", shapes, stretched=True)


def _at(share: float) -> float:
    return _WIDTH * min(1.0, max(0.0, share))


def _line(kind: str, start: float, end: float, height: float) -> Markup:
    shape = Markup('<line class="{0}" x1="{1:.1f}" x2="{2:.1f}" y1="{3:g}" y2="{3:g}"/>')
    return shape.format(kind, start, end, height)


def _drawn(kind: str, shapes: Sequence[Markup], *, stretched: bool = False) -> Markup:
    ratio = Markup(' preserveAspectRatio="none"') if stretched else ""
    opening = _OPEN.format(kind, _WIDTH, _HEIGHT, _WIDTH, _HEIGHT, ratio)
    return opening + Markup("").join(shapes) + Markup("</svg>")
