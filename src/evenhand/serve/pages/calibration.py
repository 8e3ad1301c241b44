"""`/runs/{id}/calibration`: whether a judge's confidence can be believed, and what calibrating it
on the run's labels changes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.responses import Response

from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.errors import EvenhandError
from evenhand.pages.chart_views import chart_view
from evenhand.pages.links import RunLinks
from evenhand.report.chart_data import reliability_rows
from evenhand.serve.http.queries import read_query
from evenhand.serve.pages.figure_sources import judges_of, keep_calibration
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.run import given
from evenhand.serve.values import RunStatus
from evenhand.trust.calibrating import CalibrationReport
from evenhand.trust.calibrations import SavedCalibration, calibration_folder, open_calibration

_MOST_FILES = 50


class CalibrationQuery(Model):
    judge: Text | None = None


@dataclass(frozen=True, slots=True)
class NamedCalibration:
    name: str
    saved: SavedCalibration


async def show_calibration(visit: Visit) -> Filled | Response:
    query = read_query(given(visit), CalibrationQuery)
    service = visit.service
    status = await service.run(visit.run_id)
    judges = await judges_of(service, status.id)
    judge = query.judge or (judges[0] if judges else None)
    kept, saved = await asyncio.gather(
        keep_calibration(service, status.id, judge=judge),
        asyncio.to_thread(_saved, judge),
    )
    chart = None
    if kept.value is not None:
        chart = chart_view(
            "reliability",
            reliability_rows(kept.value.change),
            folder=f"/runs/{status.id}/charts",
            query={"judge": judge},
            language=visit.language,
        )
    return Filled(
        "calibration.html",
        {
            "run": status,
            "judges": judges,
            "judge": judge,
            "kept": kept,
            "chart": chart,
            "saved": saved,
            "to": _learned_from(status, judges, kept.value),
            "waiting": kept.computing or kept.stale,
        },
    )


def _learned_from(
    status: RunStatus, judges: tuple[str, ...], report: CalibrationReport | None
) -> str | None:
    """The verdicts that it was learned from, unless they were drawn from more."""
    if report is None or report.drawn_from is not None:
        return None
    links = RunLinks(
        status.id, one_contest=True, offered=dict(zip(judges, status.judges, strict=False))
    )
    counted = True if report.by_people else None
    return links.pairs(
        judge=report.learned_on.judge, label="any", ending="decided", countVotes=counted
    )


def _saved(judge: str | None) -> list[NamedCalibration]:
    """Those that were learned on this judge, by the names they are used by."""
    found = []
    try:
        paths = sorted(calibration_folder().glob("*.json"))[:_MOST_FILES]
    except OSError:
        return []
    for path in paths:
        try:
            saved = open_calibration(path).saved
        except EvenhandError:
            continue  # no calibration, or one of another version: it is said where it is used
        if saved.learned_on.judge == judge:
            found.append(NamedCalibration(path.stem, saved))
    return found


PAGES = (
    Page(
        path="/runs/{id}/calibration", name="calibrationPage", work=show_calibration, place="runs"
    ),
)
