"""The figures behind the pages of rankings, audits, calibrations and probes, and
`/runs/{id}/charts/…`, `/rank/charts/…`: their charts as SVG and CSV.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pydantic import Field
from starlette.responses import Response

from evenhand.analyses.audit import AuditReport
from evenhand.analyses.probe import ProbeReport, probe_runs_beside
from evenhand.analyses.rank import RunRanking
from evenhand.analyses.registry import AUDIT, CALIBRATE, PROBE, RANK, REPORT
from evenhand.analysis_options import (
    AuditOptions,
    CalibrateOptions,
    ProbeOptions,
    RankOptions,
    ReportOptions,
)
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.errors import InputError, NotFound, ServerBusy
from evenhand.messages import Language, Message, render
from evenhand.present import charts
from evenhand.present.chart_rows import (
    ChartRow,
    chart_csv,
    conclusion_rows,
    ranking_rows,
    reliability_rows,
    share_rows,
)
from evenhand.present.html.figures import audit_shares
from evenhand.present.html.rendering import Wording
from evenhand.present.svg import Chart
from evenhand.report.conclusions import Conclusions
from evenhand.serve import reports
from evenhand.serve.fields import MOST_RUNS, options_of, taking
from evenhand.serve.figures import CachedFigure, Figure
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.service import Service
from evenhand.serve.values import Names
from evenhand.stats.estimates import EstimatedShare
from evenhand.store import RunRecord
from evenhand.trust.probes.cases import probe_name

MOST_DISAGREEMENTS = 50

Shares = Callable[[Language], list[tuple[str, EstimatedShare]]]


@taking(RankOptions)
class RankQuery(Model):
    """A ranking as a page's address has it."""

    run: Names = Field(default=(), max_length=MOST_RUNS)


def rank_options(query: RankQuery) -> RankOptions:
    return RankOptions(**options_of(query, RankOptions))


def ranking_of(ids: Sequence[str], options: RankOptions) -> Figure[RunRanking]:
    return reports.analysed(RANK, ids, options)


async def judges_of(service: Service, run_id: str) -> tuple[str, ...]:
    """By the names that the run's verdicts have."""
    judges = await asyncio.to_thread(service.store.runs.judges, int(run_id))
    return tuple(dict.fromkeys(each.name for each in judges))


def page_audit(run_id: str, judge: str | None, against: str | None = None) -> Figure[AuditReport]:
    """As the page shows it, and its chart."""
    options = AuditOptions(judge=judge, against=against, disagreements=MOST_DISAGREEMENTS)
    return reports.analysed(AUDIT, (run_id,), options)


async def page_probes(service: Service, run_id: str) -> Figure[ProbeReport]:
    """With the same probes in the other language."""

    def beside() -> list[RunRecord]:
        run = service.store.runs.at(int(run_id))
        return [] if run is None else probe_runs_beside(service.store, run)

    runs = [run_id, *(str(run.id) for run in await asyncio.to_thread(beside))]
    return reports.analysed(PROBE, runs, ProbeOptions())


def probe_shares(probes: ProbeReport) -> Shares:
    def named(language: Language) -> list[tuple[str, EstimatedShare]]:
        say = Wording(language)
        return [
            *((render(probe_name(each.probe), language), each.share) for each in probes.probes),
            (str(say("probe.all")), probes.overall.share),
        ]

    return named


_V = TypeVar("_V", bound=Model)
_TYPES: dict[charts.ChartFormat, str] = {
    "svg": "image/svg+xml",
    "csv": "text/csv; charset=utf-8",
}
# A picture that is opened by itself can do nothing either.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}


@taking(ReportOptions)
class RunChartQuery(Model):
    judge: Text | None = None


@dataclass(frozen=True, slots=True)
class Drawable:
    """What a chart shows, and how to draw it; `of` names the figures and their moment."""

    of: tuple[object, ...]
    rows: Callable[[], Iterable[ChartRow]]
    chart: Callable[[Language], Chart]


async def run_chart(visit: Visit) -> Filled | Response:
    name, kind = _named(visit)
    query = read_query(visit.given(), RunChartQuery)
    drawable = await _of_run(visit, name, query)
    return await _answer(visit, name, kind, drawable)


async def rank_chart(visit: Visit) -> Filled | Response:
    name, kind = _named(visit)
    query = read_query(visit.given(), RankQuery)
    if name not in ("leaderboard", "matrix"):
        raise _unknown(name)
    kept = await visit.service.figures.get(ranking_of(query.run, rank_options(query)))
    ranked = _value(kept).ranking
    if ranked is None:
        raise InputError(Message("serve.elo_without_chart"))
    draw = charts.leaderboard_chart if name == "leaderboard" else charts.win_matrix_chart
    return await _answer(
        visit,
        name,
        kind,
        Drawable(
            of=("rank", kept.at, *query.model_dump().values()),
            rows=lambda: ranking_rows(ranked, "leaderboard" if name == "leaderboard" else "matrix"),
            chart=lambda language: draw(ranked, language=language),
        ),
    )


async def _of_run(visit: Visit, name: str, query: RunChartQuery) -> Drawable:
    run_id = (await visit.service.run(visit.run_id)).id
    cache = visit.service.figures
    of: tuple[object, ...] = (run_id, name, query.model_dump_json())
    if name in _OF_CONCLUSIONS:
        options = ReportOptions(**options_of(query, ReportOptions))
        kept = await cache.get(reports.analysed(REPORT, (run_id,), options))
        return _of_conclusions(name, _value(kept).conclusions, (*of, kept.at))
    if name == "reliability":
        by = CalibrateOptions(judge=query.judge)
        calibrated = await cache.get(reports.analysed(CALIBRATE, (run_id,), by))
        report = _value(calibrated)
        return Drawable(
            of=(*of, calibrated.at),
            rows=lambda: reliability_rows(report.change),
            chart=lambda language: charts.reliability_chart(
                report.change, report.learned_on.judge, language=language
            ),
        )
    if name == "yardsticks":
        audited = await cache.get(page_audit(run_id, query.judge))
        audit = _value(audited)
        return _of_shares(name, partial(audit_shares, audit), (*of, audited.at), unit="pair")
    if name == "probes":
        probed = await cache.get(await page_probes(visit.service, run_id))
        return _of_shares(name, probe_shares(_value(probed)), (*of, probed.at), unit="case")
    raise _unknown(name)


_OF_CONCLUSIONS: dict[str, Callable[..., Any]] = {
    "win-rate": charts.win_rate_chart,
    "outcomes": charts.outcome_chart,
    "criteria": charts.criterion_chart,
    "tags": charts.tag_chart,
    "length": charts.length_chart,
}


def _of_conclusions(name: str, conclusions: Conclusions, of: tuple[object, ...]) -> Drawable:
    # `name` is one of the five above; who calls has looked it up there.
    return Drawable(
        of=of,
        rows=lambda: conclusion_rows(conclusions, name),  # type: ignore[arg-type]
        chart=lambda language: _OF_CONCLUSIONS[name](conclusions, language=language),
    )


def _of_shares(
    name: str, shares: Callable[[Language], list[Any]], of: tuple[object, ...], *, unit: str
) -> Drawable:
    return Drawable(
        of=of,
        rows=lambda: share_rows(name, shares("en")),
        chart=lambda language: charts.share_chart(
            shares(language),
            title=str(Wording(language)(f"chart.title.{name}")),
            unit=unit,
            language=language,
        ),
    )


async def _answer(
    visit: Visit, name: str, kind: charts.ChartFormat, drawable: Drawable
) -> Response:
    language = visit.language
    key = (name, *drawable.of, kind, *(() if kind == "csv" else (language,)))
    tag = f'"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag, "Vary": "Accept-Language, Cookie"}
    if visit.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)

    def content() -> bytes:
        if kind == "csv":
            return chart_csv(drawable.rows())
        return drawable.chart(language).svg().encode()

    body = await asyncio.to_thread(content)
    return Response(body, media_type=_TYPES[kind], headers=headers)


def _named(visit: Visit) -> tuple[str, charts.ChartFormat]:
    file: str = visit.request.path_params["file"]
    name, _, ending = file.rpartition(".")
    for kind in charts.CHART_FORMATS:
        if ending == kind:
            return name, kind
    raise _unknown(file)


def _unknown(name: str) -> NotFound:
    return NotFound(Message("serve.chart_unknown", name=name[:40]))


def _value(kept: CachedFigure[_V]) -> _V:
    if kept.value is not None:
        return kept.value
    if kept.error is not None:
        raise InputError(kept.error.message)
    raise ServerBusy(Message("serve.figures_pending"), retry_after_s=2)


PAGES = (
    Page(path="/runs/{id}/charts/{file}", name="runChart", work=run_chart),
    Page(path="/rank/charts/{file}", name="rankChart", work=rank_chart),
)
