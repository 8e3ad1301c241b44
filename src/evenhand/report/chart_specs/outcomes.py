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
    heading,
    in_order,
    names_axis,
    panel,
    sentence_chart,
    share_axis,
    titled,
)
from evenhand.report.chart_specs.rates import MOST_ROWS
from evenhand.report.chart_specs.words import ENGLISH, ChartWords
from evenhand.report.conclusions import Conclusion, Conclusions

# Won is dark, lost is its counterpart, and what is neither lies between them in greys.
_PARTS = ("won", "tie", "inconsistent", "lost", "invalid")
_SHADES = (COLOURS[0], "#dcdcdc", "#8c8c8c", "#E69F00", "#3d3d3d")
_ROW_HEIGHT = 28
# Where the columns of counts end, in pixels right of the plot.
_COLUMNS = (52, 92, 166, 218, 268)


def outcome_chart(conclusions: Conclusions, say: ChartWords = ENGLISH) -> alt.LayerChart:
    title = say("outcomes_title")
    found = conclusions.conclusions[:MOST_ROWS]
    if not any(sum(_counts(each)) for each in found):
        return sentence_chart(title, say("nothing"))
    names = distinct(name_comparisons(conclusions.conclusions, say), LABEL_COLUMNS)[: len(found)]
    parts = [
        part for name, each in zip(names, found, strict=True) for part in _parts(name, each, say)
    ]
    place = alt.Y("name:N", axis=names_axis(), scale=in_order(names, padding=0.15))
    who = subject(found, say)
    return panel(
        [_bars(place, say), *_columns(parts, place, say)],
        rows=parts,
        width=PLOT_WIDTH,
        height=_ROW_HEIGHT * len(found),
        title=titled(title, *([say("of_subject", subject=who)] if who else [])),
    )


def _counts(each: Conclusion) -> tuple[int, ...]:
    counts = each.win_rate.counts
    own, other = counts.wins_a, counts.wins_b
    if each.side == "B":
        own, other = other, own
    return own, counts.ties, counts.inconsistent, other, counts.invalid


def _parts(name: str, each: Conclusion, say: ChartWords) -> list[dict[str, Any]]:
    counts = _counts(each)
    total = sum(counts) or 1
    parts, start = [], 0
    for kind, count in zip(_PARTS, counts, strict=True):
        parts.append(
            {
                "name": name,
                "outcome": say(kind),
                "start": start / total,
                "end": (start + count) / total,
                "text": f"{count:,}",
            }
        )
        start += count
    return parts


def _bars(place: alt.Y, say: ChartWords) -> alt.Chart:
    legend = alt.Legend(
        title=None, orient="top", direction="horizontal", symbolType="square", labelFontSize=11
    )
    bars: alt.Chart = (
        alt.Chart()
        .mark_bar(stroke="white", strokeWidth=1)
        .encode(
            x=alt.X(
                "start:Q", scale=alt.Scale(domain=[0, 1]), axis=share_axis(say("share_of_pairs"))
            ),
            x2="end:Q",
            y=place,
            color=alt.Color(
                "outcome:N",
                legend=legend,
                scale=in_order(list(map(say, _PARTS)), range=list(_SHADES)),
            ),
            tooltip=[
                alt.Tooltip("name:N", title=say("of")),
                alt.Tooltip("outcome:N", title=say("outcome")),
                alt.Tooltip("text:N", title=say("pairs")),
            ],
        )
    )
    return bars


def _columns(parts: list[dict[str, Any]], place: alt.Y, say: ChartWords) -> list[alt.Chart]:
    """The counts beside the bars: the smallest part has a number too."""
    columns = []
    for kind, right in zip(_PARTS, _COLUMNS, strict=True):
        own = alt.Chart(
            alt.InlineData(values=[each for each in parts if each["outcome"] == say(kind)])
        )
        texts = own.mark_text(align="right", baseline="middle", fontSize=12)
        at = alt.value(PLOT_WIDTH + right)
        columns += [
            texts.encode(x=at, y=place, text="text:N"),
            heading(say(kind), PLOT_WIDTH + right, align="right"),
        ]
    return columns
