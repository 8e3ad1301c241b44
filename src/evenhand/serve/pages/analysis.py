"""`/runs/{id}/gate`: registered analyses without a page of their own, as blocks."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from evenhand.analyses.registry import AnalysisEntry, analyses, check
from evenhand.present.blocks import numbers_of
from evenhand.serve.fields import options_of, request_for, runs_of
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.reports import analysed


async def show_analysis(visit: Visit, *, analysis: AnalysisEntry) -> Filled | Response:
    query = read_query(visit.given(), request_for(analysis))
    options = analysis.options(**options_of(query, analysis.options))
    check(analysis, options)
    status = await visit.service.run(visit.run_id)
    kept = await visit.service.figures.get(
        analysed(analysis, runs_of(query, analysis, status.id), options)
    )
    blocks = () if kept.value is None else tuple(analysis.implementation.blocks(kept.value))
    values = {
        "run": status,
        "analysis": analysis,
        "kept": kept,
        "blocks": [(type(each).__name__, each) for each in blocks],
        "numbers_of": numbers_of,
        "waiting": kept.waiting,
    }
    return Filled("analysis.html", values)


PAGES = tuple(
    Page(
        path=each.page,
        name=f"{each.name}Page",
        work=partial(show_analysis, analysis=each),
        place="runs",
    )
    for each in analyses().values()
    if each.served and not each.has_own_page
)
