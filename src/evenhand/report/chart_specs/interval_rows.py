"""Rows of a name, a point with its interval, and the numbers beside it: most charts are that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from evenhand.report.chart_specs.labels import distinct, plain, shortened
from evenhand.report.chart_specs.look import (
    COLOURS,
    LABEL_COLUMNS,
    LABEL_PIXELS,
    MUTED,
    PLOT_WIDTH,
    SENTENCE_COLUMNS,
    SHAPES,
    names_axis,
    numbers_axis,
    panel,
    titled,
)

MOST_SERIES = len(COLOURS)
_MARK_STEP = 20
_ROW_GAP = 8
# Where the columns of numbers begin, in pixels right of the plot.
_COLUMNS = (18, 72, 164)


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """`reason` stands in the place of numbers that are not known."""

    name: str
    series: str
    value: float | None
    low: float | None
    high: float | None
    value_text: str
    interval_text: str
    count_text: str
    reason: str | None = None
    outer_low: float | None = None
    outer_high: float | None = None


@dataclass(frozen=True, slots=True)
class NumberScale:
    """The axis, and the headings of the columns of numbers beside it."""

    title: str
    format: str
    headings: tuple[str, str, str]
    domain: tuple[float, float] | None = None
    middle: float | None = None


def interval_chart(
    rows: Sequence[IntervalRow], scale: NumberScale, *, title: str, lines: Sequence[str] = ()
) -> alt.LayerChart:
    """`rows` are in the order in which they are drawn, those of a name together."""
    series = list(dict.fromkeys(row.series for row in rows))
    data = alt.InlineData(values=_values(rows, series))
    place = _place(len(series))
    names = len({row.name for row in rows})
    layers = [
        *_marks(alt.Chart(data), scale, place, several=len(series) > 1),
        *_numbers(alt.Chart(data), place),
        *_headings(scale),
    ]
    if scale.middle is not None:
        layers.insert(0, _middle(scale.middle))
    return panel(
        layers,
        width=PLOT_WIDTH,
        height=names * (_MARK_STEP * len(series) + _ROW_GAP),
        title=titled(title, *lines),
    )


def _values(rows: Sequence[IntervalRow], series: Sequence[str]) -> list[dict[str, Any]]:
    names = list(dict.fromkeys(row.name for row in rows))
    labels = dict(zip(names, distinct(names, LABEL_COLUMNS), strict=True))
    shown = dict(zip(series, distinct(series, 2 * LABEL_COLUMNS), strict=True))
    return [
        {
            "name": labels[row.name],
            "whole_name": plain(row.name),
            "series": shown[row.series],
            "value": row.value,
            "low": row.low,
            "high": row.high,
            "outer_low": row.outer_low,
            "outer_high": row.outer_high,
            # A point without an interval is hollow.
            "filled": 0 if row.low is None or row.high is None else 1,
            "value_text": row.value_text,
            "interval_text": row.interval_text,
            "count_text": row.count_text,
            "reason": "" if row.reason is None else shortened(row.reason, SENTENCE_COLUMNS),
        }
        for row in rows
    ]


def _place(series: int) -> dict[str, Any]:
    # Rows stay in the order of the data; sorting by a list would put names into expressions.
    place: dict[str, Any] = {
        "y": alt.Y("name:N", sort=None, axis=names_axis(), scale=alt.Scale(padding=0.1))
    }
    if series > 1:
        place["yOffset"] = alt.YOffset("series:N", sort=None)
    return place


def _marks(
    chart: alt.Chart, scale: NumberScale, place: dict[str, Any], *, several: bool
) -> list[alt.Chart]:
    number_scale = alt.Scale(zero=False, nice=scale.domain is None)
    if scale.domain is not None:
        number_scale = alt.Scale(domain=list(scale.domain), nice=False)
    axis = numbers_axis(title=scale.title, format=scale.format)

    def across(low: str, high: str) -> dict[str, Any]:
        return {"x": alt.X(f"{low}:Q", scale=number_scale, axis=axis), "x2": alt.X2(high)}

    colour: dict[str, Any] = {"color": alt.value(COLOURS[0])}
    look = dict(colour)
    if several:
        legend = alt.Legend(
            title=None, orient="top", columns=1, labelLimit=2 * LABEL_PIXELS, labelFontSize=11
        )
        colour["color"] = alt.Color(
            "series:N", sort=None, scale=alt.Scale(range=list(COLOURS)), legend=legend
        )
        shape_scale = alt.Scale(range=list(SHAPES))
        look = {
            **colour,
            "shape": alt.Shape("series:N", sort=None, scale=shape_scale, legend=legend),
        }
    tooltip = [
        alt.Tooltip("whole_name:N", title="name"),
        alt.Tooltip("series:N", title="of"),
        alt.Tooltip("value_text:N", title=scale.headings[0]),
        alt.Tooltip("interval_text:N", title=scale.headings[1]),
        alt.Tooltip("count_text:N", title=scale.headings[2]),
    ]
    return [
        chart.mark_rule(strokeWidth=1.5, strokeDash=[2, 2]).encode(
            **across("outer_low", "outer_high"), **place, **colour
        ),
        chart.mark_rule(strokeWidth=8, opacity=0.35).encode(
            **across("low", "high"), **place, **colour, tooltip=tooltip
        ),
        chart.mark_point(filled=True, size=90, opacity=1, strokeWidth=1.5).encode(
            x=alt.X("value:Q", scale=number_scale, axis=axis),
            fillOpacity=alt.FillOpacity("filled:Q", scale=None, legend=None),
            tooltip=tooltip,
            **place,
            **look,
        ),
    ]


def _middle(value: float) -> alt.Chart:
    chart = alt.Chart(alt.InlineData(values=[{"middle": value}]))
    return chart.mark_rule(color=MUTED, strokeWidth=1.2).encode(x="middle:Q")


def _numbers(chart: alt.Chart, place: dict[str, Any]) -> list[alt.Chart]:
    """Beside each row its numbers in columns, or in their place the reason why it has none."""
    first, second, third = _COLUMNS

    def column(field: str, left: int, **look: Any) -> alt.Chart:
        marked = chart.mark_text(align="left", baseline="middle", fontSize=12, **look)
        return marked.encode(x=alt.value(PLOT_WIDTH + left), text=f"{field}:N", **place)

    return [
        column("value_text", first, fontWeight="bold"),
        column("interval_text", second),
        column("count_text", third, color=MUTED),
        column("reason", first, color=MUTED, fontStyle="italic"),
    ]


def _headings(scale: NumberScale) -> list[alt.Chart]:
    return [
        alt.Chart(alt.InlineData(values=[{"heading": heading}]))
        .mark_text(align="left", baseline="bottom", fontSize=10, color=MUTED)
        .encode(x=alt.value(PLOT_WIDTH + left), y=alt.value(-4), text="heading:N")
        for heading, left in zip(scale.headings, _COLUMNS, strict=True)
    ]
