"""`/runs/{id}/pairs/{number}`: one pair whole, and what each judge said of it in both orders."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from starlette.responses import RedirectResponse, Response

from evenhand.contract import Verdict
from evenhand.errors import EvenhandError, InputError, NotFound
from evenhand.pages.rendering import address
from evenhand.pages.texts import ShownResponses, ShownText, show_responses, show_text
from evenhand.report.pair import PairReport, whole_pair
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.pairs import table_query, told
from evenhand.serve.pages.runs import offered
from evenhand.serve.problems import problem_of
from evenhand.serve.readings import MOST_DIGITS, needed_run
from evenhand.store import ItemVote, RunRecord, Store

_BESIDE = frozenset({"cursor", "view", "marks"})
_MOST_VOTES = 200

View = Literal["rendered", "raw"]


@dataclass(frozen=True, slots=True)
class ShownPair:
    """What a page shows of a pair, worked out in a thread."""

    report: PairReport
    votes: tuple[ItemVote, ...]
    prompt: ShownText
    context: ShownText | None
    reference: ShownText | None
    responses: ShownResponses


async def show_pair(visit: Visit) -> Filled | Response:
    return await _shown(visit, {"again": None, "failed": None, "asked": None})


async def judge_again(visit: Visit) -> Filled | Response:
    """By a judge that is offered now. What comes of it is shown and not kept: verdicts that were
    asked for until somebody liked them would be no sample of anything."""
    form = await visit.form()
    judge = form.get("judge")
    run, number = await asyncio.to_thread(_place, visit)
    pair = await asyncio.to_thread(visit.service.store.pair_at, run.id, number)
    if pair is None:
        raise NotFound(f"run {run.name!r} has no pair {number}; its table lists them")
    again: Verdict | None = None
    failed = None
    try:
        again = await visit.service.compare(pair, judge=judge)
    except InputError:
        raise
    except EvenhandError as error:
        failed = problem_of(error)
    asked = judge or visit.service.offers.default
    return await _shown(visit, {"again": again, "failed": failed, "asked": asked})


async def find_pair(visit: Visit) -> Filled | Response:
    """`/runs/{id}/pair?id=…`: by the id that the data gave it."""
    wanted = visit.request.query_params.get("id", "")

    def find() -> tuple[RunRecord, int | None]:
        store = visit.service.store
        run = needed_run(store, visit.run_id)
        found = store.item(run.id, wanted)
        return run, found.item.number if found else None

    run, number = await asyncio.to_thread(find)
    if number is None:
        raise NotFound(f"run {run.name!r} has no pair {wanted[:80]!r}; its table lists them")
    return RedirectResponse(f"/runs/{run.id}/pairs/{number}", status_code=303)


async def _shown(visit: Visit, values: dict[str, Any]) -> Filled:
    query = table_query(visit, beside=_BESIDE)
    asked = visit.request.query_params
    raw, marks = asked.get("view") == "raw", asked.get("marks") != "off"
    run, number = await asyncio.to_thread(_place, visit)
    service = visit.service
    status, shown, offers, beside = await asyncio.gather(
        service.run(str(run.id)),
        asyncio.to_thread(_read, service.store, run, number, raw=raw, marks=marks),
        asyncio.to_thread(offered, service),
        service.tables.neighbours(str(run.id), query, number),
    )

    def to(number: int | None) -> str | None:
        if number is None:
            return None
        views = {name: asked[name] for name in ("view", "marks") if asked.get(name)}
        return address(f"/runs/{run.id}/pairs/{number}", **told(query), **views)

    return Filled(
        "pair.html",
        {
            "run": status,
            "shown": shown,
            "pair": shown.report,
            "offers": offers,
            "raw": raw,
            "marks": marks,
            "table": address(f"/runs/{run.id}/pairs", **told(query)),
            "here": to(number),
            "previous": to(beside.previous),
            "next": to(beside.next),
            **values,
        },
    )


def _place(visit: Visit) -> tuple[RunRecord, int]:
    number: str = visit.request.path_params["number"]
    run = needed_run(visit.service.store, visit.run_id)
    if not (number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS):
        raise NotFound(f"run {run.name!r} has no pair {number[:40]!r}; pairs are numbered from 1")
    return run, int(number)


def _read(store: Store, run: RunRecord, number: int, *, raw: bool, marks: bool) -> ShownPair:
    key = store.item_keys(run.id, [number]).get(number)
    whole = None if key is None else store.item(run.id, key)
    if whole is None:
        raise NotFound(f"run {run.name!r} has no pair {number}; its table lists them")
    pair = whole.pair
    votes = store.votes_on_item(run.id, number, limit=_MOST_VOTES)
    rendered = not raw
    return ShownPair(
        report=whole_pair(run, whole),
        votes=tuple(votes),
        prompt=show_text(pair.prompt, rendered=rendered),
        context=None if pair.context is None else show_text(pair.context, rendered=rendered),
        reference=None if pair.reference is None else show_text(pair.reference, rendered=rendered),
        responses=show_responses(
            pair.response_a, pair.response_b, rendered=rendered, differences=marks
        ),
    )


PAGES = (
    Page(path="/runs/{id}/pair", name="findPairPage", work=find_pair, place="runs"),
    Page(path="/runs/{id}/pairs/{number}", name="pairPage", work=show_pair, place="runs"),
    Page(
        path="/runs/{id}/pairs/{number}",
        name="judgeAgainPage",
        work=judge_again,
        method="POST",
        place="runs",
    ),
)
