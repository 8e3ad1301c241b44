"""A run's verdicts for clients: filtered, a page at a time, light or with all their texts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from evenhand.contract import Failure
from evenhand.errors import InputError, ServerBusy
from evenhand.report.records import RunRow, row_of
from evenhand.serve.browsing import table_filter
from evenhand.serve.discretion import Discretion
from evenhand.serve.indexing import fill_some
from evenhand.serve.values import VerdictLine, VerdictPage
from evenhand.serve.verdict_filters import VerdictFilters
from evenhand.store import JudgeRecord, RunRecord, Store, VerdictRow
from evenhand.store.verdict_search import (
    RUN_START,
    FoundVerdicts,
    VerdictFilter,
    VerdictPlace,
)
from evenhand.store.verdict_table import TablePlace

if TYPE_CHECKING:
    from evenhand.contract import ConfidenceSource

_CURSOR = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
# Nothing may be found for long; the client gets what there is by then, and asks on.
_SEARCHED_FOR_S = 1.0
_WHOLE_AT_ONCE = 16
_PAGE_CHARACTERS = 8_000_000


def read_page(
    store: Store,
    run: RunRecord,
    filters: VerdictFilters,
    *,
    offered: Sequence[str],
    cursor: str | None,
    limit: int,
    full: bool,
) -> VerdictPage:
    """`offered` are the names that clients know the run's judges by, in their order."""
    judges = store.run_judges(run.id)
    names = {
        judge.id: offered[place] if place < len(offered) else judge.name
        for place, judge in enumerate(judges)
    }
    search = _by_marks if filters.of_table else _by_verdicts
    place: VerdictPlace | None = _place(cursor)
    rows: list[VerdictRow] = []
    until = time.monotonic() + _SEARCHED_FOR_S
    find = search(store, run, filters, judges=judges, names=names)
    while place is not None and len(rows) < limit:
        found = find(place, limit - len(rows))
        rows += found.rows
        place = found.reached
        if time.monotonic() > until:
            break
    if not full:
        hide = {judge.id: Discretion.of_record(judge.settings) for judge in judges}
        lines = tuple(_line(row, names[row.judge_id], hide=hide[row.judge_id]) for row in rows)
        return VerdictPage(verdicts=lines, next=_told(place))
    whole, ended = _whole_rows(store, run, rows, {judge.id: judge for judge in judges}, names)
    if not ended and whole:
        last = rows[len(whole) - 1]
        place = VerdictPlace(last.item.number, last.judge_id)
    return VerdictPage(verdicts=tuple(whole), next=_told(place))


_Find = Callable[[VerdictPlace, int], FoundVerdicts]


def _by_verdicts(
    store: Store,
    run: RunRecord,
    filters: VerdictFilters,
    *,
    judges: Sequence[JudgeRecord],
    names: dict[int, str],
) -> _Find:
    wanted = _filter(filters, judges, names)
    return lambda after, limit: store.find_verdicts(run.id, wanted, after=after, limit=limit)


def _by_marks(
    store: Store,
    run: RunRecord,
    filters: VerdictFilters,
    *,
    judges: Sequence[JudgeRecord],
    names: dict[int, str],
) -> _Find:
    """As tables are read; a client is told to wait where they do not hold all of it yet, since a
    part would look like the whole."""
    searched = filters.query is not None
    filled = fill_some(store, run, words=searched, within_s=_SEARCHED_FOR_S)
    for told, what in ((filled.table, "verdicts"), (filled.words, "pairs' words")):
        if not told.whole and (searched or told is filled.table):
            raise ServerBusy(
                f"{told.done} of {told.total} {what} of run {run.name!r} are indexed so far, "
                "which this filter needs; try again later",
                retry_after_s=5,
            )
    wanted = replace(
        table_filter(filters.model_copy(update={"judge": None}), names),
        judge_ids=_filter(filters, judges, names).judge_ids,
    )

    def find(after: VerdictPlace, limit: int) -> FoundVerdicts:
        # In the order of the items, which is what a table's places by number are.
        place = TablePlace(after.number, *after)
        page = store.browse(run.id, wanted, after=place, limit=limit)
        rows = store.verdicts_at(run.id, [VerdictPlace(*each.place[1:]) for each in page.rows])
        reached = None if page.next is None else VerdictPlace(*page.next[1:])
        return FoundVerdicts(rows, reached)

    return find


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
    hide = {number: Discretion.of_record(each.settings) for number, each in judges.items()}
    characters = 0
    size = 1
    start = 0
    while start < len(places):
        for each in store.whole_verdicts_at(run.id, places[start : start + size]):
            row = row_of(each, run=run, judge=judges[each.row.judge_id])
            row = row.model_copy(update={"judge": names[each.row.judge_id]})
            whole.append(_without_address(row, hide[each.row.judge_id]))
            characters += len(row.prompt) + len(row.response_a) + len(row.response_b)
        if characters > _PAGE_CHARACTERS:
            break
        start += size
        size = min(2 * size, _WHOLE_AT_ONCE)
    return whole, len(whole) == len(rows)


def _without_address(row: RunRow, hide: Discretion) -> RunRow:
    """The command line keeps in the same store what it tells its own user."""
    if row.error_message is None:
        return row
    hidden: dict[str, object] = {"error_message": hide(row.error_message)}
    if isinstance(row.verdict, Failure):
        said = row.verdict.error.model_copy(update={"message": hide(row.verdict.error.message)})
        hidden["verdict"] = row.verdict.model_copy(update={"error": said})
    return row.model_copy(update=hidden)


def _filter(
    filters: VerdictFilters, judges: Sequence[JudgeRecord], names: dict[int, str]
) -> VerdictFilter:
    judge_ids = None
    if filters.judge is not None:
        judge_ids = tuple(
            judge.id for judge in judges if filters.judge in (names[judge.id], judge.name)
        )
        if not judge_ids:
            raise InputError(
                f"judge is {filters.judge[:80]!r}, which the run does not have; "
                f"it has {', '.join(names.values())}"
            )
    return VerdictFilter(
        outcome=filters.outcome,
        winner=filters.winner,
        judge_ids=judge_ids,
        tag=filters.tag,
        disagrees=filters.disagrees,
        abstained=filters.abstained,
        min_confidence=filters.min_confidence,
        max_confidence=filters.max_confidence,
    )


def _place(cursor: str | None) -> VerdictPlace:
    if cursor is None:
        return RUN_START
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InputError(f"cursor is {cursor[:40]!r}; give the `next` of the page before")
    return VerdictPlace(int(found[1]), int(found[2]))


def _told(place: VerdictPlace | None) -> str | None:
    return None if place is None else f"{place.number}-{place.judge_id}"


def _line(row: VerdictRow, judge: str, *, hide: Discretion) -> VerdictLine:
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
