"""`/runs/{id}`: what a run comes to in a sentence, what that may be trusted with, and where it
comes from; every figure links to its pairs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field
from starlette.responses import Response

from evenhand.analyses.rank import sum_up_ranking
from evenhand.analyses.registry import REPORT
from evenhand.analyses.report import Report
from evenhand.analysis_options import RankOptions, ReportOptions
from evenhand.contract.model import Model
from evenhand.present.html.figures import (
    SHOWN_AT_MOST,
    RunLinks,
    several_models,
    show_conclusion,
)
from evenhand.present.leaderboard import board_of
from evenhand.report.conclusions import Conclusions
from evenhand.serve import reports
from evenhand.serve.fields import options_of, taking
from evenhand.serve.figures import CachedFigure
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.charts import ranking_of
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.reports import RunTotals
from evenhand.serve.values import RunStatus

# A row of a comparison is 1.5 KB of links, one of the board 0.8.
_COMPARED_AT_ONCE = 12
_MODELS_ON_TOP = 20


@taking(ReportOptions)
class RunQuery(Model):
    comparison: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Which comparison to show in full"
    )
    after: int | None = Field(
        default=None, ge=0, le=1_000_000, description="How many comparisons to skip"
    )


async def show_run(visit: Visit) -> Filled | Response:
    query = read_query(visit.given(), RunQuery)
    status = await visit.service.run(visit.run_id)
    if not status.done and not status.at_rest:  # no figure is worth a look, nor the work
        return Filled("run.html", {"run": status, "begun": False, "waiting": True})
    cache = visit.service.figures
    options = ReportOptions(**options_of(query, ReportOptions))
    report, totals = await asyncio.gather(
        cache.get(reports.analysed(REPORT, (status.id,), options)),
        cache.get(reports.totals(status.id)),
    )
    found: Conclusions | None = None if report.value is None else report.value.conclusions
    links = _links(status, report.value, totals.value)
    overview = await cache.get(reports.run_overview(status.id))
    kept: list[CachedFigure[Any]] = [report, totals, overview]
    ranked = None
    if query.comparison is None and several_models(found):
        ranked = await cache.get(ranking_of([status.id], RankOptions(level=options.level)))
        kept.append(ranked)
    ranking = ranked.value.ranking if ranked is not None and ranked.value is not None else None
    shown = None
    # Before a pair is done there is nothing but zeros to show.
    if ranking is None and status.done and found is not None and found.conclusions:
        chosen = found.conclusions[min(query.comparison or 1, len(found.conclusions)) - 1]
        shown = show_conclusion(chosen, found, overview.value, links)
    return Filled(
        "run.html",
        {
            "run": status,
            "begun": True,
            "found": found,
            "totals": totals,
            "report": report,
            "ranking": ranking,
            "board": None if ranking is None else board_of(ranking, most=_MODELS_ON_TOP),
            "trust": overview.value.judges if ranking is not None and overview.value else (),
            "leads": sum_up_ranking(ranked.value) if ranked is not None and ranked.value else (),
            "pairs_of": lambda model: links.pairs(model=model, ending="valid", named="two"),
            "shown": shown,
            "several": several_models(found),
            "links": links,
            "waiting": any(each.waiting for each in kept),
            "shown_at_most": SHOWN_AT_MOST,
            **_compared(found, query),
            "options": {"side": options.side, "ties": options.ties, "level": options.level},
        },
    )


def _compared(found: Conclusions | None, query: RunQuery) -> dict[str, Any]:
    """A page of all comparisons: the one that is asked for, or that with the chosen one."""
    count = len(found.conclusions) if found else 0
    begin = query.after if query.after is not None else (query.comparison or 1) - 1
    begin = max(0, min(begin, count - 1))
    begin -= begin % _COMPARED_AT_ONCE
    return {
        "compared": found.conclusions[begin : begin + _COMPARED_AT_ONCE] if found else (),
        "passed_over": begin,
        "compared_at_once": _COMPARED_AT_ONCE,
    }


async def show_progress(visit: Visit) -> Filled | Response:
    """How it stands alone, for the page that is open."""
    return Filled("_run_progress.html", {"run": await visit.service.run(visit.run_id)})


def _links(
    status: RunStatus,
    report: Report | None,
    totals: RunTotals | None,
) -> RunLinks:
    recorded = [each.judge for each in report.run.judges] if report else ()
    offered = dict(zip(recorded, status.judges, strict=False))
    return RunLinks(status.id, totals is not None and totals.one_contest, offered)


PAGES = (
    Page(path="/runs/{id}", name="runPage", work=show_run, place="runs"),
    Page(path="/runs/{id}/progress", name="runProgress", work=show_progress),
)
