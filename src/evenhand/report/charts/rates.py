"""A run's charts: win rates by comparison, criterion and tag, the effect of length, and outcomes as
parts of a bar. Loads Altair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import altair as alt

from evenhand.report.charts.intervals import MOST_SERIES, IntervalRow, NumberScale, interval_chart
from evenhand.report.charts.labels import (
    ENGLISH,
    ChartWords,
    distinct,
    listed,
    percent,
    percent_range,
    shortened,
)
from evenhand.report.charts.style import (
    COLOURS,
    LABEL_COLUMNS,
    PLOT_WIDTH,
    SENTENCE_COLUMNS,
    heading,
    in_order,
    names_axis,
    panel,
    sentence_chart,
    share_axis,
    titled,
)
from evenhand.report.conclusions import Conclusion, Conclusions, GroupRate, SideRate, Ties
from evenhand.stats.estimates import EstimatedShare
from evenhand.stats.rates.length_bias import ControlledRate

_NAME_COLUMNS = 24


def subject(conclusions: Sequence[Conclusion], say: ChartWords = ENGLISH) -> str:
    """Who is compared, where it is the same two in every comparison; else nothing."""
    sides = {(each.model, each.against, each.side) for each in conclusions}
    return _sides(conclusions[0], say) if len(sides) == 1 else ""


def name_comparisons(conclusions: Sequence[Conclusion], say: ChartWords = ENGLISH) -> list[str]:
    """One name for each, no two alike."""
    judges = {each.judge for each in conclusions}
    one_subject = bool(subject(conclusions))
    names = []
    for each in conclusions:
        judge = shortened(each.judge, _NAME_COLUMNS)
        if one_subject:
            names.append(judge)
        elif len(judges) == 1:
            names.append(_sides(each, say))
        else:
            names.append(say("by_judge", sides=_sides(each, say), judge=judge))
    return distinct(names, 3 * _NAME_COLUMNS)


def _sides(each: Conclusion, say: ChartWords) -> str:
    own, against = each.names
    return say(
        "against", own=shortened(own, _NAME_COLUMNS), other=shortened(against, _NAME_COLUMNS)
    )


# Win rates of a run as charts: of each comparison, by criterion, by tag, and length's part.

# An image with more rows than that is no picture any more; the report's JSON has them all.
MOST_ROWS = 60


def win_rate_chart(conclusions: Conclusions, say: ChartWords = ENGLISH) -> alt.LayerChart:
    compared = conclusions.conclusions
    who = subject(compared, say)
    title = say("win_rate_of", subject=who) if who else say("win_rate_title")
    if not compared:
        return sentence_chart(title, say("nothing"))
    shown = compared[:MOST_ROWS]
    run = say("run", run=shortened(conclusions.run, SENTENCE_COLUMNS))
    names = name_comparisons(compared, say)
    rows = [
        _rate_row(each.win_rate, name=name, series="", say=say)
        for name, each in zip(names, shown, strict=False)
    ]
    return interval_chart(
        rows,
        _scale(conclusions, heading=say("win_rate"), say=say),
        title=title,
        lines=_lines(conclusions, rows, _cut(len(compared), len(shown), say), who=run, say=say),
        say=say,
    )


def criterion_chart(conclusions: Conclusions, say: ChartWords = ENGLISH) -> alt.LayerChart:
    return _by_group(conclusions, attrgetter("by_criterion"), what="criterion", say=say)


def tag_chart(conclusions: Conclusions, say: ChartWords = ENGLISH) -> alt.LayerChart:
    return _by_group(conclusions, attrgetter("by_tag"), what="tag", say=say)


def length_chart(conclusions: Conclusions, say: ChartWords = ENGLISH) -> alt.LayerChart:
    """What was judged, what it would be at equal length, and how often the longer answer won."""
    title = say("length_title")
    compared = conclusions.conclusions
    if not compared:
        return sentence_chart(title, say("nothing"))
    shown = compared[:MOST_SERIES]
    pairs = list(zip(name_comparisons(compared, say), shown, strict=False))
    rows = [
        _rate_row(each.win_rate, name=say("win_rate"), series=name, say=say) for name, each in pairs
    ]
    for name, each in pairs:
        rows += [
            _controlled_row(rate, series=name, ties=conclusions.ties, say=say)
            for rate in each.length.controlled
        ]
    rows += [_longer_row(each.length.longer_wins, series=name, say=say) for name, each in pairs]
    return interval_chart(
        rows,
        _scale(conclusions, heading=say("share"), axis=say("share_of_pairs"), say=say),
        title=title,
        lines=_lines(
            conclusions,
            rows,
            _cut(len(compared), len(shown), say),
            always_valid="length_looks",
            say=say,
        ),
        say=say,
    )


def _by_group(
    conclusions: Conclusions,
    groups_of: Callable[[Conclusion], tuple[GroupRate, ...]],
    *,
    what: str,
    say: ChartWords,
) -> alt.LayerChart:
    title = say(f"by.{what}")
    compared = conclusions.conclusions
    shown = compared[:MOST_SERIES]
    largest: dict[str, int] = {}
    for each in shown:
        for group in groups_of(each):
            largest[group.name] = max(largest.get(group.name, 0), group.rate.n)
    if not largest:
        return sentence_chart(title, say(f"none.{what}"))
    kept = _largest(largest)
    names = name_comparisons(compared, say)
    rows = [
        _rate_row(group.rate, name=name, series=series, say=say)
        for name in kept
        for series, each in zip(names, shown, strict=False)
        for group in groups_of(each)
        if group.name == name
    ]
    cut = [
        _cut(len(compared), len(shown), say),
        say(f"largest.{what}", shown=len(kept), all=f"{len(largest):,}")
        if len(kept) < len(largest)
        else "",
    ]
    return interval_chart(
        rows,
        _scale(conclusions, heading=say("win_rate"), say=say),
        title=title,
        lines=_lines(conclusions, rows, *cut, who=subject(shown, say), say=say),
        say=say,
    )


def _largest(pairs_of: dict[str, int]) -> list[str]:
    """The groups that have the most pairs, in the order in which they came."""
    by_size = sorted(pairs_of, key=lambda name: -pairs_of[name])
    kept = set(by_size[:MOST_ROWS])
    return [name for name in pairs_of if name in kept]


def _rate_row(rate: SideRate, *, name: str, series: str, say: ChartWords) -> IntervalRow:
    worst = rate.worst_case
    known = rate.rate is not None
    return _row(
        (rate.rate, rate.low, rate.high),
        name=name,
        series=series,
        count=_counted_in(rate, say),
        reason=rate.reason,
        outer=(worst.low, worst.high) if worst and known else None,
        say=say,
    )


def _counted_in(rate: SideRate, say: ChartWords) -> str:
    """What the rate is a mean of: pairs, or prompts where its interval is always valid."""
    if rate.always_valid and rate.prompts is not None:
        return say.counted(rate.prompts, "prompt")
    return say.counted(rate.n, "pair")


def _controlled_row(
    rate: ControlledRate, *, series: str, ties: Ties, say: ChartWords
) -> IntervalRow:
    """Its ties are half, however those of the win rate above it count."""
    name = say("equal_length" if ties == "half" else "equal_length_half")
    return _row(
        (rate.rate, rate.low, rate.high),
        name=say("equal_length_of", rate=name, model=rate.model) if rate.model else name,
        series=series,
        count=say.counted(rate.n, "pair"),
        reason=rate.reason,
        say=say,
    )


def _longer_row(share: EstimatedShare, *, series: str, say: ChartWords) -> IntervalRow:
    return _row(
        (share.value, share.low, share.high),
        name=say("longer_won"),
        series=series,
        count=say("decided", pairs=say.counted(share.of, "decided pair")),
        reason=share.reason,
        say=say,
    )


def _row(
    numbers: tuple[float | None, float | None, float | None],
    *,
    name: str,
    series: str,
    count: str,
    reason: str | None,
    say: ChartWords,
    outer: tuple[float, float] | None = None,
) -> IntervalRow:
    value, low, high = numbers
    bounded = low is not None and high is not None
    return IntervalRow(
        name=name,
        series=series,
        value=value,
        low=low,
        high=high,
        value_text="" if value is None else percent(value),
        interval_text=(
            percent_range(low, high, say) if low is not None and high is not None else ""
        ),
        count_text=count if value is not None else "",
        reason=(
            None if value is not None and bounded else say.sentence(reason or "not enough data")
        ),
        outer_low=outer[0] if outer else None,
        outer_high=outer[1] if outer else None,
    )


def _scale(
    conclusions: Conclusions, *, heading: str, say: ChartWords, axis: str | None = None
) -> NumberScale:
    return NumberScale(
        axis=share_axis(axis or heading),
        domain=(0.0, 1.0),
        headings=(heading, say("interval", percent=f"{100 * conclusions.level:g}"), say("from")),
        middle=0.5,
    )


def _lines(
    conclusions: Conclusions,
    rows: Iterable[IntervalRow],
    *cut: str,
    say: ChartWords,
    who: str = "",
    always_valid: str = "always_valid",
) -> list[str]:
    looked = any(each.win_rate.always_valid for each in conclusions.conclusions)
    lines = [
        listed(
            [
                who,
                say(f"ties.{conclusions.ties}"),
                say(always_valid) if looked else "",
            ]
        ),
        listed(cut),
        say("worst_case") if any(row.outer_low is not None for row in rows) else "",
    ]
    return [line for line in lines if line]


def _cut(count: int, shown: int, say: ChartWords) -> str:
    if shown == count:
        return ""
    return say("cut", shown=shown, all=say.counted(count, "comparison"))


# The outcomes of each comparison as parts of a bar, with their counts.

# Won is dark, lost is its counterpart, and what is neither lies between them in greys.
_PARTS = ("won", "tie", "inconsistent", "lost", "invalid")
_SHADES = (COLOURS[0], "#dcdcdc", "#8c8c8c", "#E69F00", "#3d3d3d")
_ROW_HEIGHT = 28
# Where the columns of counts end, in pixels right of the plot.
_COLUMNS = (52, 92, 166, 218, 268)


def outcome_chart(conclusions: Conclusions, say: ChartWords = ENGLISH) -> alt.LayerChart:
    title = say("outcomes_title")
    shown = conclusions.conclusions[:MOST_ROWS]
    if not any(sum(_counts(each)) for each in shown):
        return sentence_chart(title, say("nothing"))
    names = distinct(name_comparisons(conclusions.conclusions, say), LABEL_COLUMNS)[: len(shown)]
    parts = [
        part for name, each in zip(names, shown, strict=True) for part in _parts(name, each, say)
    ]
    place = alt.Y("name:N", axis=names_axis(), scale=in_order(names, padding=0.15))
    who = subject(shown, say)
    return panel(
        [_bars(place, say), *_columns(parts, place, say)],
        rows=parts,
        width=PLOT_WIDTH,
        height=_ROW_HEIGHT * len(shown),
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
