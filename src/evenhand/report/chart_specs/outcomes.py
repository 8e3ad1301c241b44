"""The outcomes of each comparison as parts of a bar, with their counts."""

from __future__ import annotations

from typing import Any

import altair as alt

from evenhand.report.chart_specs.comparisons import name_comparisons, subject
from evenhand.report.chart_specs.labels import distinct
from evenhand.report.chart_specs.look import (
    COLOURS,
    LABEL_COLUMNS,
    PLOT_WIDTH,
    names_axis,
    numbers_axis,
    panel,
    sentence_chart,
    titled,
)
from evenhand.report.chart_specs.rates import MOST_ROWS
from evenhand.report.conclusions import Conclusion, Conclusions

# Won is dark, lost is its counterpart, and what is neither lies between them in greys.
_PARTS = ("won", "tie", "inconsistent", "lost", "invalid")
_SHADES = (COLOURS[0], "#c9c9c9", "#9a9a9a", "#E69F00", "#3d3d3d")
_ROW_HEIGHT = 28
# A narrower part has no room for its count.
_LEAST_SHARE = 0.045


def outcome_chart(conclusions: Conclusions) -> alt.LayerChart:
    title = "Outcomes"
    found = conclusions.conclusions[:MOST_ROWS]
    if not any(sum(_counts(each)) for each in found):
        return sentence_chart(title, "nothing was judged yet")
    names = distinct(name_comparisons(conclusions.conclusions), LABEL_COLUMNS)
    data = alt.InlineData(
        values=[
            part for name, each in zip(names, found, strict=False) for part in _parts(name, each)
        ]
    )
    return panel(
        _layers(alt.Chart(data)),
        width=PLOT_WIDTH,
        height=_ROW_HEIGHT * len(found),
        title=titled(title, *([f"of {subject(found)}"] if subject(found) else [])),
    )


def _counts(each: Conclusion) -> tuple[int, ...]:
    counts = each.win_rate.counts
    own, other = counts.wins_a, counts.wins_b
    if each.side == "B":
        own, other = other, own
    return own, counts.ties, counts.inconsistent, other, counts.invalid


def _parts(name: str, each: Conclusion) -> list[dict[str, Any]]:
    counts = _counts(each)
    total = sum(counts) or 1
    parts, start = [], 0
    for kind, count in zip(_PARTS, counts, strict=True):
        parts.append(
            {
                "name": name,
                "outcome": kind,
                "count": count,
                "start": start / total,
                "end": (start + count) / total,
                "middle": (start + count / 2) / total,
                "text": f"{count:,}" if count / total >= _LEAST_SHARE else "",
            }
        )
        start += count
    return parts


def _layers(chart: alt.Chart) -> list[alt.Chart]:
    scale = alt.Scale(domain=[0, 1], nice=False)
    axis = numbers_axis(title="share of pairs", format=".0%")
    place = alt.Y("name:N", sort=None, axis=names_axis(), scale=alt.Scale(padding=0.15))
    legend = alt.Legend(
        title=None, orient="top", direction="horizontal", symbolType="square", labelFontSize=11
    )
    shade = alt.Color(
        "outcome:N",
        sort=None,
        legend=legend,
        scale=alt.Scale(domain=list(_PARTS), range=list(_SHADES)),
    )
    tooltip = [
        alt.Tooltip("name:N", title="of"),
        alt.Tooltip("outcome:N", title="outcome"),
        alt.Tooltip("count:Q", title="pairs", format=","),
    ]
    on_dark = alt.condition(
        alt.FieldOneOfPredicate(field="outcome", oneOf=["won", "invalid"]),
        alt.value("white"),
        alt.value("#222"),
    )
    return [
        chart.mark_bar(stroke="white", strokeWidth=1).encode(
            x=alt.X("start:Q", scale=scale, axis=axis),
            x2="end:Q",
            y=place,
            color=shade,
            tooltip=tooltip,
        ),
        chart.mark_text(fontSize=11).encode(
            x=alt.X("middle:Q", scale=scale, axis=axis), y=place, text="text:N", color=on_dark
        ),
    ]
