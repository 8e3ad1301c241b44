"""Pictures that stand alone: panels of texts and of the pages' drawings, laid out by how wide their
texts are, with the pages' colours for light and dark.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evenhand.messages import Language
from evenhand.present.labels import shortened, text_width

MARGIN = 16.0
PLOT_WIDTH = 400.0
_GAP = 16.0
_LINE = 18.0
_SIZES = {"title": (15.0, True), "bold": (12.0, True), "small": (11.0, False)}
_PALETTE = re.compile(r":root\s*\{([^}]*)\}")
_COLOUR = re.compile(r"(--[\w-]+):\s*([^;]+);")
_RULE = re.compile(r"^[.\w][^{}\n]*\{[^{}]*\}$", re.MULTILINE)


@cache
def drawings() -> Any:
    """The macros that pages draw with."""
    environment = Environment(
        loader=PackageLoader("evenhand.present"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["known"] = lambda value: value is not None
    return environment.get_template("_drawings.html").module


@cache
def colours() -> str:
    """The palettes and the rules of drawings, as pages use them."""
    return files("evenhand.present").joinpath("drawings.css").read_text("utf-8")


@cache
def _style() -> str:
    """With the colours themselves: not every program that shows an SVG knows variables."""
    light, dark = (dict(_COLOUR.findall(each)) for each in _PALETTE.findall(colours()))
    rules = _RULE.findall(_PALETTE.sub("", colours()))

    def painted(rules: Iterable[str], palette: dict[str, str]) -> str:
        return "\n".join(
            re.sub(r"var\((--[\w-]+)\)", lambda name: palette[name[1]], rule) for rule in rules
        )

    varied = [rule for rule in rules if "var(" in rule]
    by_night = f"@media (prefers-color-scheme: dark) {{\n{painted(varied, dark)}\n}}"
    return f"{painted(rules, light)}\n{by_night}"


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """One chart: its parts stand right of and below its corner. `described` says in words what it
    shows, for who cannot see it."""

    title: str
    width: float
    height: float
    parts: tuple[Markup, ...]
    described: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels under one another, or side by side."""

    panels: tuple[ChartPanel, ...]
    language: Language
    beside: bool = False

    @property
    def title(self) -> str:
        return " · ".join(panel.title for panel in self.panels)

    @property
    def described(self) -> str:
        return "\n".join(line for panel in self.panels for line in (panel.title, *panel.described))

    def svg(self) -> str:
        placed, x, y, width, height = [], MARGIN, MARGIN, 0.0, 0.0
        for panel in self.panels:
            placed.append(
                Markup('<g transform="translate({:g} {:g})">{}</g>').format(
                    x, y, Markup("\n").join(panel.parts)
                )
            )
            width, height = max(width, x + panel.width), max(height, y + panel.height)
            x, y = (x + panel.width + 48, y) if self.beside else (x, y + panel.height + 32)
        size = Markup('width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}"').format(
            width + MARGIN, height + MARGIN
        )
        return Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" lang="{}" '
            'aria-labelledby="title desc" {}>\n<title id="title">{}</title>\n'
            '<desc id="desc">{}</desc>\n<style>{}</style>\n{}\n'
            '<rect class="ground" width="100%" height="100%"/>\n{}\n</svg>\n'
        ).format(
            self.language,
            size,
            self.title,
            self.described,
            Markup(_style()),  # noqa: S704 - our own file
            drawings().patterns(),
            Markup("\n").join(placed),
        )

    def image(self) -> Markup:
        """For a page of somebody else: what is inside cannot touch it, nor its style this."""
        address = base64.b64encode(self.svg().encode()).decode()
        return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">').format(
            self.described, address
        )

    def _repr_html_(self) -> str:
        return self.image()


def text(x: float, y: float, content: str, kind: str = "", *, anchor: str = "start") -> Markup:
    """`y` is where the line's middle is."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        kind, x, y + 4, anchor, content
    )


def drawn(x: float, y: float, width: float, height: float, drawing: Markup) -> Markup:
    """One of the pages' drawings, whose places are shares of its width."""
    return Markup(
        '<svg x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" overflow="visible">{}</svg>'
    ).format(x, y, width, height, drawing)


def widest(texts: Iterable[str], kind: str = "") -> float:
    size, bold = _SIZES.get(kind, (12.0, False))
    return max((text_width(each, size, bold=bold) for each in texts), default=0.0)


@dataclass(frozen=True, slots=True)
class Heading:
    title: str
    lines: Sequence[str] = ()

    @property
    def height(self) -> float:
        return 26.0 + _LINE * len(self.lines)

    @property
    def width(self) -> float:
        return max(widest([self.title], "title"), widest(self.lines, "small"))

    def parts(self) -> list[Markup]:
        below = [text(0, 26 + _LINE * at, line, "small") for at, line in enumerate(self.lines)]
        return [text(0, 6, self.title, "title"), *below]


def sentence_panel(heading: Heading, sentence: str) -> ChartPanel:
    """In place of a chart that has nothing to draw."""
    at = heading.height + 8
    return ChartPanel(
        heading.title,
        max(heading.width, widest([sentence])),
        at + 10,
        (*heading.parts(), text(0, at, sentence, "quiet")),
        (*heading.lines, sentence),
    )


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """`value`, `low`, `high` and `worst` are shares of the scale; `numbers` are the texts beside
    them, in whose place `reason` stands where there are none. `side` has its colour where it is
    clearly better."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    numbers: tuple[str, str, str]
    of: str = ""
    reason: str | None = None
    side: str | None = None
    worst: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class NumberScale:
    """`ticks` are places on it with their texts; `even` is where neither side is better."""

    axis: str
    ticks: Sequence[tuple[float, str]]
    headings: tuple[str, str, str]
    even: float | None = None


def interval_panel(heading: Heading, rows: Sequence[IntervalRow], scale: NumberScale) -> ChartPanel:
    """A line for each row: its name, its interval on one scale, its numbers. Rows of one name are
    together."""
    names = widest(row.name for row in rows)
    series = widest((row.of for row in rows), "small")
    plot = names + (series and series + _GAP / 2) + _GAP
    columns = [plot + PLOT_WIDTH + _GAP]
    for at, kind in ((0, "bold"), (1, "")):
        beside = max(
            widest((row.numbers[at] for row in rows), kind), widest([scale.headings[at]], "small")
        )
        columns.append(columns[-1] + beside + _GAP)
    top = heading.height + _LINE
    step = 24.0 if len(rows) <= 24 else 20.0
    bottom = top + step * len(rows)
    parts = heading.parts()
    parts += [
        text(column, top - 10, title, "small")
        for column, title in zip(columns, scale.headings, strict=True)
    ]
    for place, label in scale.ticks:
        x = plot + PLOT_WIDTH * place
        parts.append(
            Markup('<path class="grid" d="M{:.1f} {:.1f}V{:.1f}"/>').format(x, top, bottom)
        )
        parts.append(text(x, bottom + 10, label, "small", anchor="middle"))
    parts.append(text(plot + PLOT_WIDTH / 2, bottom + 28, scale.axis, "small", anchor="middle"))
    for at, row in enumerate(rows):
        middle = top + step * (at + 0.5)
        if at == 0 or rows[at - 1].name != row.name:
            parts.append(text(0, middle, row.name))
        parts += [text(names + _GAP / 2, middle, row.of, "small")] if row.of else []
        line = drawings().interval_line(
            row.value, row.low, row.high, row.side, scale.even, row.worst
        )
        parts.append(drawn(plot, middle - 8, PLOT_WIDTH, 16, line))
        parts += _numbers(row, columns, middle)
    right = max(
        columns[2] + widest(row.numbers[2] for row in rows),
        columns[2] + widest([scale.headings[2]], "small"),
        columns[0] + widest(row.reason or "" for row in rows),
        heading.width,
    )
    return ChartPanel(heading.title, right, bottom + 36, tuple(parts), _described(heading, rows))


def _numbers(row: IntervalRow, columns: Sequence[float], middle: float) -> list[Markup]:
    numbers = [
        text(column, middle, number, kind)
        for column, number, kind in zip(columns, row.numbers, ("bold", "", "quiet"), strict=True)
        if number
    ]
    if row.reason:
        at = columns[0] if row.value is None else columns[1]
        numbers = [*numbers[:1], text(at, middle, row.reason, "quiet")]
    return numbers


def _described(heading: Heading, rows: Sequence[IntervalRow]) -> tuple[str, ...]:
    spoken = (
        ", ".join(part for part in (row.of, *row.numbers, row.reason or "") if part) for row in rows
    )
    return (
        *heading.lines,
        *(f"{row.name}: {said}" for row, said in zip(rows, spoken, strict=True)),
    )


SHARE_TICKS = ((0.0, "0%"), (0.25, "25%"), (0.5, "50%"), (0.75, "75%"), (1.0, "100%"))
_BAR = 28.0


def outcome_panel(
    heading: Heading,
    rows: Sequence[tuple[str, Sequence[int]]],
    *,
    kinds: Sequence[tuple[str, str]],
    axis: str,
) -> ChartPanel:
    """A bar for each row, with the counts of `kinds`, which are drawn so and called so."""
    plot = widest(name for name, _ in rows) + _GAP
    columns, at = [], plot + PLOT_WIDTH + _GAP
    for place, (_, word) in enumerate(kinds):
        at += 16 + max(widest([word], "small"), widest(f"{counts[place]:,}" for _, counts in rows))
        columns.append(at)
        at += _GAP
    top = heading.height + _LINE
    bottom = top + _BAR * len(rows)
    parts = heading.parts()
    for (kind, word), right in zip(kinds, columns, strict=True):
        parts.append(text(right, top - 10, word, "small", anchor="end"))
        key = right - widest([word], "small") - 16
        parts.append(drawn(key, top - 16, 12, 12, drawings().key(kind)))
    for place, (name, counts) in enumerate(rows):
        middle = top + _BAR * (place + 0.5)
        bar = [(kind, count, None) for (kind, _), count in zip(kinds, counts, strict=True)]
        parts.append(text(0, middle, name))
        parts.append(drawn(plot, middle - 9, PLOT_WIDTH, 18, drawings().outcome_bar(bar, 18)))
        parts += [
            text(right, middle, f"{count:,}", anchor="end")
            for count, right in zip(counts, columns, strict=True)
        ]
    for share, label in SHARE_TICKS:
        parts.append(text(plot + PLOT_WIDTH * share, bottom + 10, label, "small", anchor="middle"))
    parts.append(text(plot + PLOT_WIDTH / 2, bottom + 28, axis, "small", anchor="middle"))
    described = [
        f"{name}: "
        + ", ".join(f"{word} {count:,}" for (_, word), count in zip(kinds, counts, strict=True))
        for name, counts in rows
    ]
    return ChartPanel(
        heading.title,
        max(columns[-1], heading.width),
        bottom + 36,
        tuple(parts),
        (*heading.lines, *described),
    )


_CELL = (38.0, 24.0)


def matrix_panel(
    heading: Heading,
    names: Sequence[str],
    cells: Sequence[Sequence[tuple[float, str] | None]],
    *,
    against: str,
) -> ChartPanel:
    """Each cell is a share in the pages' tones, by its class; none where a name meets itself."""
    wide, high = _CELL
    left = widest(names) + _GAP
    turned = widest(names) * 0.7071 + 8  # names of columns rise at 45 degrees
    top = heading.height + turned + 8
    parts = heading.parts()
    described = []
    for column, name in enumerate(names):
        parts.append(
            Markup('<text transform="translate({:.1f} {:.1f}) rotate(-45)">{}</text>').format(
                left + wide * (column + 0.5), top - 6, name
            )
        )
    for row, (name, shares) in enumerate(zip(names, cells, strict=True)):
        y = top + high * row
        parts.append(text(0, y + high / 2, name))
        for column, cell in enumerate(shares):
            x = left + wide * column
            kind = "blank" if cell is None else cell[1]
            parts.append(
                Markup(
                    '<rect class="cell {}" x="{:.1f}" y="{:.1f}" width="{:g}" height="{:g}"{}/>'
                ).format(kind, x, y, wide, high, "" if kind else Markup(' fill="none"'))
            )
            if cell is not None:
                share = f"{100 * cell[0]:.0f}"
                parts.append(text(x + wide / 2, y + high / 2, share, anchor="middle"))
                described.append(f"{name} {against} {names[column]}: {share}%")
    width = max(left + wide * len(names) + turned, heading.width)
    return ChartPanel(
        heading.title,
        width,
        top + high * len(names),
        tuple(parts),
        (*heading.lines, *described),
    )


def reliability_panel(
    heading: Heading,
    points: Sequence[Any],
    described: Sequence[str],
    *,
    series: Sequence[tuple[str, str]],
    axes: tuple[str, str],
) -> ChartPanel:
    """`points` are rows with `at`, `value`, `low`, `high` and the series that they are `of`."""
    size = 1.5
    top = heading.height + _LINE
    parts = heading.parts()
    x = 46 * size
    for kind, word in series:
        parts.append(
            Markup(
                '<g class="reliability"><circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5"/></g>'
            ).format(kind, x + 6, top - 8)
        )
        parts.append(text(x + 18, top - 8, word, "small"))
        x += 18 + widest([word], "small") + _GAP
    diagram = drawings().reliability(points, *axes)
    parts.append(drawn(0, top + 4, 300 * size, 284 * size, diagram))
    return ChartPanel(
        heading.title,
        max(300 * size, heading.width),
        top + 4 + 284 * size,
        tuple(parts),
        (*heading.lines, *described),
    )


def brief(sentence: str, most: int = 72) -> str:
    """A reason or a note, on one line of a chart."""
    return shortened(sentence, most)
