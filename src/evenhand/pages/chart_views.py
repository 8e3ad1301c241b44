"""A chart as a page shows it: a picture in the page's language and light, its figures in words and
in a table, and where it can be saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import get_args
from urllib.parse import urlencode

from evenhand.pages.figures import number, rate
from evenhand.pages.wording import Language, Wording
from evenhand.report.chart_data import ChartRow, RunChart, conclusion_rows
from evenhand.report.charts import can_draw
from evenhand.report.conclusions import Conclusions

# A page is no spreadsheet: the CSV file has them all.
_MOST_ROWS = 200
# So much a screen reader is told in place of the picture; the table is beside it.
_MOST_TOLD = 8
_COUNTS = frozenset({"won", "tie", "inconsistent", "lost", "invalid"})
_NUMBERS = frozenset({"score", "rank"})


@dataclass(frozen=True, slots=True)
class FigureCell:
    """A row of the table, in words; what it names comes from outside."""

    name: str
    of: str
    figure: str
    value: str
    interval: str
    count: str
    note: str


@dataclass(frozen=True, slots=True)
class ChartView:
    name: str
    title: str
    alternative: str
    rows: tuple[FigureCell, ...]
    left_out: int
    drawable: bool
    svg: str
    dark: str
    png: str
    csv: str


def run_charts(
    found: Conclusions | None, *, folder: str, query: Mapping[str, object], language: Language
) -> tuple[ChartView, ...]:
    """Those that the run has something for."""
    if found is None or not found.conclusions:
        return ()
    views = (
        chart_view(
            name, conclusion_rows(found, name), folder=folder, query=query, language=language
        )
        for name in get_args(RunChart)
    )
    return tuple(view for view in views if view.rows)


def chart_view(
    name: str,
    rows: Iterable[ChartRow],
    *,
    folder: str,
    query: Mapping[str, object],
    language: Language,
) -> ChartView:
    """`folder` and `query` are the chart's address; its title is a word of the pages."""
    say = Wording(language)
    given = list(rows)
    cells = tuple(_cell(row, say) for row in islice(given, _MOST_ROWS))
    title = str(say(f"chart.title.{name}"))

    def saved(kind: str, **more: object) -> str:
        given = {**query, "lang": language, **more}
        told = {key: value for key, value in given.items() if value is not None}
        return f"{folder}/{name}.{kind}?{urlencode(told, doseq=True)}"

    return ChartView(
        name=name,
        title=title,
        alternative=_alternative(title, cells, say),
        rows=cells,
        left_out=len(given) - len(cells),
        drawable=can_draw(),
        svg=saved("svg"),
        dark=saved("svg", theme="dark"),
        png=saved("png"),
        csv=saved("csv"),
    )


def _alternative(title: str, cells: tuple[FigureCell, ...], say: Wording) -> str:
    told = [
        " ".join(
            part for part in (cell.name, cell.of, cell.figure, cell.value, cell.interval) if part
        )
        for cell in cells[:_MOST_TOLD]
    ]
    more = [str(say("chart.more"))] if len(cells) > _MOST_TOLD else []
    return f"{title}: {'; '.join([*told, *more])}" if told else title


def _cell(row: ChartRow, say: Wording) -> FigureCell:
    def written(value: float) -> str:
        if row.figure in _COUNTS:
            return number(value)
        if row.figure in _NUMBERS:
            return number(value) if abs(value) >= 20 or value == round(value) else rate(value)
        return f"{100 * value:.1f} %"

    between = ""
    if row.low is not None and row.high is not None:
        between = str(say("figure.between", low=written(row.low), high=written(row.high)))
    elif row.low is not None:
        between = str(say("ranking.or_more", low=written(row.low)))
    elif row.high is not None:
        between = str(say("ranking.or_less", high=written(row.high)))
    elif row.value is not None and row.figure not in _COUNTS:
        between = str(say("figure.no_interval"))
    return FigureCell(
        name=row.name,
        of=str(say(f"chart.series.{row.of}")) if row.of in ("before", "after") else row.of,
        figure=str(say(f"chart.figure.{row.figure}")),
        value="—" if row.value is None else written(row.value),
        interval=between,
        count="" if row.n is None else number(row.n),
        note=row.note or "",
    )
