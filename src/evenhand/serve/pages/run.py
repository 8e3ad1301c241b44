"""`/runs/{id}`: what a run came to, how sure that is, what it took; each figure leads to pairs."""

from __future__ import annotations

import asyncio
from typing import Literal

from pydantic import Field
from starlette.datastructures import QueryParams
from starlette.responses import Response

from evenhand.contract.model import Model
from evenhand.pages.chart_views import run_charts
from evenhand.pages.links import RunLinks
from evenhand.report.conclusions import Conclusion, Conclusions
from evenhand.report.run import RunReport
from evenhand.serve.http.queries import read_query
from evenhand.serve.kept_figures import RunTotals
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.values import Level, RunStatus

_SHOWN_AT_MOST = 200


class RunQuery(Model):
    side: Literal["A", "B"] = "B"
    ties: Literal["half", "excluded", "wins"] = "half"
    level: Level = 0.95
    comparison: int = Field(
        default=1, ge=1, le=1_000_000, description="Which of several is shown in full"
    )


async def show_run(visit: Visit) -> Filled | Response:
    query = read_query(given(visit), RunQuery)
    status = await visit.service.run(visit.run_id)
    kept = visit.service.kept
    await visit.service.tables.prepare(status.id)
    conclusions, totals, report = await asyncio.gather(
        kept.conclusions(status.id, side=query.side, ties=query.ties, level=query.level),
        kept.totals(status.id),
        kept.report(status.id),
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
            # An old one is worked out anew when that is due; until then somebody has to ask.
            "waiting": any(each.computing or each.stale for each in (conclusions, totals, report))
            or (totals.value is not None and not totals.value.whole),
            "shown_at_most": _SHOWN_AT_MOST,
            "charts": run_charts(
                conclusions.value,
                folder=f"/runs/{status.id}/charts",
                query={"side": query.side, "ties": query.ties, "level": query.level},
                language=visit.language,
            ),
        },
    )


async def show_progress(visit: Visit) -> Filled | Response:
    """How it stands alone, for the page that is open."""
    return Filled("_run_progress.html", {"run": await visit.service.run(visit.run_id)})


def given(visit: Visit, *, beside: frozenset[str] = frozenset()) -> QueryParams:
    """What an address says of this page: a field that a form left empty says nothing."""
    return QueryParams(
        [
            (name, value)
            for name, value in visit.request.query_params.multi_items()
            if value and name != "lang" and name not in beside
        ]
    )


def _chosen(found: Conclusions | None, number: int) -> Conclusion | None:
    if found is None or not found.conclusions:
        return None
    return found.conclusions[min(number, len(found.conclusions)) - 1]


def _links(
    status: RunStatus,
    found: Conclusions | None,
    totals: RunTotals | None,
    report: RunReport | None,
) -> RunLinks:
    recorded = [each.judge for each in report.judges] if report else found.judges if found else ()
    offered = dict(zip(recorded, status.judges, strict=False))
    return RunLinks(status.id, totals is not None and totals.one_contest, offered)


PAGES = (
    Page(path="/runs/{id}", name="runPage", work=show_run, place="runs"),
    Page(path="/runs/{id}/progress", name="runProgress", work=show_progress),
)
