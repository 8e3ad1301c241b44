"""The reliability diagram: predicted against observed accuracy, before and after calibration. Loads
Altair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt

from evenhand.report.charts.labels import (
    ENGLISH,
    ChartWords,
    listed,
    percent,
    percent_range,
    shortened,
)
from evenhand.report.charts.style import (
    COLOURS,
    MUTED,
    PLOT_WIDTH,
    SENTENCE_COLUMNS,
    SHAPES,
    in_order,
    panel,
    sentence_chart,
    share_axis,
    titled,
)
from evenhand.stats.calibration.reliability import CalibrationChange, CalibrationError


def reliability_chart(
    change: CalibrationChange, judge: str, say: ChartWords = ENGLISH
) -> alt.LayerChart:
    title = say("reliability_title")
    series = [(say("after"), change.after_all)]
    if change.before is not None:
        series.insert(0, (say("before"), change.before))
    rows = [row for name, error in series for row in _rows(name, error, say)]
    if not rows:
        return sentence_chart(title, say.sentence(change.after_all.reason or "not enough data"))
    names = [name for name, _ in series]
    colours = COLOURS[:2] if len(names) == 2 else COLOURS[1:2]
    shapes = SHAPES[:2] if len(names) == 2 else SHAPES[1:2]
    chart = alt.Chart().encode(
        x=alt.X("said:Q", axis=share_axis(say("said")), scale=alt.Scale(domain=[0, 1])),
        color=alt.Color(
            "series:N",
            scale=in_order(names, range=list(colours)),
            legend=alt.Legend(title=None, labelFontSize=12, symbolSize=90),
        ),
    )
    limits = chart.mark_rule(strokeWidth=2).encode(
        y=alt.Y("low:Q", axis=share_axis(say("right_share")), scale=alt.Scale(domain=[0, 1])),
        y2="high:Q",
    )
    points = chart.mark_point(filled=True, size=70, opacity=1).encode(
        y=alt.Y("right:Q", scale=alt.Scale(domain=[0, 1])),
        shape=alt.Shape("series:N", scale=in_order(names, range=list(shapes))),
        tooltip=[
            alt.Tooltip("series:N", title=say("confidence")),
            alt.Tooltip("range:N", title=say("bin")),
            alt.Tooltip("right_text:N", title=say("right")),
            alt.Tooltip("count:N", title=say("of")),
        ],
    )
    return panel(
        [_diagonal(), limits, points],
        rows=rows,
        width=PLOT_WIDTH,
        height=PLOT_WIDTH,
        title=titled(
            title,
            listed(
                [shortened(judge, SENTENCE_COLUMNS), say.counted(change.after_all.n, "verdict")]
            ),
            listed(
                [
                    say("series_error", series=name, error=_error(error, say))
                    for name, error in series
                ]
            ),
        ),
    )


def _diagonal() -> alt.Chart:
    """Where what is said is what happens."""
    ends = alt.InlineData(values=[{"at": 0}, {"at": 1}])
    line: alt.Chart = (
        alt.Chart(ends).mark_line(color=MUTED, strokeDash=[4, 4]).encode(x="at:Q", y="at:Q")
    )
    return line


def _rows(series: str, error: CalibrationError, say: ChartWords) -> Iterable[dict[str, Any]]:
    for each in error.bins:
        share = each.share_right
        if share.value is None:
            continue
        yield {
            "series": series,
            "said": each.mean_probability,
            "right": share.value,
            "low": share.value if share.low is None else share.low,
            "high": share.value if share.high is None else share.high,
            "range": percent_range(each.low, each.high, say) + " %",
            "right_text": percent(share.value),
            "count": say.counted(each.n, "verdict"),
        }


def _error(error: CalibrationError, say: ChartWords) -> str:
    if error.error is None:
        return say("error_unknown")
    return say("error", error=f"{error.error:.3f}")
