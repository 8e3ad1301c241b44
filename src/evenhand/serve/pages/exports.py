"""`/runs/{id}/pairs.csv` and its like: the filtered table as a file, with texts and reasoning, a
few rows in memory at a time."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

from starlette.responses import Response, StreamingResponse

from evenhand.report.comparator import write_comparator
from evenhand.report.csv_table import write_csv
from evenhand.report.jsonl import write_jsonl
from evenhand.report.parquet import load_pyarrow, write_parquet
from evenhand.report.records import RunRow, row_of
from evenhand.serve.browsing import TableLine, TableQuery
from evenhand.serve.pages.page import Filled, Page, Visit
from evenhand.serve.pages.pairs import table_query
from evenhand.serve.pages.piped import piped
from evenhand.serve.readings import needed_run
from evenhand.serve.service import Service
from evenhand.store import JudgeRecord, RunRecord
from evenhand.store.verdict_search import VerdictPlace

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
        found = {
            VerdictPlace(whole.row.item.number, whole.row.judge_id): whole
            for whole in self.service.store.whole_verdicts_at(self.run.id, places)
        }
        return [
            row_of(found[place], run=self.run, judge=self.judges[names[place.judge_id]]).model_copy(
                update={"judge": names[place.judge_id]}
            )
            for place in places
            if place in found  # somebody may have had it judged anew meanwhile
        ]


def _exporting(ending: Ending) -> Callable[[Visit], Awaitable[Filled | Response]]:
    async def export(visit: Visit) -> Filled | Response:
        if ending == "parquet":
            await asyncio.to_thread(load_pyarrow)  # without it, an error that says what to do
        told = await _Export.of(visit)
        blocks = _as_lines(told, ending) if ending in ("csv", "jsonl") else _as_file(told, ending)
        name = f"evenhand-run-{told.run.id}.{ending}"
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


PAGES = tuple(
    Page(path=f"/runs/{{id}}/pairs.{ending}", name=f"pairsAs-{ending}", work=_exporting(ending))
    for ending in _TYPES
)
