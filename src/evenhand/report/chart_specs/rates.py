"""Win rates of a run as charts: of each comparison, by criterion, by tag, and length's part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

import altair as alt

from evenhand.report.chart_specs.comparisons import name_comparisons, subject
from evenhand.report.chart_specs.interval_rows import (
    MOST_SERIES,
    IntervalRow,
    NumberScale,
    interval_chart,
)
from evenhand.report.chart_specs.labels import counted, listed, percent, percent_range, shortened
from evenhand.report.chart_specs.look import SENTENCE_COLUMNS, sentence_chart, share_axis
from evenhand.report.conclusions import Conclusion, Conclusions, GroupRate, SideRate, Ties
from evenhand.stats.estimated_share import EstimatedShare
from evenhand.stats.length_control import ControlledRate

# An image with more rows than that is no picture any more; the report's JSON has them all.
MOST_ROWS = 60

_TIES = {"half": "ties count as half", "excluded": "ties are left out", "wins": "wins only"}
_LENGTH_LOOKS = "the win rate's interval holds whenever one looks, the others for one look"
_WORST_CASE = "dotted: the worst case, with every invalid pair lost or won"


def win_rate_chart(conclusions: Conclusions) -> alt.LayerChart:
    found = conclusions.conclusions
    title = f"Win rate of {subject(found)}" if subject(found) else "Win rate"
    if not found:
        return sentence_chart(title, "nothing was judged yet")
    shown = found[:MOST_ROWS]
    run = f"run {shortened(conclusions.run, SENTENCE_COLUMNS)}"
    names = name_comparisons(found)
    rows = [
        _rate_row(each.win_rate, name=name, series="")
        for name, each in zip(names, shown, strict=False)
    ]
    return interval_chart(
        rows,
        _scale(conclusions, heading="win rate"),
        title=title,
        lines=_lines(conclusions, rows, _cut(len(found), len(shown), "comparison"), who=run),
    )


def criterion_chart(conclusions: Conclusions) -> alt.LayerChart:
    return _by_group(conclusions, attrgetter("by_criterion"), what="criterion", plural="criteria")


def tag_chart(conclusions: Conclusions) -> alt.LayerChart:
    return _by_group(conclusions, attrgetter("by_tag"), what="tag", plural="tags")


def length_chart(conclusions: Conclusions) -> alt.LayerChart:
    """What was judged, what it would be at equal length, and how often the longer answer won."""
    title = "Do longer answers win?"
    found = conclusions.conclusions
    if not found:
        return sentence_chart(title, "nothing was judged yet")
    shown = found[:MOST_SERIES]
    pairs = list(zip(name_comparisons(found), shown, strict=False))
    rows = [_rate_row(each.win_rate, name="win rate", series=name) for name, each in pairs]
    for name, each in pairs:
        rows += [
            _controlled_row(rate, series=name, ties=conclusions.ties)
            for rate in each.length.controlled
        ]
    rows += [_longer_row(each.length.longer_wins, series=name) for name, each in pairs]
    return interval_chart(
        rows,
        _scale(conclusions, heading="share"),
        title=title,
        lines=_lines(
            conclusions,
            rows,
            _cut(len(found), len(shown), "comparison"),
            always_valid=_LENGTH_LOOKS,
        ),
    )


def _by_group(
    conclusions: Conclusions,
    groups_of: Callable[[Conclusion], tuple[GroupRate, ...]],
    *,
    what: str,
    plural: str,
) -> alt.LayerChart:
    title = f"Win rate by {what}"
    found = conclusions.conclusions
    shown = found[:MOST_SERIES]
    largest: dict[str, int] = {}
    for each in shown:
        for group in groups_of(each):
            largest[group.name] = max(largest.get(group.name, 0), group.rate.n)
    if not largest:
        return sentence_chart(title, f"there are no {plural} in this run")
    kept = _largest(largest)
    names = name_comparisons(found)
    rows = [
        _rate_row(group.rate, name=name, series=series)
        for name in kept
        for series, each in zip(names, shown, strict=False)
        for group in groups_of(each)
        if group.name == name
    ]
    cut = [
        _cut(len(found), len(shown), "comparison"),
        f"the {len(kept)} {plural} with the most pairs, of {len(largest):,}"
        if len(kept) < len(largest)
        else "",
    ]
    return interval_chart(
        rows,
        _scale(conclusions, heading="win rate"),
        title=title,
        lines=_lines(conclusions, rows, *cut, who=subject(shown)),
    )


def _largest(pairs_of: dict[str, int]) -> list[str]:
    """The groups that have the most pairs, in the order in which they came."""
    by_size = sorted(pairs_of, key=lambda name: -pairs_of[name])
    kept = set(by_size[:MOST_ROWS])
    return [name for name in pairs_of if name in kept]


def _rate_row(rate: SideRate, *, name: str, series: str) -> IntervalRow:
    worst = rate.worst_case
    known = rate.rate is not None
    return _row(
        (rate.rate, rate.low, rate.high),
        name=name,
        series=series,
        count=_counted_in(rate),
        reason=rate.reason,
        outer=(worst.low, worst.high) if worst and known else None,
    )


def _counted_in(rate: SideRate) -> str:
    """What the rate is a mean of: pairs, or prompts where its interval is always valid."""
    if rate.always_valid and rate.prompts is not None:
        return counted(rate.prompts, "prompt")
    return counted(rate.n, "pair")


def _controlled_row(rate: ControlledRate, *, series: str, ties: Ties) -> IntervalRow:
    """Its ties are half, however those of the win rate above it count."""
    name = "win rate at equal length" if ties == "half" else "at equal length, ties as half"
    return _row(
        (rate.rate, rate.low, rate.high),
        name=name + (f" of {rate.model}" if rate.model else ""),
        series=series,
        count=counted(rate.n, "pair"),
        reason=rate.reason,
    )


def _longer_row(share: EstimatedShare, *, series: str) -> IntervalRow:
    return _row(
        (share.value, share.low, share.high),
        name="the longer answer won",
        series=series,
        count=f"of {counted(share.of, 'decided pair')}",
        reason=share.reason,
    )


def _row(
    numbers: tuple[float | None, float | None, float | None],
    *,
    name: str,
    series: str,
    count: str,
    reason: str | None,
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
        interval_text=percent_range(low, high) if low is not None and high is not None else "",
        count_text=count if value is not None else "",
        reason=None if value is not None and bounded else reason or "not enough data",
        outer_low=outer[0] if outer else None,
        outer_high=outer[1] if outer else None,
    )


def _scale(conclusions: Conclusions, *, heading: str) -> NumberScale:
    return NumberScale(
        axis=share_axis("share of pairs" if heading == "share" else heading),
        domain=(0.0, 1.0),
        headings=(heading, f"{100 * conclusions.level:g} % interval", "from"),
        middle=0.5,
    )


def _lines(
    conclusions: Conclusions,
    rows: Iterable[IntervalRow],
    *cut: str,
    who: str = "",
    always_valid: str = "intervals that hold whenever one looks",
) -> list[str]:
    looked = any(each.win_rate.always_valid for each in conclusions.conclusions)
    lines = [
        listed(
            [
                who,
                _TIES[conclusions.ties],
                always_valid if looked else "",
            ]
        ),
        listed(cut),
        _WORST_CASE if any(row.outer_low is not None for row in rows) else "",
    ]
    return [line for line in lines if line]


def _cut(found: int, shown: int, what: str) -> str:
    return f"the first {shown} of {counted(found, what)}" if shown < found else ""
