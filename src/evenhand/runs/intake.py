"""Rows become items of a run, before anything is spent: bad rows and clashing ids show here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evenhand.data import BadRow, Record
from evenhand.errors import DataError
from evenhand.runs.options import BadRows
from evenhand.runs.sources import Sources
from evenhand.runs.stop import Stop
from evenhand.store import NewItem, RunRecord, SkippedRow, Store

_AT_ONCE = 500
_CHARACTERS_AT_ONCE = 8_000_000  # a response may have 50 million
REPEATED_ROWS = "repeatedRows"  # in a run's summary; reports read it


def take_in(
    store: Store,
    run_id: int,
    sources: Sources,
    *,
    bad_rows: BadRows,
    by_id: bool,
    stop: Stop,
    told: Callable[[int], None],
) -> bool:
    """Whether all of it was read; a second time changes nothing. `told` hears of the rows so far.

    `by_id`: some judge finds its answers by a pair's id, so that equal texts are not equal pairs.
    """
    rows = records = 0
    for batch in _batches(sources):
        if stop.by is not None:
            return False
        bad = [row for row in batch if isinstance(row, BadRow)]
        if bad and bad_rows == "stop":
            raise DataError(
                f"{bad[0].message} (correct it, or leave such rows out with --bad-rows skip)"
            )
        items = [_item(row, by_id) for row in batch if isinstance(row, Record)]
        store.add_items(run_id, items)
        records += len(items)
        if bad:
            store.add_skipped(run_id, [SkippedRow(b.source, b.row, b.reason) for b in bad])
        rows += len(batch)
        told(rows)
    kept = store.count_items(run_id)
    if kept == 0:
        raise DataError(f"{', '.join(sources.names)} holds no pairs that can be judged; check it")
    # Every reading begins with the first row, so that this holds for a second one too; what a
    # batch added would not.
    if records > kept:
        store.update_run(run_id, summary={REPEATED_ROWS: records - kept})
    return True


def note_on_repeats(run: RunRecord) -> str | None:
    count = run.summary.get(REPEATED_ROWS, 0)
    if not count:
        return None
    rows = "1 row repeats" if count == 1 else f"{count:,} rows repeat"
    return f"{rows} another row with the same id and content; each pair is judged once"


def _batches(sources: Sources) -> Iterator[list[Record | BadRow]]:
    batch: list[Record | BadRow] = []
    characters = 0
    for row in sources.records():
        batch.append(row)
        if isinstance(row, Record):
            pair = row.pair
            characters += len(pair.prompt) + len(pair.response_a) + len(pair.response_b)
        if len(batch) == _AT_ONCE or characters > _CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _item(record: Record, by_id: bool) -> NewItem:
    return NewItem(
        record.key,
        record.pair,
        record.source,
        record.row,
        label=record.label,
        model_a=record.model_a,
        model_b=record.model_b,
        tags=record.tags,
        salt=record.pair.id if by_id else None,
    )
