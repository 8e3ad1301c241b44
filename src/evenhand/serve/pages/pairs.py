"""`/runs/{id}/pairs`: a run's verdicts as a table that is filtered, searched, sorted and paged on
the server. All that it shows is in its address."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from evenhand.serve.browsing import TableQuery
from evenhand.serve.http.queries import read_query
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.run import given

ROWS = 50
# What an address may hold beside the filters.
BESIDE = frozenset({"cursor"})


def table_query(visit: Visit, *, beside: frozenset[str] = BESIDE) -> TableQuery:
    return read_query(given(visit, beside=beside), TableQuery)


def told(query: TableQuery) -> dict[str, Any]:
    """The filters that are set, as an address has them."""
    return query.model_dump(mode="json", by_alias=True, exclude_defaults=True)


async def list_pairs(visit: Visit) -> Filled | Response:
    query = table_query(visit)
    cursor = visit.request.query_params.get("cursor") or None
    service = visit.service
    status = await service.run(visit.run_id)
    table, totals = await asyncio.gather(
        service.tables.page(status.id, query, cursor=cursor, limit=ROWS),
        service.kept.totals(status.id),
    )
    return Filled(
        "pairs.html",
        {
            "run": status,
            "query": query,
            "given": told(query),
            "table": table,
            "totals": totals.value,
            "cursor": cursor,
            "indexing": not table.table.whole
            or (table.words is not None and not table.words.whole),
        },
    )


PAGES = (Page(path="/runs/{id}/pairs", name="pairsPage", work=list_pairs, place="runs"),)
