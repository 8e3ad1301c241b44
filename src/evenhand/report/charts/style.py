"""What all charts share: colours, axes, titles, and how a file looks. Loads Altair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt

# What all charts have in common: colours, axes, titles, and the look of a file.

# Okabe and Ito (2008): told apart by the colour-blind; shapes tell them apart in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
# A grey that can be read on white and on black alike.
MUTED = "#767676"
GRID = "#8884"

PLOT_WIDTH = 400
LABEL_COLUMNS = 32
LABEL_PIXELS = 260
SENTENCE_COLUMNS = 72

# Marks carry their own colours; texts and the page are left to whoever shows the chart.
FILE_LOOK: dict[str, Any] = {
    "background": "white",
    "padding": 16,
}

# The grounds and texts of the pages' dark palette.
_DARK_LOOK: dict[str, Any] = {
    "background": "#14171c",
    "padding": 16,
    "style": {"cell": {"stroke": None}, "group-title": {"fill": "#e7eaf0"}},
    "title": {"color": "#e7eaf0", "subtitleColor": "#a7afbd"},
    "axis": {"labelColor": "#e7eaf0", "titleColor": "#a7afbd"},
    "legend": {"labelColor": "#e7eaf0", "titleColor": "#a7afbd"},
    "text": {"color": "#e7eaf0"},
}
_ON_DARK = {MUTED: "#a7afbd", COLOURS[0]: "#56B4E9", COLOURS[5]: "#0072B2", "#3d3d3d": "#cc79a7"}


def on_dark(spec: dict[str, Any]) -> dict[str, Any]:
    """The same chart for a dark page: other grounds and texts, and lighter lines."""
    lit = {name: part if name == "data" else _lit(part) for name, part in spec.items()}
    return {**lit, "config": {**spec.get("config", {}), **_DARK_LOOK}}


def _lit(part: Any) -> Any:
    """Data is left as it is: a name may look like a colour."""
    if isinstance(part, dict):
        return {
            name: value if name in ("data", "datasets", "domain") else _lit(value)
            for name, value in part.items()
        }
    if isinstance(part, list):
        return [_lit(each) for each in part]
    return _ON_DARK.get(part, part) if isinstance(part, str) else part


def titled(text: str, *lines: str) -> alt.TitleParams:
    return alt.TitleParams(
        text=text,
        subtitle=list(lines),
        anchor="start",
        frame="group",
        fontSize=15,
        subtitleFontSize=11,
        subtitleColor=MUTED,
        subtitlePadding=4,
        offset=14,
        limit=900,
    )


def in_order(labels: Sequence[str], **look: Any) -> alt.Scale:
    """Vega-Lite's own orders are the alphabet's, or leave out rows that lack a number; and
    sorting by a list would put names into expressions. A domain is only data."""
    return alt.Scale(domain=list(labels), **look)


def names_axis() -> alt.Axis:
    return alt.Axis(
        title=None,
        domain=False,
        ticks=False,
        labelFontSize=12,
        labelPadding=10,
        labelLimit=LABEL_PIXELS,
        labelOverlap=False,
    )


def share_axis(title: str) -> alt.Axis:
    """From none to all, with a line at each quarter."""
    axis = numbers_axis(title, format=".0%")
    axis.values = [0, 0.25, 0.5, 0.75, 1]
    return axis


def numbers_axis(title: str, *, format: str) -> alt.Axis:  # noqa: A002 - Vega-Lite's own name
    return alt.Axis(
        title=title,
        titleFontSize=11,
        titleFontWeight="normal",
        titleColor=MUTED,
        titlePadding=8,
        format=format,
        labelFontSize=11,
        labelColor=MUTED,
        domain=False,
        ticks=False,
        labelPadding=6,
        labelFlush=False,
        grid=True,
        gridColor=GRID,
        tickCount=5,
    )


def heading(text: str, x: float, *, align: Literal["left", "right"] = "left") -> alt.Chart:
    """Over a column of numbers beside the plot."""
    chart = alt.Chart(alt.InlineData(values=[{"heading": text}]))
    texts: alt.Chart = chart.mark_text(
        align=align, baseline="bottom", fontSize=10, color=MUTED
    ).encode(x=alt.value(x), y=alt.value(-4), text="heading:N")
    return texts


def panel(
    layers: Sequence[alt.Chart],
    *,
    rows: list[dict[str, Any]],
    width: float,
    height: float,
    title: alt.TitleParams,
) -> alt.LayerChart:
    """`rows` are the data of each layer that has none of its own: Altair copies a layer, and
    checks its data anew, at every step."""
    return alt.LayerChart(
        data=alt.InlineData(values=rows),
        layer=list(layers),
        width=width,
        height=height,
        title=title,
        view=alt.ViewBackground(stroke=None, fill=None),
        description=title.text,
    )


def sentence_chart(title: str, sentence: str) -> alt.LayerChart:
    """In place of a chart that has nothing to draw."""
    text = (
        alt.Chart()
        .mark_text(align="left", baseline="middle", fontSize=12, fontStyle="italic", color=MUTED)
        .encode(x=alt.value(0), y=alt.value(10), text="sentence:N")
    )
    rows = [{"sentence": sentence}]
    return panel([text], rows=rows, width=PLOT_WIDTH, height=20, title=titled(title))
