"""`/runs/{id}/pairs`: a run's verdicts as a table, one pair whole with what each judge said of it,
and the filtered table as a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, Literal, NamedTuple

from markupsafe import Markup, escape
from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse, Response, StreamingResponse

from evenhand.contract import Verdict
from evenhand.errors import EvenhandError, InputError, NotFound
from evenhand.messages import Message
from evenhand.present.html.figures import FILTER_WORDS, LEANING
from evenhand.present.html.rendering import Wording, address
from evenhand.present.html.texts import ShownPair, show_pair_texts
from evenhand.report.export import comparator_blocks, json_lines, load_pyarrow, parquet_blocks
from evenhand.report.files import csv_lines
from evenhand.report.records import RunRow, row_of, whole_pair
from evenhand.serve.http.problems import problem_of
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.prompt_texts import SentMessage, sent_prompt
from evenhand.serve.reports import RunTotals, own_families, totals
from evenhand.serve.run_status import is_number, needed_run
from evenhand.serve.service import Service
from evenhand.serve.verdicts import TableQuery, client_names
from evenhand.store import ItemWhole, RunRecord, Store
from evenhand.store.verdict_table import TableRow
from evenhand.store.verdicts import VerdictPlace

ROWS = 50
# What an address may hold beside the filters: a page; a pair whose page is wanted, and whether it
# was opened beside the list.
BESIDE = frozenset({"cursor", "at", "beside"})


def table_query(visit: Visit, *, beside: frozenset[str] = BESIDE) -> TableQuery:
    return read_query(visit.given(beside=beside), TableQuery)


async def list_pairs(visit: Visit) -> Filled | Response:
    given, wrong = _readable(visit.given(beside=BESIDE))
    query = read_query(given, TableQuery)
    cursor = visit.request.query_params.get("cursor") or None
    service = visit.service
    status = await service.run(visit.run_id)
    if "at" in visit.request.query_params:
        return await _page_of_pair(visit, str(status.id), query)
    table, counted = await asyncio.gather(
        service.verdict_browser.page(status.id, query, cursor=cursor, limit=ROWS),
        service.figures.get(totals(status.id)),
    )
    reasons = await service.verdict_browser.reasons(status.id, table.rows, visit.language)
    path, in_address = f"/runs/{status.id}/pairs", query.in_address()
    return Filled(
        "pairs.html",
        {
            "run": status,
            "pairs_at": path,
            "query": query,
            "given": in_address,
            "wrong": wrong,
            "active": list(_active(path, in_address, Wording(visit.language))),
            "chips": list(_chips(path, in_address, counted.value)),
            "table": table,
            "reasons": reasons,
            # Columns in which something stands.
            "labelled": any(row.label is not None for row in table.rows),
            "confident": query.sort == "confidence"
            or any(row.confidence is not None for row in table.rows),
            "has_marks": _has_marks,
            "marked": any(_has_marks(row) for row in table.rows),
            "totals": counted.value,
            "cursor": cursor,
            "indexing": table.searching,
        },
        status=422 if wrong else 200,
    )


def _has_marks(row: TableRow) -> bool:
    of_verdict = row.judges_differ or row.noted or row.unread or row.abstained or row.by_rule
    return bool(of_verdict or row.tags or row.flag)


async def _page_of_pair(visit: Visit, run_id: str, query: TableQuery) -> Response:
    """To the row of a pair, whichever page of the table it stands on by now."""
    asked = visit.request.query_params
    number = asked["at"]
    cursor, row = None, ""
    if is_number(number):
        cursor = await visit.service.verdict_browser.page_of(run_id, query, int(number), limit=ROWS)
        row = f"#pair-{int(number)}"
    beside = asked.get("beside") or None
    kept = address(f"/runs/{run_id}/pairs", **query.in_address(), cursor=cursor, beside=beside)
    return RedirectResponse(f"{kept}{row}", status_code=303)


_SHARES = ("minConfidence", "maxConfidence")


def _readable(given: QueryParams) -> tuple[QueryParams, dict[str, str]]:
    """What can be asked for, and of the shares those that are none: a page tells so beside their
    fields, and shows what the others ask for. `80%` and `0,8` are shares as people write them."""
    kept: list[tuple[str, str]] = []
    wrong: dict[str, str] = {}
    for name, value in given.multi_items():
        if name not in _SHARES:
            kept.append((name, value))
            continue
        plain = value.strip()
        try:
            share = float(plain.removesuffix("%").strip().replace(",", "."))
            share = share / 100 if plain.endswith("%") else share
        except ValueError:
            share = -1.0
        if 0 <= share <= 1:
            kept.append((name, f"{share:g}"))
        else:
            wrong[name] = value[:40]
    return QueryParams(kept), wrong


def _active(
    path: str, given: dict[str, Any], say: Wording
) -> Iterator[tuple[Markup, Markup | str, str]]:
    """Each filter that is set, in words, and the address without it."""
    for name, value in given.items():
        if name not in FILTER_WORDS:
            continue  # the order
        word, values = FILTER_WORDS[name]
        told = str(value).lower() if isinstance(value, bool) else str(value)
        without = {name, *LEANING.get(name, ())}
        kept = {each: own for each, own in given.items() if each not in without}
        yield say(word), say(values + told) if values else told, address(path, **kept)


def _chips(
    path: str, given: dict[str, Any], counted: RunTotals | None
) -> Iterator[tuple[str, int | None, str, bool]]:
    """An outcome, how many have it where that is known, its address, and whether it is shown."""
    asked = {"outcome", "winner", "sort", "descending", "judge"}
    judges = [] if counted is None or given.keys() - asked else counted.judges
    own = [each for each in judges if given.get("judge") in (None, each.judge)]
    now = (given.get("outcome"), given.get("winner"))
    rest = {name: value for name, value in given.items() if name not in ("outcome", "winner")}
    counts: dict[str, int] = {
        kind: sum(getattr(each, name) for each in own)
        for kind, name in (
            *(("A", "wins_a"), ("tie", "ties"), ("inconsistent", "inconsistent")),
            *(("B", "wins_b"), ("invalid", "invalid")),
        )
    }
    known = bool(own)
    yield "all", sum(counts.values()) if known else None, address(path, **rest), now == (None, None)
    for kind, count in counts.items():
        wanted = ("win", kind) if kind in ("A", "B") else (kind, None)
        to = address(path, **rest, outcome=wanted[0], winner=wanted[1])
        yield kind, count if known else None, to, now == wanted


TABLE_PAGES = (Page(path="/runs/{id}/pairs", name="pairsPage", work=list_pairs, place="runs"),)


_BESIDE = BESIDE | {"view"}
_MOST_VOTES = 200
_SENT_AT_MOST = 100_000


async def show_pair(visit: Visit) -> Filled | Response:
    return await _shown(visit, {"again": None, "failed": None, "asked": None})


async def judge_again(visit: Visit) -> Filled | Response:
    """By a judge that is offered now. What comes of it is shown and not kept: verdicts that were
    asked for until somebody liked them would be no sample of anything."""
    form = await visit.form()
    judge = form.get("judge")
    run, number = await asyncio.to_thread(_place, visit)
    pair = await asyncio.to_thread(visit.service.store.items.pair, run.id, number)
    if pair is None:
        raise NotFound(Message("serve.pair_number_unknown", name=run.name, number=number))
    again: Verdict | None = None
    failed = None
    try:
        again = await visit.service.comparisons.compare(pair, judge=judge)
    except InputError:
        raise
    except EvenhandError as error:
        failed = problem_of(error)
    asked = judge or visit.service.judges.default
    return await _shown(visit, {"again": again, "failed": failed, "asked": asked})


async def flag(visit: Visit) -> Filled | Response:
    """Or take the flag away; back to the pair as it was shown."""
    form = await visit.form()
    run, number = await asyncio.to_thread(_place, visit)
    remove = form.get("act") == "remove"
    key = await asyncio.to_thread(lambda: visit.service.store.items.keys(run.id, [number]))
    if number not in key:
        raise NotFound(Message("serve.pair_number_unknown", name=run.name, number=number))
    comment = None if remove else form.get("comment")
    await visit.service.flag(str(run.id), key[number], comment=comment, remove=remove)
    query = table_query(visit, beside=_BESIDE)
    return RedirectResponse(_address_of(visit, run, number, query), status_code=303)


async def find_pair(visit: Visit) -> Filled | Response:
    """`/runs/{id}/pair?id=…`: by the id that the data gave it."""
    wanted = visit.request.query_params.get("id", "")

    def find() -> tuple[RunRecord, int | None]:
        store = visit.service.store
        run = needed_run(store, visit.run_id)
        item = store.verdicts.item(run.id, wanted)
        return run, item.item.number if item else None

    run, number = await asyncio.to_thread(find)
    if number is None:
        raise NotFound(Message("serve.pair_unknown", name=run.name, wanted=wanted[:80]))
    return RedirectResponse(f"/runs/{run.id}/pairs/{number}", status_code=303)


async def _shown(visit: Visit, values: dict[str, Any]) -> Filled:
    query = table_query(visit, beside=_BESIDE)
    asked = visit.request.query_params
    raw = asked.get("view") == "raw"
    run, number = await asyncio.to_thread(_place, visit)
    service = visit.service
    status, (shown, sent), offers, (previous, following, standing) = await asyncio.gather(
        service.run(str(run.id)),
        asyncio.to_thread(_read, service.store, run, number, raw=raw),
        asyncio.to_thread(service.judges.offered_or_named),
        service.verdict_browser.neighbours(str(run.id), query, number),
    )

    def to(number: int | None, act: str = "") -> str | None:
        return None if number is None else _address_of(visit, run, number, query, act)

    beside = asked.get("beside") or None
    table = address(f"/runs/{run.id}/pairs", **query.in_address(), at=number, beside=beside)

    return Filled(
        "pair.html",
        {
            "run": status,
            "shown": shown,
            "pair": shown.report,
            "sent": [
                (name or own.judge, *each)
                for own, name, each in zip_longest(
                    shown.report.judges, status.judges[: len(sent)], sent
                )
            ],
            "offers": offers,
            "raw": raw,
            "table": table,
            "standing": standing,
            "here": to(number),
            "flagging": to(number, "/flag"),
            "previous": to(previous),
            "next": to(following),
            **values,
        },
    )


def _address_of(visit: Visit, run: RunRecord, number: int, query: TableQuery, act: str = "") -> str:
    """Of a pair as this visit sees it: in the same table, shown in the same way."""
    asked = visit.request.query_params
    kept = {name: asked[name] for name in ("view", "beside") if asked.get(name)}
    return address(f"/runs/{run.id}/pairs/{number}{act}", **query.in_address(), **kept)


def _sent(
    store: Store, run: RunRecord, whole: ItemWhole
) -> list[tuple[tuple[ShownMessage, ...], str]]:
    """Of each judge of the pair: the messages, or why they cannot be shown."""
    told: list[tuple[tuple[ShownMessage, ...], str]] = []
    for judged in whole.judged:
        sent = sent_prompt(store, run, whole.pair, judged)
        if isinstance(sent, Message):
            told.append(((), sent))
        else:
            told.append((tuple(_within(sent or ())), ""))
    return told


class ShownMessage(NamedTuple):
    """`cut`: how many characters are left out at its end."""

    sent: SentMessage
    html: Markup
    cut: int


def _within(sent: Sequence[SentMessage]) -> Iterator[ShownMessage]:
    room = _SENT_AT_MOST
    for each in sent:
        kept = each.text[:room]
        room -= len(kept)
        # A browser takes a carriage return for the end of a line, unless it is spelt.
        html = Markup(str(escape(kept)).replace("\r", "&#13;"))  # noqa: S704 - it is escaped
        yield ShownMessage(each, html, len(each.text) - len(kept))


def _place(visit: Visit) -> tuple[RunRecord, int]:
    number: str = visit.request.path_params["number"]
    run = needed_run(visit.service.store, visit.run_id)
    if not is_number(number):
        raise NotFound(Message("serve.pair_no_number", name=run.name, number=number[:40]))
    return run, int(number)


def _read(
    store: Store, run: RunRecord, number: int, *, raw: bool
) -> tuple[ShownPair, list[tuple[tuple[ShownMessage, ...], str]]]:
    key = store.items.keys(run.id, [number]).get(number)
    whole = None if key is None else store.verdicts.item(run.id, key)
    if whole is None:
        raise NotFound(Message("serve.pair_number_unknown", name=run.name, number=number))
    votes = store.votes.on_item(run.id, number, limit=_MOST_VOTES)
    report = whole_pair(run, whole, families=own_families())
    shown = show_pair_texts(report, votes, rendered=not raw)
    return shown, _sent(store, run, whole)


PAIR_PAGES = (
    Page(path="/runs/{id}/pairs/{number}/flag", name="flagPage", work=flag, method="POST"),
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


Ending = Literal["csv", "jsonl", "parquet", "llm-comparator.json"]
_TYPES: dict[Ending, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "llm-comparator.json": "application/json",
}
_ROWS = 32
_BLOCK = 1 << 16


def _exporting(ending: Ending) -> Callable[[Visit], Awaitable[Filled | Response]]:
    async def export(visit: Visit) -> Filled | Response:
        service, query = visit.service, table_query(visit)
        if ending == "parquet":
            await asyncio.to_thread(load_pyarrow)  # without it, an error that says what to do
        run = await asyncio.to_thread(needed_run, service.store, visit.run_id)
        # What is wrong with the filters is told before a file has begun.
        await service.verdict_browser.need_words(str(run.id), query)
        await service.verdict_browser.page(str(run.id), query, limit=1)
        name = f"evenhand-run-{run.id}.{ending}"
        return StreamingResponse(
            _gathered(_file(service, run, query, ending)),
            media_type=_TYPES[ending],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    return export


def _file(service: Service, run: RunRecord, query: TableQuery, ending: Ending) -> Iterator[bytes]:
    rows = _whole_rows(service, run, query)
    match ending:
        case "csv":
            return csv_lines(rows)
        case "jsonl":
            return json_lines(rows)
        case "parquet":
            return parquet_blocks(rows)
        case "llm-comparator.json":
            return _comparator_file(service.store, run, rows)


def _comparator_file(store: Store, run: RunRecord, rows: Iterator[RunRow]) -> Iterator[bytes]:
    """It names the two models, where all pairs are between the same two in the same places."""
    met = store.table.models_met(run.id, most=2)
    model_a, model_b = met[0] if len(met) == 1 else (None, None)
    names = None if model_a is None or model_b is None else (model_a, model_b)
    yield from comparator_blocks(rows, names=names, run=run.name)


def _whole_rows(service: Service, run: RunRecord, query: TableQuery) -> Iterator[RunRow]:
    """In the table's order, which is not that of the store."""
    store = service.store
    judges = store.runs.judges(run.id)
    names = client_names(store, run, judges)
    recorded = {judge.id: judge for judge in judges}
    table = service.verdict_browser.each(str(run.id), query)
    while batch := [VerdictPlace(row.number, row.judge_id) for row in islice(table, _ROWS)]:
        values = {
            VerdictPlace(whole.row.item.number, whole.row.judge_id): whole
            for whole in store.verdicts.whole_at(run.id, batch)
        }
        for place in batch:
            if place in values:  # somebody may have had it judged anew meanwhile
                row = row_of(values[place], run=run, judge=recorded[place.judge_id])
                yield row.model_copy(update={"judge": names[place.judge_id]})


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Each block is read in a thread and sent by itself, and a row is little."""
    block = bytearray()
    for piece in pieces:
        block += piece
        if len(block) >= _BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


EXPORT_PAGES = tuple(
    Page(path=f"/runs/{{id}}/pairs.{ending}", name=f"pairsAs-{ending}", work=_exporting(ending))
    for ending in _TYPES
)
