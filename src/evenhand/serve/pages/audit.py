"""`/runs/{id}/audit`, `/probes`, `/calibration`: a judge against people's labels, under probes, and
whether its confidence can be believed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.responses import Response

from evenhand.analyses.audit import AuditReport
from evenhand.analyses.calibrate import CalibrationReport, sum_up_calibration
from evenhand.analyses.probe import probe_language, probe_runs_of
from evenhand.analyses.registry import CALIBRATE
from evenhand.analysis_options import CalibrateOptions
from evenhand.contract import Locale
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.errors import EvenhandError
from evenhand.messages import Message
from evenhand.present.chart_rows import reliability_rows
from evenhand.present.html.figures import DISAGREEMENTS, RunLinks, audit_links, audit_shares
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.charts import (
    judges_of,
    page_audit,
    page_probes,
)
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.reports import analysed
from evenhand.serve.service import Service
from evenhand.serve.values import RunStatus
from evenhand.serve.verdicts import TableQuery
from evenhand.store import RunRecord
from evenhand.store.verdict_table import TableRow
from evenhand.trust.calibration import (
    CALIBRATION_FILES,
    SavedCalibration,
    open_calibration,
)
from evenhand.trust.probes.cases import probe_name
from evenhand.trust.probes.scores import habit_of, sum_up_habits

_MOST_PROBE_RUNS = 5


class AuditQuery(Model):
    judge: Text | None = None
    against: Text | None = None


async def show_audit(visit: Visit) -> Filled | Response:
    query = read_query(visit.given(), AuditQuery)
    service = visit.service
    status = await service.run(visit.run_id)
    judges = await judges_of(service, status.id)
    judge = query.judge or (judges[0] if judges else None)
    against = (await service.run(query.against)).id if query.against else None
    kept, probes = await asyncio.gather(
        service.figures.get(page_audit(status.id, judge, against)),
        asyncio.to_thread(_probe_runs, service, status.id, judge),
    )
    links = RunLinks(
        status.id, one_contest=True, offered=dict(zip(judges, status.judges, strict=False))
    )
    shares = audit_shares(kept.value, visit.language) if kept.value is not None else ()
    looked_at, reasons = await _disagreements(visit, status, kept.value)
    return Filled(
        "audit.html",
        {
            "run": status,
            "judges": judges,
            "judge": judge,
            "against": query.against,
            "kept": kept,
            "shares": shares,
            "looked_at": looked_at,
            "reasons": reasons,
            "links": links,
            **({} if kept.value is None else audit_links(kept.value, links)),
            "probes": probes,
            "waiting": kept.waiting,
        },
    )


async def _disagreements(
    visit: Visit, status: RunStatus, report: AuditReport | None
) -> tuple[tuple[TableRow, ...], dict[tuple[int, int], str]]:
    """The first pairs whose label the judge did not come to, with the judge's reason for each."""
    if report is None or not report.disagreements_in_all:
        return (), {}
    counted = True if report.labels.by_people else None
    query = TableQuery(judge=report.judge, disagrees=True, count_votes=counted)
    browser = visit.service.verdict_browser
    table = await browser.page(status.id, query, limit=DISAGREEMENTS)
    return table.rows, await browser.reasons(status.id, table.rows, visit.language)


def _probe_runs(service: Service, run_id: str, judge: str | None) -> list[RunRecord]:
    """Of the same judge; and first this run, where it is one itself."""
    own = service.store.runs.at(int(run_id))
    runs = probe_runs_of(service.store, judge)[:_MOST_PROBE_RUNS] if judge else []
    if own is not None and probe_language(own) and own.id not in {each.id for each in runs}:
        runs.insert(0, own)
    return runs


async def show_probes(visit: Visit) -> Filled | Response:
    service = visit.service
    read_query(visit.given(), Model)
    status = await service.run(visit.run_id)
    kept = await service.figures.get(await page_probes(service, status.id))
    run_of: dict[Locale, str] = {}
    summary: tuple[Message, ...] = ()
    if kept.value is not None:
        run_of = {each.language: str(each.id) for each in kept.value.runs}
        summary = sum_up_habits(kept.value.overall, kept.value.probes)
    return Filled(
        "probes.html",
        {
            "run": status,
            "kept": kept,
            "summary": summary,
            "run_of": run_of,
            "habit_of": habit_of,
            "probe_name": probe_name,
            "waiting": kept.waiting,
        },
    )


AUDIT_PAGES = (
    Page(path="/runs/{id}/audit", name="auditPage", work=show_audit, place="runs"),
    Page(path="/runs/{id}/probes", name="probesPage", work=show_probes, place="runs"),
)


_MOST_FILES = 50


class CalibrationQuery(Model):
    judge: Text | None = None


@dataclass(frozen=True, slots=True)
class NamedCalibration:
    name: str
    saved: SavedCalibration


async def show_calibration(visit: Visit) -> Filled | Response:
    query = read_query(visit.given(), CalibrationQuery)
    service = visit.service
    status = await service.run(visit.run_id)
    judges = await judges_of(service, status.id)
    judge = query.judge or (judges[0] if judges else None)
    kept, saved = await asyncio.gather(
        service.figures.get(analysed(CALIBRATE, (status.id,), CalibrateOptions(judge=judge))),
        asyncio.to_thread(_saved, judge),
    )
    points = () if kept.value is None else tuple(reliability_rows(kept.value.change))
    return Filled(
        "calibration.html",
        {
            "run": status,
            "judges": judges,
            "judge": judge,
            "kept": kept,
            "summary": () if kept.value is None else sum_up_calibration(kept.value),
            "points": [each for each in points if each.value is not None],
            "saved": saved,
            "to": _learned_from(status, judges, kept.value),
            "waiting": kept.waiting,
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
    named = []
    try:
        paths = sorted(CALIBRATION_FILES.folder().glob("*.json"))[:_MOST_FILES]
    except OSError:
        return []
    for path in paths:
        try:
            saved = open_calibration(path).saved
        except EvenhandError:
            continue  # no calibration, or one of another version: it is said where it is used
        if saved.learned_on.judge == judge:
            named.append(NamedCalibration(path.stem, saved))
    return named


CALIBRATION_PAGES = (
    Page(
        path="/runs/{id}/calibration", name="calibrationPage", work=show_calibration, place="runs"
    ),
)
