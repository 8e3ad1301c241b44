"""`/`: every run in the store, newest first, and how far it is."""

from __future__ import annotations

from starlette.responses import Response

from evenhand.serve.pages.page import Filled, Page, Visit

_ROWS = 50


async def list_runs(visit: Visit) -> Filled | Response:
    page = await visit.service.runs(after=visit.request.query_params.get("after"), limit=_ROWS)
    first = "after" not in visit.request.query_params
    return Filled("runs.html", {"runs": page.runs, "next": page.next, "first": first})


PAGES = (Page(path="/", name="runsPage", work=list_runs, place="runs"),)
