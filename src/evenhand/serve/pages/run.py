"""`/runs/{id}`: what a run comes to in a sentence, what that may be trusted with, and where it
comes from; every figure links to its pairs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field
from starlette.responses import Response

from evenhand.report.conclusions import Conclusion, Conclusions
from evenhand.report.overview import RunOverview, trust_checks
from evenhand.report.ranking import leader_of
from evenhand.report.run import RunReport
from evenhand.serve import reports
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.leaderboard import board_of
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.rendering import address
from evenhand.serve.report_cache import CachedFigure
from evenhand.serve.reports import RunThemes, RunTotals
from evenhand.serve.values import RankRuns, ReportOptions, RunStatus

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
    """In the order in which every page shows them."""
    return (
        ("A", counts.wins_a),
        ("tie", counts.ties),
        ("inconsistent", counts.inconsistent),
        ("B", counts.wins_b),
        ("invalid", counts.invalid),
    )


_SHOWN_AT_MOST = 200
# A row of a comparison is 1.5 KB of links, one of the board 0.8.
_COMPARED_AT_ONCE = 12
_MODELS_ON_TOP = 20


class RunQuery(ReportOptions):
    comparison: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Which of several is shown in full"
    )
    after: int | None = Field(
        default=None, ge=0, le=1_000_000, description="How many of several are passed over"
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
    links = _links(status, conclusions.value, totals.value, report.value)
    kept: list[CachedFigure[Any]] = [conclusions, totals, report]
    overview, themes = await asyncio.gather(
        cache.get(reports.run_overview(status.id)), cache.get(reports.themes(status.id))
    )
    kept += [overview, themes]
    ranked = None
    if query.comparison is None and _several_models(conclusions.value):
        ranked = await cache.get(reports.ranking(RankRuns(runs=(status.id,), level=query.level)))
        kept.append(ranked)
    ranking = ranked.value.ranking if ranked is not None and ranked.value is not None else None
    chosen = None if ranking is not None else _chosen(conclusions.value, query.comparison or 1)
    return Filled(
        "run.html",
        {
            "run": status,
            "conclusions": conclusions,
            "totals": totals,
            "report": report,
            "ranking": ranking,
            "board": None if ranking is None else board_of(ranking, most=_MODELS_ON_TOP),
            "leads": None if ranking is None else leader_of(ranking),
            "pairs_of": lambda model: links.pairs(model=model, ending="valid", named="two"),
            "chosen": chosen,
            "several": _several_models(conclusions.value),
            **_beside(chosen, overview.value, themes.value, links),
            "links": links,
            "waiting": any(each.waiting for each in kept)
            or (totals.value is not None and not totals.value.whole),
            "shown_at_most": _SHOWN_AT_MOST,
            **_compared(conclusions.value, query),
            "options": dict(options),
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


def _beside(
    chosen: Conclusion | None,
    overview: RunOverview | None,
    themes: RunThemes | None,
    links: RunLinks,
) -> dict[str, Any]:
    """The checks of a conclusion; and where A and B are the same two in every pair, what else its
    judge's verdicts show."""
    if chosen is None:
        return {"checks": (), "seen": None, "themes": None}
    by_judge = {each.judge: each for each in overview.judges} if overview else {}
    seen = by_judge.get(chosen.judge) if links.one_contest else None
    labels = [
        check.share
        for checks in (seen.checks if seen else ())
        for check in checks
        if check.name == "label_agreement"
    ]
    offered = links.offered.get(chosen.judge, chosen.judge)
    said = [each for each in themes.judges if each.judge == offered] if themes else []
    return {
        "checks": tuple(trust_checks(chosen, labels[0] if labels else None)),
        "seen": seen,
        "themes": said[0] if said and links.one_contest and (said[0].a or said[0].b) else None,
    }


def _several_models(conclusions: Conclusions | None) -> bool:
    """Of three models or more the leaderboard comes first."""
    found = conclusions.conclusions if conclusions else ()
    return len({name for each in found for name in (each.model, each.against)} - {None}) > 2


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
