"""`/runs/{id}/charts/…` and `/rank/charts/…`: the charts of the pages, as SVG, PNG and CSV."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from pydantic import Field
from starlette.responses import Response

from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.errors import InputError, NotFound, ServerBusy
from evenhand.pages.wording import Language
from evenhand.report import charts
from evenhand.report.chart_data import (
    ChartRow,
    chart_csv,
    conclusion_rows,
    ranking_rows,
    reliability_rows,
    share_rows,
)
from evenhand.report.conclusions import Conclusions
from evenhand.serve.http.queries import read_query
from evenhand.serve.kept_figures import Kept
from evenhand.serve.pages.drawings import drawings_of
from evenhand.serve.pages.figure_sources import (
    audit_shares,
    keep_audit,
    keep_calibration,
    keep_probes,
    keep_ranking,
    probe_shares,
)
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.run import given
from evenhand.serve.values import Level, Names

if TYPE_CHECKING:
    from evenhand.report.charts import Chart

_V = TypeVar("_V", bound=Model)
Kind = Literal["svg", "png", "csv"]
_TYPES: dict[Kind, str] = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": "text/csv; charset=utf-8",
}
# A picture that is opened by itself can do nothing either.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}


class ChartQuery(Model):
    theme: Literal["light", "dark"] = "light"


class RunChartQuery(ChartQuery):
    side: Literal["A", "B"] = "B"
    ties: Literal["half", "excluded", "wins"] = "half"
    level: Level = 0.95
    judge: Text | None = None


class RankChartQuery(ChartQuery):
    run: Names = Field(default=(), max_length=100)
    judge: Text | None = None
    tag: Text | None = None
    ties: Literal["half", "davidson"] = "half"
    inconsistent: Literal["half", "excluded"] = "half"


@dataclass(frozen=True, slots=True)
class Drawable:
    """What a chart shows, and how to draw it; `of` names the figures and their moment."""

    of: tuple[object, ...]
    rows: Callable[[], Iterable[ChartRow]]
    chart: Callable[[Language], Chart]


async def run_chart(visit: Visit) -> Filled | Response:
    name, kind = _named(visit)
    query = read_query(given(visit), RunChartQuery)
    drawable = await _of_run(visit, name, query)
    return await _answer(visit, name, kind, drawable, dark=query.theme == "dark")


async def rank_chart(visit: Visit) -> Filled | Response:
    name, kind = _named(visit)
    query = read_query(given(visit), RankChartQuery)
    if name not in ("leaderboard", "matrix"):
        raise _unknown(name)
    kept = await keep_ranking(
        visit.service,
        query.run,
        judge=query.judge,
        tag=query.tag,
        ties=query.ties,
        inconsistent=query.inconsistent,
    )
    ranking = _value(kept).ranking
    if ranking is None:
        raise InputError("Elo ratings have no chart; their table has them")
    draw = charts.leaderboard_chart if name == "leaderboard" else charts.win_matrix_chart
    return await _answer(
        visit,
        name,
        kind,
        Drawable(
            of=("rank", kept.at, *query.model_dump(exclude={"theme"}).values()),
            rows=lambda: ranking_rows(
                ranking, "leaderboard" if name == "leaderboard" else "matrix"
            ),
            chart=lambda language: draw(ranking, language=language),
        ),
        dark=query.theme == "dark",
    )


async def _of_run(visit: Visit, name: str, query: RunChartQuery) -> Drawable:
    service, run_id = visit.service, (await visit.service.run(visit.run_id)).id
    of: tuple[object, ...] = (run_id, name, query.side, query.ties, query.level, query.judge)
    if name in _OF_CONCLUSIONS:
        kept = await service.kept.conclusions(
            run_id, side=query.side, ties=query.ties, level=query.level
        )
        return _of_conclusions(name, _value(kept), (*of, kept.at))
    if name == "reliability":
        calibrated = await keep_calibration(service, run_id, judge=query.judge)
        report = _value(calibrated)
        return Drawable(
            of=(*of, calibrated.at),
            rows=lambda: reliability_rows(report.change),
            chart=lambda language: charts.reliability_chart(
                report.change, report.learned_on.judge, language=language
            ),
        )
    if name == "yardsticks":
        audited = await keep_audit(service, run_id, judge=query.judge)
        audit = _value(audited).audit
        return _of_shares(name, audit_shares(audit), (*of, audited.at), unit="pair")
    if name == "probes":
        probed = await keep_probes(service, run_id)
        return _of_shares(name, probe_shares(_value(probed)), (*of, probed.at), unit="case")
    raise _unknown(name)


_OF_CONCLUSIONS: dict[str, Callable[..., Any]] = {
    "win-rate": charts.win_rate_chart,
    "outcomes": charts.outcome_chart,
    "criteria": charts.criterion_chart,
    "tags": charts.tag_chart,
    "length": charts.length_chart,
}


def _of_conclusions(name: str, found: Conclusions, of: tuple[object, ...]) -> Drawable:
    # `name` is one of the five above; who calls has looked it up there.
    return Drawable(
        of=of,
        rows=lambda: conclusion_rows(found, name),  # type: ignore[arg-type]
        chart=lambda language: _OF_CONCLUSIONS[name](found, language=language),
    )


def _of_shares(
    name: str, shares: Callable[[Language], list[Any]], of: tuple[object, ...], *, unit: str
) -> Drawable:
    from evenhand.pages.wording import Wording

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
    visit: Visit, name: str, kind: Kind, drawable: Drawable, *, dark: bool
) -> Response:
    language = visit.language
    key = (name, *drawable.of, kind, *(() if kind == "csv" else (language, dark)))
    tag = f'"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag, "Vary": "Accept-Language, Cookie"}
    if visit.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if kind == "csv":
        body = await asyncio.to_thread(lambda: chart_csv(drawable.rows()))
    else:
        picture: Literal["svg", "png"] = kind

        def draw() -> bytes:
            chart = drawable.chart(language)
            return charts.draw(charts.specification(chart, dark=dark), picture)

        body = await drawings_of(visit.request.app.state).drawn(key, draw)
    return Response(body, media_type=_TYPES[kind], headers=headers)


def _named(visit: Visit) -> tuple[str, Kind]:
    file: str = visit.request.path_params["file"]
    name, _, ending = file.rpartition(".")
    for kind in get_args(Kind):
        if ending == kind:
            return name, kind
    raise _unknown(file)


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no chart {name[:40]!r}; the pages name those that there are")


def _value(kept: Kept[_V]) -> _V:
    if kept.value is not None:
        return kept.value
    if kept.error is not None:
        raise InputError(kept.error.message)
    raise ServerBusy("the figures are being worked out; ask again in a moment", retry_after_s=2)


PAGES = (
    Page(path="/runs/{id}/charts/{file}", name="runChart", work=run_chart),
    Page(path="/rank/charts/{file}", name="rankChart", work=rank_chart),
)
