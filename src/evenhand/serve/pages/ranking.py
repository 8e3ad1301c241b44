"""`/rank`: the models of one or more runs, best first, and which do not differ significantly."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from pydantic import Field
from starlette.responses import Response

from evenhand.analyses.rank import RunRanking
from evenhand.analysis_options import RankOptions
from evenhand.present.html.figures import ranking_values
from evenhand.present.html.rendering import address
from evenhand.serve import reports
from evenhand.serve.fields import MOST_RUNS
from evenhand.serve.figures import CachedFigure
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.charts import RankQuery, rank_options, ranking_of
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.values import Names, RunStatus
from evenhand.serve.verdicts import PairTable, TableQuery
from evenhand.stats.ranking.result import RankedModel

_MOST_TAGS = 8
_COUNTED_AT_ONCE = 4  # runs: others want the store too


def pairs_behind(
    ids: tuple[str, ...], model: str, against: str | None, *, options: RankOptions, averaged: bool
) -> str | None:
    """Where the verdicts are that count for a model, or between two: in the table of the one run,
    or by way of the runs' counts. Where averages that changed with the order are left out with the
    inconsistent, no filter shows just the others."""
    if options.inconsistent == "excluded" and averaged:
        return None
    asked = {
        "model": model,
        "against": against,
        "judge": options.judge,
        "tag": options.tag,
        "ending": "decided" if options.inconsistent == "excluded" else "valid",
        "named": None if against else "two",
    }
    if len(ids) == 1:
        return address(f"/runs/{ids[0]}/pairs", **asked)
    given = [("run", each) for each in ids]
    given += [(name, value) for name, value in asked.items() if value is not None]
    return f"/rank/pairs?{urlencode(given)}"


async def show_ranking(visit: Visit) -> Filled | Response:
    query = read_query(visit.given(beside=frozenset({"by"})), RankQuery)
    options = rank_options(query)
    service = visit.service
    listed, chosen = await asyncio.gather(
        service.runs(limit=MOST_RUNS),
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
        "chart_query": {},
        "by_tag": None,
        "waiting": False,
    }
    if not ids:
        return Filled("ranking.html", values)
    cache = service.figures
    kept, totals = await asyncio.gather(
        cache.get(ranking_of(ids, options)),
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
        values |= ranking_values(ranked, ranked.ranking) | {
            "chart_query": {"run": ids, **options.chosen()},
            "pairs_of": lambda model, against=None: pairs_behind(
                ids,
                model,
                against,
                options=options,
                averaged=ranked.flipped > ranked.counts.inconsistent,
            ),
        }
        if visit.request.query_params.get("by") == "tag":
            tags = values["tags"][:_MOST_TAGS]
            parts = await asyncio.gather(
                *(cache.get(ranking_of(ids, replace(options, tag=tag))) for tag in tags)
            )
            names = [each.model for each in ranked.ranking.models]
            values["by_tag"] = [
                (tag, ranks := _ranks(own), _among(names, ranks or {}))
                for tag, own in zip(tags, parts, strict=True)
            ]
            values["waiting"] = kept.waiting or any(own.waiting for own in parts)
    return Filled("ranking.html", values)


def _ranks(kept: CachedFigure[RunRanking]) -> dict[str, RankedModel] | None:
    """By model; none where a tag has too few battles to rank, None while they are counted."""
    if kept.value is None or kept.value.ranking is None:
        return None if kept.error is None else {}
    return {each.model: each for each in kept.value.ranking.models}


def _among(names: Sequence[str], ranks: Mapping[str, RankedModel]) -> dict[str, int]:
    """The rank by all pairs among those models alone that a tag has: of fewer, all rank higher."""
    there = [name for name in names if name in ranks]
    return {name: place for place, name in enumerate(there, 1)}


def _choices(listed: tuple[RunStatus, ...], chosen: list[RunStatus]) -> list[RunStatus]:
    """The newest runs, and before them those that were chosen by their address."""
    there = {status.id for status in listed}
    return [*(status for status in chosen if status.id not in there), *listed]


class BehindQuery(TableQuery):
    run: Names = Field(min_length=1, max_length=MOST_RUNS)


async def list_behind(visit: Visit) -> Filled | Response:
    """How many verdicts of each run are behind a figure, and where they are."""
    query = read_query(visit.given(), BehindQuery)
    service = visit.service
    asked = TableQuery.model_validate(query.model_dump(exclude={"run"}))
    room = asyncio.Semaphore(_COUNTED_AT_ONCE)

    async def counted(name: str) -> tuple[RunStatus, PairTable, str] | None:
        status = await service.run(name)
        if query.judge is not None and query.judge not in status.judges:
            return None  # it counts where there is such a judge
        async with room:
            table = await service.verdict_browser.page(status.id, asked, limit=1)
        return status, table, address(f"/runs/{status.id}/pairs", **asked.in_address())

    each_run = await asyncio.gather(*map(counted, dict.fromkeys(query.run)))
    links = [each for each in each_run if each is not None]
    return Filled("ranking_pairs.html", {"query": query, "found": links})


PAGES = (
    Page(path="/rank", name="rankPage", work=show_ranking, place="rank"),
    Page(path="/rank/pairs", name="rankPairs", work=list_behind, place="rank"),
)
