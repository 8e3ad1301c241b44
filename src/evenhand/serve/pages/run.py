"""`/runs/{id}`: a run's result with its uncertainty and cost; charts with their figures in words;
every figure links to its pairs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlencode

from pydantic import Field
from starlette.responses import Response

from evenhand.report.charts.data import ChartRow, RunChart, conclusion_rows
from evenhand.report.charts.drawing import can_draw
from evenhand.report.conclusions import Conclusion, Conclusions
from evenhand.report.run import RunReport
from evenhand.serve import reports
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.rendering import Language, Wording, address, number, rate
from evenhand.serve.reports import RunTotals
from evenhand.serve.values import ReportOptions, RunStatus

if TYPE_CHECKING:
    from evenhand.report.conclusions import GroupRate
    from evenhand.stats.outcomes import OutcomeCounts


Kind = Literal["A", "B", "tie", "inconsistent", "invalid"]
CountLink = tuple[Kind, int, str]  # of what, how many, and where they are


@dataclass(frozen=True, slots=True)
class RunLinks:
    """`one_contest`: A is one model in every pair, and B another. Otherwise models change places
    from row to row, and a side's wins are not those of a label: the table is asked for models.
    `offered` is what the table calls a judge."""

    run_id: str
    one_contest: bool
    offered: Mapping[str, str]

    def pairs(self, *, judge: str | None = None, **filters: Any) -> str:
        known = None if judge is None else self.offered.get(judge, judge)
        return address(f"/runs/{self.run_id}/pairs", judge=known, **filters)

    def of(self, conclusion: Conclusion, **filters: Any) -> str:
        """The verdicts that a conclusion is drawn from."""
        return self.pairs(judge=conclusion.judge, **self._models(conclusion), **filters)

    def pair(self, pair_id: str) -> str:
        return address(f"/runs/{self.run_id}/pair", id=pair_id)

    @staticmethod
    def name_of(conclusion: Conclusion, label: Literal["A", "B"]) -> str:
        own, other = conclusion.names
        return own if label == conclusion.side else other

    def outcomes(self, conclusion: Conclusion) -> Iterator[CountLink]:
        return self._ends(conclusion, conclusion.win_rate.counts, {})

    def parts(
        self, conclusion: Conclusion, part: Literal["criterion", "tag"], group: GroupRate
    ) -> Iterator[CountLink]:
        """Of a criterion, how it came out; of a tag, how its pairs did."""
        counts = group.rate.counts
        if part == "tag":
            yield from self._ends(conclusion, counts, {"tag": group.name})
            return
        for kind, count in _counts(counts):
            models, wins = self._won(conclusion, kind)
            end: str = {"tie": "TIE"}.get(kind, kind)
            if wins is not None:
                end = "model" if wins else "other"
            yield (
                kind,
                count,
                self.pairs(
                    judge=conclusion.judge, criterion=group.name, criterionEnd=end, **models
                ),
            )

    def _ends(
        self, conclusion: Conclusion, counts: OutcomeCounts, filters: dict[str, Any]
    ) -> Iterator[CountLink]:
        for kind, count in _counts(counts):
            models, wins = self._won(conclusion, kind)
            to = self.pairs(
                judge=conclusion.judge,
                outcome="win" if kind in ("A", "B") else kind,
                winner=kind if kind in ("A", "B") and wins is None else None,
                modelWins=wins,
                **models,
                **filters,
            )
            yield kind, count, to

    def _models(self, conclusion: Conclusion) -> dict[str, str]:
        """As the table is asked for the pairs of these two."""
        if self.one_contest:
            return {}
        named = [name for name in self._by_label(conclusion) if name is not None]
        if len(named) < 2:
            return {"named": "one", "model": named[0]} if named else {"named": "none"}
        return {"model": named[0], "against": named[1]}

    def _won(self, conclusion: Conclusion, kind: Kind) -> tuple[dict[str, str], bool | None]:
        """And whether the model that is asked for won; None where a label says it, or nobody."""
        models = self._models(conclusion)
        own, other = self._by_label(conclusion)
        if kind not in ("A", "B") or "model" not in models or own == other:
            return models, None
        if kind == "B":
            own, other = other, own
        if own is None:
            return models, False
        return {**models, "model": own, **({} if other is None else {"against": other})}, True

    @staticmethod
    def _by_label(conclusion: Conclusion) -> tuple[str | None, str | None]:
        own, other = conclusion.model, conclusion.against
        return (own, other) if conclusion.side == "A" else (other, own)


def _counts(counts: OutcomeCounts) -> tuple[tuple[Kind, int], ...]:
    return (
        ("A", counts.wins_a),
        ("B", counts.wins_b),
        ("tie", counts.ties),
        ("inconsistent", counts.inconsistent),
        ("invalid", counts.invalid),
    )


# A chart as a page shows it: a picture in the page's language and light, its figures in words and
# in a table, and where it can be saved.

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
    conclusions: Conclusions | None, *, folder: str, query: Mapping[str, object], language: Language
) -> tuple[ChartView, ...]:
    """Those that the run has something for."""
    if conclusions is None or not conclusions.conclusions:
        return ()
    views = (
        chart_view(
            name, conclusion_rows(conclusions, name), folder=folder, query=query, language=language
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
        remembered = {key: value for key, value in given.items() if value is not None}
        return f"{folder}/{name}.{kind}?{urlencode(remembered, doseq=True)}"

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
    lines = [
        " ".join(
            part for part in (cell.name, cell.of, cell.figure, cell.value, cell.interval) if part
        )
        for cell in cells[:_MOST_TOLD]
    ]
    more = [str(say("chart.more"))] if len(cells) > _MOST_TOLD else []
    return f"{title}: {'; '.join([*lines, *more])}" if cells else title


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


_SHOWN_AT_MOST = 200


class RunQuery(ReportOptions):
    comparison: int = Field(
        default=1, ge=1, le=1_000_000, description="Which of several is shown in full"
    )


async def show_run(visit: Visit) -> Filled | Response:
    query = read_query(visit.given(), RunQuery)
    status = await visit.service.run(visit.run_id)
    cache = visit.service.report_cache
    options = ReportOptions(side=query.side, ties=query.ties, level=query.level)
    await visit.service.verdict_browser.prepare(status.id)
    conclusions, totals, report = await asyncio.gather(
        cache.get(reports.conclusions(status.id, options)),
        cache.get(reports.totals(status.id)),
        cache.get(reports.run_report(status.id)),
    )
    return Filled(
        "run.html",
        {
            "run": status,
            "conclusions": conclusions,
            "totals": totals,
            "report": report,
            "chosen": _chosen(conclusions.value, query.comparison),
            "links": _links(status, conclusions.value, totals.value, report.value),
            "waiting": any(each.waiting for each in (conclusions, totals, report))
            or (totals.value is not None and not totals.value.whole),
            "shown_at_most": _SHOWN_AT_MOST,
            "charts": run_charts(
                conclusions.value,
                folder=f"/runs/{status.id}/charts",
                query=dict(options),
                language=visit.language,
            ),
        },
    )


async def show_progress(visit: Visit) -> Filled | Response:
    """How it stands alone, for the page that is open."""
    return Filled("_run_progress.html", {"run": await visit.service.run(visit.run_id)})


def _chosen(conclusions: Conclusions | None, number: int) -> Conclusion | None:
    if conclusions is None or not conclusions.conclusions:
        return None
    return conclusions.conclusions[min(number, len(conclusions.conclusions)) - 1]


def _links(
    status: RunStatus,
    conclusions: Conclusions | None,
    totals: RunTotals | None,
    report: RunReport | None,
) -> RunLinks:
    recorded = (
        [each.judge for each in report.judges]
        if report
        else conclusions.judges
        if conclusions
        else ()
    )
    offered = dict(zip(recorded, status.judges, strict=False))
    return RunLinks(status.id, totals is not None and totals.one_contest, offered)


PAGES = (
    Page(path="/runs/{id}", name="runPage", work=show_run, place="runs"),
    Page(path="/runs/{id}/progress", name="runProgress", work=show_progress),
)
