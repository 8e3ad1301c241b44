"""What a report in one file says of its run, beside the pairs: everything that the run can tell."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.errors import EvenhandError, InputError, MissingExtra
from evenhand.report.conclusions import Conclusions
from evenhand.report.ranking import RankOptions, RunRanking, rank_runs
from evenhand.report.run import RunReport, report_run
from evenhand.store import Store
from evenhand.trust.audit import Audit, audit_run
from evenhand.trust.findings import Findings, find

if TYPE_CHECKING:
    from evenhand.pages.wording import Language

_SEVERAL = 3


@dataclass(frozen=True, slots=True)
class ChartImage:
    """`name` is what it draws; the addresses hold the picture itself, for both palettes."""

    name: str
    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class AuditFound:
    audit: Audit
    findings: Findings


@dataclass(frozen=True, slots=True)
class RunFigures:
    """`undrawn` says why there are no charts."""

    conclusions: Conclusions
    run: RunReport
    ranking: RunRanking | None
    audits: tuple[AuditFound, ...]
    charts: tuple[ChartImage, ...]
    undrawn: str | None


def gather(store: Store, found: Conclusions, *, language: Language = "en") -> RunFigures:
    ranking = _ranking(store, found)
    charts: tuple[ChartImage, ...] = ()
    undrawn = None
    try:
        charts = tuple(_charts(found, ranking, language))
    except MissingExtra as error:
        undrawn = error.message
    return RunFigures(
        conclusions=found,
        run=report_run(store, found.run),
        ranking=ranking,
        audits=tuple(_audits(store, found)),
        charts=charts,
        undrawn=undrawn,
    )


def svg_address(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _ranking(store: Store, found: Conclusions) -> RunRanking | None:
    """Of three models or more; two are compared by their win rate."""
    models = {name for each in found.conclusions for name in (each.model, each.against)}
    if len(models - {None}) < _SEVERAL:
        return None
    try:
        return rank_runs(store, [found.run], RankOptions(level=found.level))
    except InputError:
        return None  # nothing that could be ranked yet


def _audits(store: Store, found: Conclusions) -> Iterator[AuditFound]:
    for judge in dict.fromkeys(found.judges):
        try:
            audit = audit_run(store, found.run, judge=judge, level=found.level)
        except EvenhandError:
            continue  # no labels, or a judge that was asked in several ways
        yield AuditFound(audit, find(audit))


def _charts(
    found: Conclusions, ranking: RunRanking | None, language: Language
) -> Iterator[ChartImage]:
    from evenhand.report import charts

    if not charts.can_draw():
        raise MissingExtra("altair or vl-convert-python, which draw charts,", "plot")
    from evenhand.report.chart_specs.look import on_dark

    if not found.conclusions:
        return
    drawn = {
        "rates": charts.win_rate_chart(found, language=language),
        "outcomes": charts.outcome_chart(found, language=language),
    }
    if any(each.by_criterion for each in found.conclusions):
        drawn["criteria"] = charts.criterion_chart(found, language=language)
    if any(each.by_tag for each in found.conclusions):
        drawn["tags"] = charts.tag_chart(found, language=language)
    drawn["length"] = charts.length_chart(found, language=language)
    if ranking is not None and ranking.ranking is not None:
        drawn["leaderboard"] = charts.leaderboard_chart(ranking.ranking, language=language)
        drawn["matrix"] = charts.win_matrix_chart(ranking.ranking, language=language)
    for name, chart in drawn.items():
        light = charts.specification(chart, checked=False)
        yield ChartImage(
            name, *(svg_address(charts.draw(each, "svg")) for each in (light, on_dark(light)))
        )
