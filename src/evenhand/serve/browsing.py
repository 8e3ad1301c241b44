"""A run's verdicts as pages show them: a table with filters, and what stands beside a pair."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable

from evenhand.contract import Outcome, Winner
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.serve.indexing import fill_some
from evenhand.serve.readings import needed_run
from evenhand.serve.verdict_filters import VerdictFilters
from evenhand.store import RunRecord, Store
from evenhand.store.verdict_table import (
    Coverage,
    Sort,
    TableFilter,
    TablePlace,
    TableRow,
)

# A page waits so long for what is not indexed yet; a run of some thousand pairs is done by then.
_FILLED_WITHIN_S = 0.1
_MOST_LINES = 1000
_FEW = 500  # nobody is told how many there are beside a pair
_CURSOR = re.compile(r"([ab])(-?\d{1,15}(?:\.\d{1,20})?(?:e-\d{1,3})?)?_(\d{1,18})_(\d{1,18})")


class TableQuery(VerdictFilters):
    """What a table shows and how it is sorted; all of it fits into an address."""

    sort: Sort = "number"
    descending: bool = False


class TableLine(Model):
    """One judge's verdict on one pair; `prompt` is its beginning."""

    number: int
    id: str
    judge: str
    outcome: Outcome
    winner: Winner | None
    confidence: float | None
    label: Winner | None
    label_voted: bool
    disagrees: bool | None
    judges_differ: bool
    noted: bool
    unread: bool
    abstained: bool
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    length_a: int
    length_b: int
    prompt: str


class Progress(Model):
    """How much of the run an index holds; pages say so where it is not whole."""

    done: int
    total: int
    whole: bool


class PairTable(Model):
    """`next` and `previous` are cursors. `count` is exact unless `counted_more` ("10,000+")."""

    lines: tuple[TableLine, ...]
    next: str | None
    previous: str | None
    count: int
    counted_more: bool
    table: Progress  # verdicts that can be filtered and sorted so far
    words: Progress | None  # pairs that can be searched so far; None where nothing is searched


class Neighbours(Model):
    """The pairs before and after one in a filtered table, for j and k; None at the ends."""

    previous: int | None
    next: int | None


class Browsing:
    """`service.tables`; `looked_at` is told of every run that somebody browses."""

    def __init__(self, store: Store, *, looked_at: Callable[[int], None]) -> None:
        self._store = store
        self._looked_at = looked_at

    async def page(
        self, run_id: str, query: TableQuery, *, cursor: str | None = None, limit: int = 50
    ) -> PairTable:
        """A page of the table, from a cursor on; InputError where that is none of this table's."""
        after, before = _read_cursor(cursor, query.sort)

        def read() -> PairTable:
            run, names = self._run(run_id)
            filled = fill_some(
                self._store, run, words=query.query is not None, within_s=_FILLED_WITHIN_S
            )
            if not (filled.table.whole and filled.words.whole):
                self._looked_at(run.id)
            page = self._store.browse(
                run.id,
                table_filter(query, names),
                sort=query.sort,
                descending=query.descending,
                after=after,
                before=before,
                limit=max(1, min(limit, _MOST_LINES)),
            )
            return PairTable(
                lines=tuple(_line(row, names[row.judge_id]) for row in page.rows),
                next=_cursor("a", page.next),
                previous=_cursor("b", page.previous),
                count=page.count.count,
                counted_more=page.count.more,
                table=_progress(filled.table),
                words=None if query.query is None else _progress(filled.words),
            )

        return await asyncio.to_thread(read)

    async def prepare(self, run_id: str) -> None:
        """Fill what is missing for a moment, for a page whose figures come from it."""

        def fill() -> None:
            run = needed_run(self._store, run_id)
            if not fill_some(self._store, run, words=False, within_s=_FILLED_WITHIN_S).table.whole:
                self._looked_at(run.id)

        await asyncio.to_thread(fill)

    async def each(self, run_id: str, query: TableQuery) -> AsyncIterator[TableLine]:
        """All of the table, a page in memory at a time: for files."""
        cursor: str | None = None
        while True:
            page = await self.page(run_id, query, cursor=cursor, limit=_MOST_LINES)
            for line in page.lines:
                yield line
            cursor = page.next
            if cursor is None:
                return

    async def neighbours(
        self, run_id: str, query: TableQuery, number: int, *, judge: str | None = None
    ) -> Neighbours:
        """`judge` where a pair stands in the table several times, and one of them is meant."""

        def read() -> Neighbours:
            run, names = self._run(run_id)
            # Whoever was sent the address of a pair has not been to the table.
            fill_some(self._store, run, words=query.query is not None, within_s=_FILLED_WITHIN_S)
            wanted = table_filter(query, names)
            meant = wanted.judge_ids if judge is None else _judge_ids(judge, names)
            place = self._store.place_of(run.id, number, judge_ids=meant, sort=query.sort)
            if place is None:
                return Neighbours(previous=None, next=None)

            def nearest(*, back: bool) -> int | None:
                page = self._store.browse(
                    run.id,
                    wanted,
                    sort=query.sort,
                    descending=query.descending,
                    after=None if back else place,
                    before=place if back else None,
                    limit=len(names),
                    count_to=_FEW,
                )
                rows = page.rows[::-1] if back else page.rows
                return next((row.number for row in rows if row.number != number), None)

            return Neighbours(previous=nearest(back=True), next=nearest(back=False))

        return await asyncio.to_thread(read)

    def _run(self, run_id: str) -> tuple[RunRecord, dict[int, str]]:
        """The run, and what clients call its judges."""
        run = needed_run(self._store, run_id)
        job = self._store.jobs.find(run.id)
        offered = job.judges if job else ()
        judges = self._store.run_judges(run.id)
        return run, {
            judge.id: offered[place] if place < len(offered) else judge.name
            for place, judge in enumerate(judges)
        }


def _judge_ids(judge: str, names: dict[int, str]) -> tuple[int, ...]:
    found = tuple(judge_id for judge_id, name in names.items() if name == judge)
    if not found:
        raise InputError(
            f"judge is {judge[:80]!r}, which the run does not have; "
            f"it has {', '.join(names.values())}"
        )
    return found


def table_filter(query: VerdictFilters, names: dict[int, str]) -> TableFilter:
    """`names` are what clients call the run's judges."""
    return TableFilter(
        outcome=query.outcome,
        winner=query.winner,
        judge_ids=None if query.judge is None else _judge_ids(query.judge, names),
        tag=query.tag,
        disagrees=query.disagrees,
        abstained=query.abstained,
        min_confidence=query.min_confidence,
        max_confidence=query.max_confidence,
        criterion=query.criterion,
        criterion_end=query.criterion_end,
        judges_differ=query.judges_differ,
        noted=query.noted,
        unread=query.unread,
        query=query.query,
        ending=query.ending,
        label=query.label,
        model=query.model,
        against=query.against,
        named=query.named,
        model_wins=query.model_wins,
        count_votes=query.count_votes,
    )


def _line(row: TableRow, judge: str) -> TableLine:
    return TableLine(
        number=row.number,
        id=row.id,
        judge=judge,
        outcome=row.outcome,
        winner=row.winner,
        confidence=row.confidence,
        label=row.label,
        label_voted=row.label_voted,
        disagrees=row.disagrees,
        judges_differ=row.judges_differ,
        noted=row.noted,
        unread=row.unread,
        abstained=row.abstained,
        model_a=row.model_a,
        model_b=row.model_b,
        tags=row.tags,
        length_a=row.length_a,
        length_b=row.length_b,
        prompt=row.prompt,
    )


def _progress(covered: Coverage) -> Progress:
    return Progress(done=covered.done, total=covered.total, whole=covered.whole)


def _cursor(way: str, place: TablePlace | None) -> str | None:
    if place is None:
        return None
    key = "" if place.key is None else repr(place.key)
    return f"{way}{key}_{place.number}_{place.judge_id}"


def _read_cursor(cursor: str | None, sort: Sort) -> tuple[TablePlace | None, TablePlace | None]:
    """After a place, before one, or neither."""
    if cursor is None:
        return None, None
    found = _CURSOR.fullmatch(cursor)
    # Confidence alone may be missing, and it alone is no whole number.
    if found is None or (sort != "confidence" and not (found[2] or "").lstrip("-").isdigit()):
        raise InputError(f"cursor is {cursor[:40]!r}; give the `next` of the page before")
    key: float | None = None
    if found[2]:
        key = float(found[2]) if sort == "confidence" else int(found[2])
    place = TablePlace(key, int(found[3]), int(found[4]))
    return (place, None) if found[1] == "a" else (None, place)
