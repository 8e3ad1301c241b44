"""Named shares with their intervals, one under the other: a judge beside its yardsticks, or what
each probe came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from evenhand.report.chart_specs.interval_rows import IntervalRow, NumberScale, interval_chart
from evenhand.report.chart_specs.labels import percent, percent_range
from evenhand.report.chart_specs.look import sentence_chart, share_axis
from evenhand.report.chart_specs.words import ENGLISH, ChartWords
from evenhand.stats.estimated_share import EstimatedShare

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
