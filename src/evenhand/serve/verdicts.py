"""A run's verdicts for clients: the filters, the table that pages show, and the pages of
`/v1/runs/{id}/verdicts`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import model_validator

from evenhand.contract import Failure
from evenhand.contract.model import Model
from evenhand.contract.pair import Text
from evenhand.errors import InputError, ServerBusy, StoreError
from evenhand.judges.addresses import AddressRedactor
from evenhand.messages import Language, Message
from evenhand.present.reasons import reason_of
from evenhand.report.records import RunRow, row_of
from evenhand.serve.figures import Figure, FigureCache
from evenhand.serve.run_status import needed_run
from evenhand.serve.values import VerdictLine, VerdictPage
from evenhand.store import JudgeRecord, RunRecord, Store, VerdictRow
from evenhand.store.full_text import WORDS_FIGURE
from evenhand.store.verdict_filter import VerdictFilter
from evenhand.store.verdict_table import Neighbours, Sort, TablePlace, TableRow
from evenhand.store.verdicts import VerdictPlace

if TYPE_CHECKING:
    from evenhand.contract import ConfidenceSource


class VerdictQuery(VerdictFilter):
    """All given filters must match. `judge` is what clients call one of the run's judges."""

    judge: Text | None = None

    @model_validator(mode="after")
    def _refuse_nobody(self) -> Self:
        for name, asked in (
            ("modelWins", self.model_wins is not None),
            (f"criterionEnd {self.criterion_end}", self.criterion_end in ("model", "other")),
        ):
            if asked and self.model is None:
                raise InputError(Message("serve.model_needed", name=name))
        return self


_MOST_LINES = 1000
_READ_FOR_A_REASON = 100_000
_MOST_IN_CURSOR = 2**31 - 1  # of a column of a table
_CURSOR = re.compile(r"([ab])(-?\d{1,15}(?:\.\d{1,20})?(?:e-\d{1,3})?)?_(\d{1,18})_(\d{1,18})")


class TableQuery(VerdictQuery):
    """What a table shows and how it is sorted; all of it fits into an address."""

    sort: Sort = "number"
    descending: bool = False

    def in_address(self) -> dict[str, Any]:
        """The filters that are set, as an address has them."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


@dataclass(frozen=True, slots=True)
class PairTable:
    """`next` and `previous` are cursors; `names` are what clients call the judges. `searching`: the
    words of its texts are still being indexed."""

    rows: tuple[TableRow, ...]
    names: Mapping[int, str]
    next: str | None
    previous: str | None
    count: int
    searching: bool


class WordIndex(Model):
    """How many pairs of a run had their words indexed."""

    pairs: int


def word_index(run_id: str) -> Figure[WordIndex]:
    """The words of a run's texts, indexed on the first search."""
    return Figure(name=WORDS_FIGURE, runs=(run_id,), model=WordIndex, compute=_index_words)


def _index_words(store: Store, runs: Sequence[RunRecord]) -> WordIndex:
    run_id = runs[0].id
    pairs = store.items.count(run_id)
    # Until nothing is left: a run that is deleted meanwhile may take words along.
    while (reached := store.words.add(run_id)) is not None:
        while reached is not None:
            reached = store.words.add(run_id, after=reached)
    return WordIndex(pairs=pairs)


class VerdictBrowser:
    def __init__(self, store: Store, cache: FigureCache) -> None:
        self._store = store
        self._cache = cache

    async def page(
        self, run_id: str, query: TableQuery, *, cursor: str | None = None, limit: int = 50
    ) -> PairTable:
        """A page of the table, from a cursor on; InputError where that is none of this table's."""
        searching = query.query is not None and not await self._is_searchable(run_id)
        return await asyncio.to_thread(self._page, run_id, query, cursor, limit, searching)

    async def _is_searchable(self, run_id: str) -> bool:
        """Whether all words of the run are indexed; that is begun where they are not."""
        indexed = (await self._cache.get(word_index(run_id))).value
        if indexed is None:
            return False
        run = await asyncio.to_thread(needed_run, self._store, run_id)
        return indexed.pairs >= await asyncio.to_thread(self._store.items.count, run.id)

    async def need_words(self, run_id: str, filters: VerdictQuery) -> None:
        """ServerBusy where the filters need words that are not indexed yet: a part of what meets
        them would look like the whole."""
        if filters.query is not None and not await self._is_searchable(run_id):
            raise ServerBusy(Message("serve.index_pending", run=run_id), retry_after_s=5)

    def _page(
        self, run_id: str, query: TableQuery, cursor: str | None, limit: int, searching: bool
    ) -> PairTable:
        after, before = _read_cursor(cursor, query.sort)
        run, judges, names = self._run(run_id)
        ids = judge_ids(query.judge, judges, names)
        page = self._store.table.browse(
            run.id,
            query,
            judge_ids=ids,
            sort=query.sort,
            descending=query.descending,
            after=after,
            before=before,
            limit=max(1, min(limit, _MOST_LINES)),
        )
        unknown = {row.judge_id for row in page.rows} - names.keys()
        if unknown:
            raise StoreError(
                Message("serve.verdict_of_unknown_judge", run=run.name, judge=min(unknown))
            )
        return PairTable(
            rows=page.rows,
            names=names,
            next=_cursor("a", page.next),
            previous=_cursor("b", page.previous),
            count=self._store.table.count(run.id, query, judge_ids=ids),
            searching=searching,
        )

    async def reasons(
        self, run_id: str, rows: Sequence[TableRow], language: Language
    ) -> dict[tuple[int, int], str]:
        """Of each row the first sentence of what the judge gave for it, in the pass that came to
        the verdict; of an inconsistent pair what each order chose, of an invalid one why. Long
        texts are left alone: to read them for a line takes longer than the page."""

        def read() -> dict[tuple[int, int], str]:
            run, judges, _ = self._run(run_id)
            hide = {each.id: AddressRedactor.of_record(each.settings) for each in judges}
            short = [
                VerdictPlace(row.number, row.judge_id)
                for row in rows
                if row.length_a + row.length_b <= _READ_FOR_A_REASON
            ]
            return {
                (whole.row.item.number, whole.row.judge_id): reason_of(
                    whole, language, hide[whole.row.judge_id]
                )
                for whole in self._store.verdicts.whole_at(run.id, short)
            }

        return await asyncio.to_thread(read)

    def each(self, run_id: str, query: TableQuery) -> Iterator[TableRow]:
        """All of the table, a page in memory at a time; for a thread."""
        run, ids = self._asked(run_id, query)
        after: TablePlace | None = None
        while True:
            page = self._store.table.browse(
                run.id,
                query,
                judge_ids=ids,
                sort=query.sort,
                descending=query.descending,
                after=after,
                limit=_MOST_LINES,
            )
            yield from page.rows
            after = page.next
            if after is None:
                return

    async def neighbours(self, run_id: str, query: TableQuery, number: int) -> Neighbours:
        """Of a pair in a filtered table."""

        def read() -> Neighbours:
            run, ids = self._asked(run_id, query)
            return self._store.table.neighbours(
                run.id,
                query,
                number,
                judge_ids=ids,
                sort=query.sort,
                descending=query.descending,
            )

        return await asyncio.to_thread(read)

    async def page_of(
        self, run_id: str, query: TableQuery, number: int, *, limit: int = 50
    ) -> str | None:
        """The cursor of the page that a pair stands on; None: the first one."""

        def read() -> str | None:
            run, ids = self._asked(run_id, query)
            start = self._store.table.page_start(
                run.id,
                query,
                number,
                judge_ids=ids,
                sort=query.sort,
                descending=query.descending,
                limit=limit,
            )
            return _cursor("a", start)

        return await asyncio.to_thread(read)

    def _asked(self, run_id: str, query: VerdictQuery) -> tuple[RunRecord, tuple[int, ...] | None]:
        run, judges, names = self._run(run_id)
        return run, judge_ids(query.judge, judges, names)

    def _run(self, run_id: str) -> tuple[RunRecord, list[JudgeRecord], dict[int, str]]:
        """The run, its judges, and what clients call them."""
        run = needed_run(self._store, run_id)
        judges = self._store.runs.judges(run.id)
        return run, judges, client_names(self._store, run, judges)


def client_names(store: Store, run: RunRecord, judges: Sequence[JudgeRecord]) -> dict[int, str]:
    """What clients call the run's judges: by their offers' names, where a server began it."""
    job = store.jobs.find(run.id)
    offered = job.judges if job else ()
    return {
        judge.id: offered[place] if place < len(offered) else judge.name
        for place, judge in enumerate(judges)
    }


def judge_ids(
    judge: str | None, judges: Sequence[JudgeRecord], names: dict[int, str]
) -> tuple[int, ...] | None:
    """`names` are what clients call the run's judges; None: all of them."""
    if judge is None:
        return None
    ids = tuple(each.id for each in judges if judge in (names[each.id], each.name))
    if not ids:
        raise InputError(
            Message("serve.judge_unknown", judge=judge[:80], values=", ".join(names.values()))
        )
    return ids


def _cursor(way: str, place: TablePlace | None) -> str | None:
    if place is None:
        return None
    key = "" if place.key is None else repr(place.key)
    return f"{way}{key}_{place.number}_{place.judge_id}"


def _no_cursor(cursor: str | None) -> InputError:
    return InputError(Message("serve.cursor_malformed", cursor=str(cursor)[:40]))


def _read_cursor(cursor: str | None, sort: Sort) -> tuple[TablePlace | None, TablePlace | None]:
    """After a place, before one, or neither."""
    if cursor is None:
        return None, None
    match = _CURSOR.fullmatch(cursor)
    # Confidence alone may be missing, and it alone is no whole number.
    if match is None or (sort != "confidence" and not (match[2] or "").lstrip("-").isdigit()):
        raise _no_cursor(cursor)
    if max(abs(float(each)) for each in match.groups()[1:] if each) > _MOST_IN_CURSOR:
        raise _no_cursor(cursor)
    key: float | None = None
    if match[2]:
        key = float(match[2]) if sort == "confidence" else int(match[2])
    place = TablePlace(key, int(match[3]), int(match[4]))
    return (place, None) if match[1] == "a" else (None, place)


_WHOLE_AT_ONCE = 16
_PAGE_CHARACTERS = 8_000_000


def read_page(
    store: Store,
    run: RunRecord,
    filters: VerdictQuery,
    *,
    cursor: str | None,
    limit: int,
    full: bool,
) -> VerdictPage:
    judges = store.runs.judges(run.id)
    names = client_names(store, run, judges)
    ids = judge_ids(filters.judge, judges, names)
    after, before = _read_cursor(cursor, "number")
    if before is not None:
        raise _no_cursor(cursor)
    page = store.table.browse(run.id, filters, judge_ids=ids, after=after, limit=limit)
    rows = store.verdicts.at(run.id, [VerdictPlace(*row.place[1:]) for row in page.rows])
    place = page.next
    if not full:
        hide = {judge.id: AddressRedactor.of_record(judge.settings) for judge in judges}
        lines = tuple(
            _verdict_line(row, names[row.judge_id], hide=hide[row.judge_id]) for row in rows
        )
        return VerdictPage(verdicts=lines, next=_cursor("a", place))
    whole, ended = _whole_rows(store, run, rows, {judge.id: judge for judge in judges}, names)
    if not ended and whole:
        last = rows[len(whole) - 1]
        place = TablePlace(last.item.number, last.item.number, last.judge_id)
    return VerdictPage(verdicts=tuple(whole), next=_cursor("a", place))


def _whole_rows(
    store: Store,
    run: RunRecord,
    rows: Sequence[VerdictRow],
    judges: dict[int, JudgeRecord],
    names: dict[int, str],
) -> tuple[list[RunRow], bool]:
    """As many as fit into memory comfortably, and whether that is all of them."""
    places = [VerdictPlace(row.item.number, row.judge_id) for row in rows]
    whole: list[RunRow] = []
    hide = {number: AddressRedactor.of_record(each.settings) for number, each in judges.items()}
    characters = 0
    size = 1
    start = 0
    while start < len(places):
        for each in store.verdicts.whole_at(run.id, places[start : start + size]):
            row = row_of(each, run=run, judge=judges[each.row.judge_id])
            row = row.model_copy(update={"judge": names[each.row.judge_id]})
            whole.append(_without_address(row, hide[each.row.judge_id]))
            characters += len(row.prompt) + len(row.response_a) + len(row.response_b)
        if characters > _PAGE_CHARACTERS:
            break
        start += size
        size = min(2 * size, _WHOLE_AT_ONCE)
    return whole, len(whole) == len(rows)


def _without_address(row: RunRow, hide: AddressRedactor) -> RunRow:
    """The command line keeps in the same store what it tells its own user."""
    if row.error_message is None:
        return row
    hidden: dict[str, object] = {"error_message": hide(row.error_message)}
    if isinstance(row.verdict, Failure):
        error = row.verdict.error.model_copy(update={"message": hide(row.verdict.error.message)})
        hidden["verdict"] = row.verdict.model_copy(update={"error": error})
    return row.model_copy(update=hidden)


def _verdict_line(row: VerdictRow, judge: str, *, hide: AddressRedactor) -> VerdictLine:
    item = row.item
    return VerdictLine(
        id=item.key,
        number=item.number,
        row=item.row,
        source=item.source,
        judge=judge,
        label=item.label,
        model_a=item.model_a,
        model_b=item.model_b,
        tags=item.tags,
        outcome=row.outcome,
        winner=row.winner,
        confidence=row.confidence,
        confidence_source=cast("ConfidenceSource", row.confidence_source),
        abstained=row.abstained,
        first_pass_winner=row.first_pass_winner,
        second_pass_winner=row.second_pass_winner,
        error_kind=row.error_kind,
        error_message=None if row.error_message is None else hide(row.error_message),
    )
