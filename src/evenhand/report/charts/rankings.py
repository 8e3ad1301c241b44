"""A ranking's charts: the leaderboard with its intervals, and the matrix of expected win rates.
Loads Altair.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from evenhand.report.charts.intervals import IntervalRow, NumberScale, interval_chart, row_height
from evenhand.report.charts.labels import ENGLISH, ChartWords, distinct, listed, shortened
from evenhand.report.charts.style import (
    LABEL_COLUMNS,
    MUTED,
    SENTENCE_COLUMNS,
    in_order,
    names_axis,
    numbers_axis,
    panel,
    sentence_chart,
    titled,
)
from evenhand.stats.ranking.result import RankedModel, Ranking

MOST_MODELS = 200
MOST_IN_MATRIX = 100
# A number needs that many pixels to be read in its cell.
_NUMBER_WIDTH, _NUMBER_HEIGHT = 36, 20


def leaderboard_chart(ranking: Ranking, say: ChartWords = ENGLISH) -> alt.LayerChart:
    title = say("ranking_title")
    if not ranking.models:
        return sentence_chart(title, say("no_models"))
    shown = ranking.models[:MOST_MODELS]
    domain = _domain(shown)
    decimals = 0 if ranking.scale == "elo" else 2
    return interval_chart(
        [_row(model, domain, decimals, say) for model in shown],
        NumberScale(
            axis=numbers_axis(
                say(f"score.{ranking.scale}"), format=",d" if ranking.scale == "elo" else ".1f"
            ),
            domain=domain,
            headings=(
                say("score"),
                say("interval", percent=f"{100 * ranking.level:g}"),
                say("rank_games"),
            ),
        ),
        title=title,
        lines=[line for line in _lines(ranking, len(shown), say) if line],
        say=say,
    )


def win_matrix_chart(ranking: Ranking, say: ChartWords = ENGLISH) -> alt.LayerChart:
    title = say("matrix_title")
    if not ranking.models:
        return sentence_chart(title, say("no_models"))
    count = min(len(ranking.models), MOST_IN_MATRIX)
    names = distinct((row.model for row in ranking.models[:count]), LABEL_COLUMNS)
    cells = [
        {"row": row, "column": column, "rate": rate, "text": f"{100 * rate:.0f}"}
        for row, rates in zip(names, ranking.win_matrix, strict=False)
        for column, rate in zip(names, rates, strict=False)
        if row != column
    ]
    height = row_height(count)  # that of the leaderboard: side by side, a row is one line
    numbered = height > _NUMBER_HEIGHT
    cut = (
        say("best", shown=count, all=f"{len(ranking.models):,}")
        if count < len(ranking.models)
        else ""
    )
    line = listed([say("matrix_reading"), say("tie_is_half"), cut])
    return panel(
        _cells(names, numbered=numbered, say=say),
        rows=cells,
        width=count * (_NUMBER_WIDTH if numbered else height),
        height=count * height,
        title=titled(title, line),
    )


def _row(
    model: RankedModel, domain: tuple[float, float], decimals: int, say: ChartWords
) -> IntervalRow:
    """A limit that the battles do not set is open: the bar goes on, dotted, to the edge."""
    low, high, score = model.low, model.high, model.score
    no_limits = low is None and high is None
    outer_low, outer_high = None, None
    if not no_limits and high is None:
        outer_low, outer_high = score, domain[1]
    elif not no_limits and low is None:
        outer_low, outer_high = domain[0], score
    return IntervalRow(
        name=model.model,
        series="",
        value=score,
        low=score if low is None and not no_limits else low,
        high=score if high is None and not no_limits else high,
        outer_low=outer_low,
        outer_high=outer_high,
        value_text=f"{score:,.{decimals}f}",
        interval_text=_limits(low, high, decimals, say),
        count_text=listed(
            [
                _rank(model, say),
                say.counted(model.games, "game"),
                say.sentence(model.note) if model.note else "",
            ]
        ),
    )


def _limits(low: float | None, high: float | None, decimals: int, say: ChartWords) -> str:
    if low is not None and high is not None:
        return say("range", low=f"{low:,.{decimals}f}", high=f"{high:,.{decimals}f}")
    if low is not None:
        return say("or_more", low=f"{low:,.{decimals}f}")
    if high is not None:
        return say("or_less", high=f"{high:,.{decimals}f}")
    return say("no_interval")


def _domain(models: Sequence[RankedModel]) -> tuple[float, float]:
    """From the least number to the greatest, with some room; open limits end at its edge."""
    numbers = [
        number
        for model in models
        for number in (model.score, model.low, model.high)
        if number is not None
    ]
    least, greatest = min(numbers), max(numbers)
    room = 0.06 * (greatest - least) or 1.0
    return least - room, greatest + room


def _rank(model: RankedModel, say: ChartWords) -> str:
    if model.rank_low is None or model.rank_high is None or model.rank_low == model.rank_high:
        return f"{model.rank}"
    return say("rank_range", rank=model.rank, low=model.rank_low, high=model.rank_high)


def _lines(ranking: Ranking, shown: int, say: ChartWords) -> list[str]:
    ties = say(f"ranked.{ranking.ties}")
    clusters = say.counted(ranking.cluster_count, "prompt") if ranking.clusters == "prompt" else ""
    cut = (
        say("best", shown=shown, all=f"{len(ranking.models):,}")
        if shown < len(ranking.models)
        else ""
    )
    return [
        listed([say.counted(ranking.games, "game"), clusters, ties, cut]),
        *(shortened(say.sentence(note), SENTENCE_COLUMNS + 40) for note in ranking.notes[:3]),
        shortened(say.sentence(ranking.reason), SENTENCE_COLUMNS + 40) if ranking.reason else "",
    ]


def _cells(names: Sequence[str], *, numbered: bool, say: ChartWords) -> list[alt.Chart]:
    columns_axis = names_axis()
    columns_axis.labelAngle = -45 if numbered else -90
    chart = alt.Chart().encode(
        x=alt.X("column:N", axis=columns_axis, scale=in_order(names, padding=0)),
        y=alt.Y("row:N", axis=names_axis(), scale=in_order(names, padding=0)),
    )
    # From light to dark, not through a light middle: it can be read in grey too.
    colour = alt.Color(
        "rate:Q",
        scale=alt.Scale(domain=[0, 1], range=["#f7fbff", "#6baed6", "#08306b"]),
        legend=None if numbered else alt.Legend(title=None, format=".0%", labelColor=MUTED),
    )
    tooltip = [
        alt.Tooltip("row:N", title=say("model")),
        alt.Tooltip("column:N", title=say("opponent")),
        alt.Tooltip("rate:Q", title=say("expected"), format=".1%"),
    ]
    cell = chart.mark_rect(stroke="white", strokeWidth=1 if numbered else 0.5)
    layers = [cell.encode(color=colour, tooltip=tooltip)]
    if numbered:
        on_dark = alt.condition(
            alt.FieldGTEPredicate(field="rate", gte=0.6), alt.value("white"), alt.value("#222")
        )
        layers.append(chart.mark_text(fontSize=11).encode(text="text:N", color=on_dark))
    return layers
