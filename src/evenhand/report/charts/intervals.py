"""Rows of a name, a point with its interval, and the numbers beside it; and named shares drawn so.
Loads Altair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from evenhand.report.charts.labels import (
    ENGLISH,
    ChartWords,
    distinct,
    percent,
    percent_range,
    shortened,
)
from evenhand.report.charts.style import (
    COLOURS,
    LABEL_COLUMNS,
    LABEL_PIXELS,
    MUTED,
    PLOT_WIDTH,
    SENTENCE_COLUMNS,
    SHAPES,
    heading,
    in_order,
    names_axis,
    panel,
    sentence_chart,
    share_axis,
    titled,
)
from evenhand.stats.estimates import EstimatedShare

MOST_SERIES = len(COLOURS)
_MARK_STEP = 20
_ROW_GAP = 8
# So many names, and they have to move together.
_MANY = 24
_TIGHT_STEP = 18
_TOOLTIP_COLUMNS = 200
# Where the columns of numbers begin, in pixels right of the plot.
_COLUMNS = (20, 74, 170)


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

    axis: alt.Axis
    domain: tuple[float, float]
    headings: tuple[str, str, str]
    middle: float | None = None


def interval_chart(
    rows: Sequence[IntervalRow],
    scale: NumberScale,
    *,
    title: str,
    lines: Sequence[str] = (),
    say: ChartWords = ENGLISH,
) -> alt.LayerChart:
    """`rows` are in the order in which they are drawn, those of a name together."""
    names = _labels((row.name for row in rows), LABEL_COLUMNS)
    series = _labels((row.series for row in rows), 2 * LABEL_COLUMNS)
    chart = alt.Chart()
    place = _place(list(names.values()), list(series.values()))
    layers = [
        *_marks(chart, scale, place, list(series.values()), say),
        *_numbers(chart, place),
        *(
            heading(text, PLOT_WIDTH + left)
            for text, left in zip(scale.headings, _COLUMNS, strict=True)
        ),
    ]
    if scale.middle is not None:
        layers.insert(0, _middle(scale.middle))
    return panel(
        layers,
        rows=_values(rows, names, series),
        width=PLOT_WIDTH,
        height=len(names) * row_height(len(names), series=len(series)),
        title=titled(title, *lines),
    )


def row_height(names: int, *, series: int = 1) -> int:
    """The pixels of a name, with a mark for each series."""
    if names > _MANY and series == 1:
        return _TIGHT_STEP
    return _MARK_STEP * series + _ROW_GAP


def _values(
    rows: Sequence[IntervalRow], names: dict[str, str], series: dict[str, str]
) -> list[dict[str, Any]]:
    places = {name: place for place, name in enumerate(series)}
    return [
        {
            "name": names[row.name],
            "whole_name": shortened(row.name, _TOOLTIP_COLUMNS),
            "series": series[row.series],
            "place": places[row.series],
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


def _labels(names: Iterable[str], columns: int) -> dict[str, str]:
    once = list(dict.fromkeys(names))
    return dict(zip(once, distinct(once, columns), strict=True))


def _place(names: Sequence[str], series: Sequence[str]) -> dict[str, Any]:
    gap = _ROW_GAP / row_height(len(names), series=len(series)) if len(series) > 1 else 0.0
    bands = in_order(names, type="band", paddingInner=gap, paddingOuter=gap / 2)
    place: dict[str, Any] = {"y": alt.Y("name:N", axis=names_axis(), scale=bands)}
    if len(series) > 1:
        # By its number and in plain order: Vega-Lite would sort it like the colours otherwise,
        # by an expression that holds the names.
        place["yOffset"] = alt.YOffset("place:O", sort="ascending")
    return place


def _marks(
    chart: alt.Chart,
    scale: NumberScale,
    place: dict[str, Any],
    series: Sequence[str],
    say: ChartWords,
) -> list[alt.Chart]:
    numbers = alt.Scale(domain=list(scale.domain), nice=False)
    tooltip = [
        alt.Tooltip("whole_name:N", title=say("name")),
        *([alt.Tooltip("series:N", title=say("of"))] if len(series) > 1 else []),
        alt.Tooltip("value_text:N", title=scale.headings[0]),
        alt.Tooltip("interval_text:N", title=scale.headings[1]),
        alt.Tooltip("count_text:N", title=scale.headings[2]),
    ]
    stroke, symbol = _colours(series)

    def across(low: str, high: str) -> dict[str, Any]:
        at = alt.X(f"{low}:Q", scale=numbers, axis=scale.axis)
        return {"x": at, "x2": alt.X2(high), **place, **stroke}

    return [
        chart.mark_rule(strokeWidth=1.5, strokeDash=[2, 2]).encode(
            **across("outer_low", "outer_high")
        ),
        chart.mark_rule(strokeWidth=8, strokeOpacity=0.35).encode(
            **across("low", "high"), tooltip=tooltip
        ),
        chart.mark_point(filled=True, size=80, strokeWidth=1.5, opacity=1).encode(
            x=alt.X("value:Q", scale=numbers, axis=scale.axis),
            fillOpacity=alt.FillOpacity("filled:Q", scale=None, legend=None),
            tooltip=tooltip,
            **place,
            **stroke,
            **symbol,
        ),
    ]


def _colours(series: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The colour of lines, and the colour and shape of points, which make one legend."""
    if len(series) == 1:
        return {"stroke": alt.value(COLOURS[0])}, {"color": alt.value(COLOURS[0])}
    legend = alt.Legend(
        title=None, orient="top", columns=1, labelLimit=2 * LABEL_PIXELS, labelFontSize=11
    )
    colours = in_order(series, range=list(COLOURS[: len(series)]))
    shapes = in_order(series, range=list(SHAPES[: len(series)]))
    return (
        {"stroke": alt.Stroke("series:N", scale=colours, legend=None)},
        {
            "color": alt.Color("series:N", scale=colours, legend=legend),
            "shape": alt.Shape("series:N", scale=shapes, legend=legend),
        },
    )


def _middle(value: float) -> alt.Chart:
    chart = alt.Chart(alt.InlineData(values=[{"middle": value}]))
    rule: alt.Chart = chart.mark_rule(color=MUTED, strokeWidth=1.2).encode(x="middle:Q")
    return rule


def _numbers(chart: alt.Chart, place: dict[str, Any]) -> list[alt.Chart]:
    """Beside each row its numbers in columns, or in their place the reason why it has none."""
    first, second, third = _COLUMNS

    def column(field: str, left: int, **look: Any) -> alt.Chart:
        texts: alt.Chart = chart.mark_text(
            align="left", baseline="middle", fontSize=12, **look
        ).encode(x=alt.value(PLOT_WIDTH + left), text=f"{field}:N", **place)
        return texts

    return [
        column("value_text", first, fontWeight="bold"),
        column("interval_text", second),
        column("count_text", third, color=MUTED),
        column("reason", first, color=MUTED, fontStyle="italic"),
    ]


# Named shares with their intervals, one under the other: a judge beside its yardsticks, or what
# each probe came to.

MOST_SHARES = 60


@dataclass(frozen=True, slots=True)
class NamedShare:
    name: str
    share: EstimatedShare


def share_chart(
    shares: Sequence[NamedShare],
    say: ChartWords = ENGLISH,
    *,
    title: str,
    lines: Sequence[str] = (),
    level: float = 0.95,
    unit: str = "pair",
    middle: float | None = None,
) -> alt.LayerChart:
    shown = shares[:MOST_SHARES]
    if not shown:
        return sentence_chart(title, say("nothing"))
    return interval_chart(
        [_row(each, say, unit) for each in shown],
        NumberScale(
            axis=share_axis(say("share")),
            domain=(0.0, 1.0),
            headings=(say("share"), say("interval", percent=f"{100 * level:g}"), say("from")),
            middle=middle,
        ),
        title=title,
        lines=[line for line in lines if line],
        say=say,
    )


def _row(each: NamedShare, say: ChartWords, unit: str) -> IntervalRow:
    share = each.share
    low, high = share.low, share.high
    bounded = low is not None and high is not None
    return IntervalRow(
        name=each.name,
        series="",
        value=share.value,
        low=low,
        high=high,
        value_text="" if share.value is None else percent(share.value),
        interval_text=(
            percent_range(low, high, say) if low is not None and high is not None else ""
        ),
        count_text="" if share.value is None else say.counted(share.of, unit),
        reason=(
            None
            if share.value is not None and bounded
            else say.sentence(share.reason or "not enough data")
        ),
    )
