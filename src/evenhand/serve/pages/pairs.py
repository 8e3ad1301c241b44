"""`/runs/{id}/pairs`: a run's verdicts as a table, one pair whole with what each judge said of it,
and the filtered table as a file.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, cast

from starlette.responses import RedirectResponse, Response, StreamingResponse

from evenhand.contract import Verdict
from evenhand.errors import EvenhandError, InputError, NotFound
from evenhand.messages import Message
from evenhand.report.export import load_pyarrow, write_comparator, write_jsonl, write_parquet
from evenhand.report.files import write_csv
from evenhand.report.records import PairReport, RunRow, row_of, whole_pair
from evenhand.serve.http.problems import problem_of
from evenhand.serve.http.requests import read_query
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.rendering import address
from evenhand.serve.pages.texts import ShownResponses, ShownText, show_responses, show_text
from evenhand.serve.reports import totals
from evenhand.serve.run_status import MOST_DIGITS, needed_run
from evenhand.serve.service import Service
from evenhand.serve.verdicts import TableLine, TableQuery
from evenhand.store import ItemVote, JudgeRecord, RunRecord, Store
from evenhand.store.verdicts import VerdictPlace

ROWS = 50
# What an address may hold beside the filters.
BESIDE = frozenset({"cursor"})


def table_query(visit: Visit, *, beside: frozenset[str] = BESIDE) -> TableQuery:
    return read_query(visit.given(beside=beside), TableQuery)


async def list_pairs(visit: Visit) -> Filled | Response:
    query = table_query(visit)
    cursor = visit.request.query_params.get("cursor") or None
    service = visit.service
    status = await service.run(visit.run_id)
    table, counted = await asyncio.gather(
        service.tables.page(status.id, query, cursor=cursor, limit=ROWS),
        service.report_cache.get(totals(status.id)),
    )
    return Filled(
        "pairs.html",
        {
            "run": status,
            "query": query,
            "given": query.in_address(),
            "table": table,
            "totals": counted.value,
            "cursor": cursor,
            "indexing": not table.table.whole
            or (table.words is not None and not table.words.whole),
        },
    )


TABLE_PAGES = (Page(path="/runs/{id}/pairs", name="pairsPage", work=list_pairs, place="runs"),)


# `/runs/{id}/pairs/{number}`: one pair whole, and what each judge said of it in both orders.

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
        raise NotFound(Message("serve.run_pair_table_lists", name=run.name, number=number))
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
        item = store.item(run.id, wanted)
        return run, item.item.number if item else None

    run, number = await asyncio.to_thread(find)
    if number is None:
        raise NotFound(
            Message("serve.run_pair_table_lists_them", name=run.name, wanted=wanted[:80])
        )
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
        asyncio.to_thread(service.offers.offered_or_named),
        service.tables.neighbours(str(run.id), query, number),
    )

    def to(number: int | None) -> str | None:
        if number is None:
            return None
        views = {name: asked[name] for name in ("view", "marks") if asked.get(name)}
        return address(f"/runs/{run.id}/pairs/{number}", **query.in_address(), **views)

    return Filled(
        "pair.html",
        {
            "run": status,
            "shown": shown,
            "pair": shown.report,
            "offers": offers,
            "raw": raw,
            "marks": marks,
            "table": address(f"/runs/{run.id}/pairs", **query.in_address()),
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
        raise NotFound(Message("serve.run_pair_pairs_numbered", name=run.name, number=number[:40]))
    return run, int(number)


def _read(store: Store, run: RunRecord, number: int, *, raw: bool, marks: bool) -> ShownPair:
    key = store.item_keys(run.id, [number]).get(number)
    whole = None if key is None else store.item(run.id, key)
    if whole is None:
        raise NotFound(Message("serve.run_pair_table_lists", name=run.name, number=number))
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


PAIR_PAGES = (
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


# What a thread writes, sent as it is written: a file that nobody has to hold whole.

_BLOCK = 1 << 16
_WAITING = 4  # blocks; then the thread waits for whoever reads


class _GivenUp(OSError):
    """Nobody reads any more."""


class _Pipe(io.RawIOBase):
    """The thread's end: gathered to blocks, since writers write a few bytes at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, blocks: asyncio.Queue[bytes]) -> None:
        super().__init__()
        self._loop = loop
        self._blocks = blocks
        self._gathered = bytearray()
        self.given_up = False

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        if self.given_up:
            raise _GivenUp
        chunk = memoryview(cast("bytes", data)).cast("B")
        self._gathered += chunk
        if len(self._gathered) >= _BLOCK:
            self.send()
        return len(chunk)

    def send(self) -> None:
        if not self._gathered:
            return
        block, self._gathered = bytes(self._gathered), bytearray()
        sent = asyncio.run_coroutine_threadsafe(self._blocks.put(block), self._loop)
        while not self.given_up:
            try:
                sent.result(timeout=0.5)
            except TimeoutError:
                continue
            return
        sent.cancel()
        raise _GivenUp


async def piped(write: Callable[[BinaryIO], object]) -> AsyncIterator[bytes]:
    """`write` runs in a thread; it ends with an error where nobody reads any more."""
    blocks: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
    pipe = _Pipe(asyncio.get_running_loop(), blocks)

    def work() -> None:
        write(cast("BinaryIO", pipe))
        pipe.send()

    writing = asyncio.create_task(asyncio.to_thread(work))
    try:
        while True:
            reading = asyncio.create_task(blocks.get())
            await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                yield reading.result()
                continue
            reading.cancel()
            while not blocks.empty():
                yield blocks.get_nowait()
            writing.result()
            return
    finally:
        pipe.given_up = True
        # A thread cannot be broken off; it ends at its next block, and what it meets is no news.
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())


# `/runs/{id}/pairs.csv` and its like: the filtered table as a file, with texts and reasoning, a
# few rows in memory at a time.

Ending = Literal["csv", "jsonl", "parquet", "llm-comparator.json"]
_TYPES: dict[Ending, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "llm-comparator.json": "application/json",
}
_ROWS = 32


@dataclass(frozen=True, slots=True)
class _Export:
    """One run's table on its way into a file."""

    service: Service
    run: RunRecord
    query: TableQuery
    judges: dict[str, JudgeRecord]  # by the name that the table has for them

    @classmethod
    async def of(cls, visit: Visit) -> _Export:
        service, query = visit.service, table_query(visit)
        run_id = visit.run_id

        def read() -> _Export:
            run = needed_run(service.store, run_id)
            job = service.store.jobs.find(run.id)
            offered = job.judges if job else ()
            judges = {
                offered[place] if place < len(offered) else judge.name: judge
                for place, judge in enumerate(service.store.run_judges(run.id))
            }
            return cls(service, run, query, judges)

        export = await asyncio.to_thread(read)
        # What is wrong with the filters is told before a file has begun.
        await service.tables.page(str(run_id), query, limit=1)
        return export

    async def models(self) -> tuple[str, str] | None:
        """The two models, where all pairs are between the same two in the same places."""
        await self._indexed()
        met = await asyncio.to_thread(self.service.store.models_met, self.run.id, most=2)
        (model_a, model_b) = met[0] if len(met) == 1 else (None, None)
        return None if model_a is None or model_b is None else (model_a, model_b)

    async def batches(self) -> AsyncIterator[list[RunRow]]:
        await self._indexed()
        lines: list[TableLine] = []
        async for line in self.service.tables.each(str(self.run.id), self.query):
            lines.append(line)
            if len(lines) == _ROWS:
                yield await asyncio.to_thread(self._whole, lines)
                lines = []
        if lines:
            yield await asyncio.to_thread(self._whole, lines)

    async def _indexed(self) -> None:
        """A file holds all that there is: what is not in the table yet comes into it first."""
        while True:
            page = await self.service.tables.page(str(self.run.id), self.query, limit=1)
            if page.table.whole and (page.words is None or page.words.whole):
                return

    def _whole(self, lines: list[TableLine]) -> list[RunRow]:
        """In the table's order, which is not that of the store."""
        names = {judge.id: name for name, judge in self.judges.items()}
        places = [VerdictPlace(line.number, self.judges[line.judge].id) for line in lines]
        values = {
            VerdictPlace(whole.row.item.number, whole.row.judge_id): whole
            for whole in self.service.store.whole_verdicts_at(self.run.id, places)
        }
        return [
            row_of(
                values[place], run=self.run, judge=self.judges[names[place.judge_id]]
            ).model_copy(update={"judge": names[place.judge_id]})
            for place in places
            if place in values  # somebody may have had it judged anew meanwhile
        ]


def _exporting(ending: Ending) -> Callable[[Visit], Awaitable[Filled | Response]]:
    async def export(visit: Visit) -> Filled | Response:
        if ending == "parquet":
            await asyncio.to_thread(load_pyarrow)  # without it, an error that says what to do
        exported = await _Export.of(visit)
        blocks = (
            _as_lines(exported, ending)
            if ending in ("csv", "jsonl")
            else _as_file(exported, ending)
        )
        name = f"evenhand-run-{exported.run.id}.{ending}"
        return StreamingResponse(
            blocks,
            media_type=_TYPES[ending],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    return export


async def _as_lines(export: _Export, ending: Ending) -> AsyncIterator[bytes]:
    """Formats whose rows stand for themselves are sent as they are read."""
    headed = False
    if ending == "csv":
        yield _written(write_csv, [])
        headed = True
    async for rows in export.batches():
        written = await asyncio.to_thread(_written, write_csv if headed else write_jsonl, rows)
        yield written.partition(b"\n")[2] if headed else written


def _written(write: Callable[[BinaryIO, Iterable[RunRow]], int], rows: list[RunRow]) -> bytes:
    stream = io.BytesIO()
    write(stream, rows)
    return stream.getvalue()


async def _as_file(export: _Export, ending: Ending) -> AsyncIterator[bytes]:
    """Others have a frame around their rows, and are sent as they are written all the same."""
    loop = asyncio.get_running_loop()
    names = await export.models()
    batches = export.batches()

    def rows() -> Iterator[RunRow]:
        while True:
            step = asyncio.run_coroutine_threadsafe(_next(batches), loop).result()
            if step is None:
                return
            yield from step

    def write(stream: BinaryIO) -> None:
        if ending == "parquet":
            write_parquet(stream, rows())
        else:
            write_comparator(stream, rows(), names=names, run=export.run.name)

    async for block in piped(write):
        yield block


async def _next(batches: AsyncIterator[list[RunRow]]) -> list[RunRow] | None:
    return await anext(batches, None)


EXPORT_PAGES = tuple(
    Page(path=f"/runs/{{id}}/pairs.{ending}", name=f"pairsAs-{ending}", work=_exporting(ending))
    for ending in _TYPES
)
