"""`/rank`: the models of one or more runs, best first, and which do not differ significantly."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pydantic import Field
from starlette.responses import Response

from evenhand.report.charts.data import ranking_rows
from evenhand.report.ranking import RunRanking
from evenhand.serve import reports
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.rendering import Language, address
from evenhand.serve.pages.run import ChartView, chart_view
from evenhand.serve.values import MOST_RANKED, Names, RankFilters, RankQuery, RunStatus
from evenhand.serve.verdicts import TableQuery
from evenhand.stats.ranking.result import IndistinguishableModels, RankedModel, Ranking

_FILTERS = set(RankFilters.model_fields)
_SHOWN_MODELS = 200
_MOST_IN_MATRIX = 12


def pairs_behind(ids: tuple[str, ...], model: str, against: str | None, *, query: RankQuery) -> str:
    """Where the verdicts are that count for a model, or between two: in the table of the one run,
    or by way of the runs' counts."""
    asked = {
        "model": model,
        "against": against,
        "judge": query.judge,
        "tag": query.tag,
        "ending": "valid" if query.inconsistent == "half" else "decided",
        "named": None if against else "two",
    }
    if len(ids) == 1:
        return address(f"/runs/{ids[0]}/pairs", **asked)
    given = [("run", each) for each in ids]
    given += [(name, value) for name, value in asked.items() if value is not None]
    return f"/rank/pairs?{urlencode(given)}"


@dataclass(frozen=True, slots=True)
class RankRow:
    """A model, and the next one where the two do not differ significantly."""

    model: RankedModel
    like_next: IndistinguishableModels | None


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """What a model is expected to score against another; `significant` where 1/2 is left out."""

    value: float
    low: float | None
    high: float | None
    reason: str | None = None

    @property
    def significant(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 0.5 <= self.high


async def show_ranking(visit: Visit) -> Filled | Response:
    query = read_query(visit.given(), RankQuery)
    service = visit.service
    listed, chosen = await asyncio.gather(
        service.runs(limit=MOST_RANKED),
        asyncio.gather(*(service.run(each) for each in dict.fromkeys(query.run))),
    )
    ids = tuple(dict.fromkeys(status.id for status in chosen))
    values: dict[str, Any] = {
        "runs": _choices(listed.runs, chosen),
        "chosen": frozenset(ids),
        "query": query,
        "kept": None,
        "judges": (),
        "tags": (),
        "charts": (),
        "waiting": False,
    }
    if not ids:
        return Filled("ranking.html", values)
    cache = service.report_cache
    kept, totals = await asyncio.gather(
        cache.get(reports.ranking(query.request(ids))),
        asyncio.gather(*(cache.get(reports.totals(each)) for each in ids)),
    )
    known = [each.value for each in totals if each.value is not None]
    values |= {
        "kept": kept,
        "judges": tuple(dict.fromkeys(own.judge for each in known for own in each.judges)),
        "tags": tuple(dict.fromkeys(own.name for each in known for own in each.tags)),
        "waiting": kept.waiting,
    }
    ranked = kept.value
    if ranked is not None and ranked.ranking is not None:
        values |= _shown(ranked, ranked.ranking) | {
            "charts": _charts(ranked.ranking, ids, query, visit.language),
            "pairs_of": lambda model, against=None: pairs_behind(ids, model, against, query=query),
        }
    return Filled("ranking.html", values)


def _choices(listed: tuple[RunStatus, ...], chosen: list[RunStatus]) -> list[RunStatus]:
    """The newest runs, and before them those that were chosen by their address."""
    there = {status.id for status in listed}
    return [*(status for status in chosen if status.id not in there), *listed]


def _shown(ranked: RunRanking, ranking: Ranking) -> dict[str, Any]:
    alike = {(each.better, each.worse): each for each in ranking.indistinguishable or ()}
    models = ranking.models
    following = [*(each.model for each in models[1:]), None]
    places = [
        RankRow(model, alike.get((model.model, after)) if after is not None else None)
        for model, after in zip(models, following, strict=True)
    ]
    count = min(len(models), _MOST_IN_MATRIX)
    low, high = ranking.win_matrix_low, ranking.win_matrix_high
    matrix = [
        [
            None
            if row == column
            else MatrixCell(
                ranking.win_matrix[row][column],
                low[row][column] if low else None,
                high[row][column] if high else None,
            )
            for column in range(count)
        ]
        for row in range(count)
    ]
    return {
        "found": ranked,
        "ranking": ranking,
        "places": places[:_SHOWN_MODELS],
        "left_out": max(0, len(places) - _SHOWN_MODELS),
        "names": [each.model for each in models[:count]],
        "matrix": matrix,
    }


def _charts(
    ranking: Ranking, ids: tuple[str, ...], query: RankQuery, language: Language
) -> tuple[ChartView, ...]:
    given = {"run": ids, **query.model_dump(include=_FILTERS, exclude_defaults=True)}
    return tuple(
        chart_view(
            name,
            ranking_rows(ranking, name, most=_MOST_IN_MATRIX if name == "matrix" else None),
            folder="/rank/charts",
            query=given,
            language=language,
        )
        for name in ("leaderboard", "matrix")
    )


class BehindQuery(TableQuery):
    run: Names = Field(min_length=1, max_length=MOST_RANKED)


async def list_behind(visit: Visit) -> Filled | Response:
    """How many verdicts of each run are behind a figure, and where they are."""
    query = read_query(visit.given(), BehindQuery)
    service = visit.service
    asked = TableQuery.model_validate(query.model_dump(exclude={"run"}))
    links = []
    for name in dict.fromkeys(query.run):
        status = await service.run(name)
        if query.judge is not None and query.judge not in status.judges:
            continue  # it counts where there is such a judge
        table = await service.verdict_browser.page(status.id, asked, limit=1)
        links.append((status, table, address(f"/runs/{status.id}/pairs", **asked.in_address())))
    indexing = any(not table.indexed.whole for _, table, _ in links)
    return Filled("ranking_pairs.html", {"query": query, "found": links, "indexing": indexing})


PAGES = (
    Page(path="/rank", name="rankPage", work=show_ranking, place="rank"),
    Page(path="/rank/pairs", name="rankPairs", work=list_behind, place="rank"),
)
