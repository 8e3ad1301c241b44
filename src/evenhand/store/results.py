"""Verdicts read back: page by page for tables, whole with their passes, or one item at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Table, select

from evenhand.store.catalogue import judges_of_run
from evenhand.store.records import (
    ItemWhole,
    JudgedItem,
    StoredPass,
    VerdictRow,
    WholeVerdict,
)
from evenhand.store.rows import (
    item_record,
    pair_of,
    pass_key,
    settled_of,
    stored_pass,
    verdict_row,
)
from evenhand.store.schema import items, pairs, passes, replaced_passes, verdicts
from evenhand.store.texts import shorten

_ITEM = [column for column in items.c if column.name != "run_id"]
_PAIR = [column for column in pairs.c if column.name not in ("id", "digest")]
_VERDICT = [
    column for column in verdicts.c if column.name not in ("run_id", "number", "created_at", "body")
]
LIGHT = select(*_ITEM, *_VERDICT).join_from(
    verdicts,
    items,
    (items.c.run_id == verdicts.c.run_id) & (items.c.number == verdicts.c.number),
)
_WHOLE = LIGHT.add_columns(verdicts.c.body, *_PAIR).join(pairs, pairs.c.id == items.c.pair_id)

_PairAndJudge = tuple[int, int]


def verdict_page(
    connection: Connection, run_id: int, *, after: int, limit: int, judge_id: int | None
) -> list[VerdictRow]:
    rows = _page(connection, LIGHT, run_id, after=after, limit=limit, judge_id=judge_id)
    return [verdict_row(row) for row in rows]


def whole_page(
    connection: Connection, run_id: int, *, after: int, limit: int, judge_id: int | None
) -> list[WholeVerdict]:
    rows = _page(connection, _WHOLE, run_id, after=after, limit=limit, judge_id=judge_id)
    made = _passes_of(connection, passes, {(row["pair_id"], row["judge_id"]) for row in rows})
    return [_whole(row, made[row["pair_id"], row["judge_id"]]) for row in rows]


def whole_of(
    connection: Connection, condition: ColumnElement[bool], places: Collection[tuple[int, int]]
) -> list[WholeVerdict]:
    """Those that meet the condition and stand at these places (item number, judge)."""
    query = _WHOLE.where(condition).order_by(verdicts.c.number, verdicts.c.judge_id)
    found = connection.execute(query).mappings()
    rows = [row for row in found if (row["number"], row["judge_id"]) in places]
    made = _passes_of(connection, passes, {(row["pair_id"], row["judge_id"]) for row in rows})
    return [_whole(row, made[row["pair_id"], row["judge_id"]]) for row in rows]


def _whole(row: RowMapping, made: Sequence[StoredPass]) -> WholeVerdict:
    return WholeVerdict(verdict_row(row), pair_of(row), settled_of(row, made), tuple(made))


def _page(
    connection: Connection,
    query: Select[Any],
    run_id: int,
    *,
    after: int,
    limit: int,
    judge_id: int | None,
) -> list[RowMapping]:
    """Whole items: where the last one has verdicts of further judges, they come with it."""
    query = query.where(verdicts.c.run_id == run_id)
    if judge_id is not None:
        query = query.where(verdicts.c.judge_id == judge_id)
    query = query.order_by(verdicts.c.number, verdicts.c.judge_id)
    first = query.where(verdicts.c.number > after).limit(limit)
    rows = list(connection.execute(first).mappings())
    if len(rows) == limit:
        last = rows[-1]
        rest = query.where(
            verdicts.c.number == last["number"], verdicts.c.judge_id > last["judge_id"]
        )
        rows += connection.execute(rest).mappings()
    return rows


def _passes_of(
    connection: Connection, table: Table, wanted: Iterable[_PairAndJudge]
) -> defaultdict[_PairAndJudge, list[StoredPass]]:
    """The passes of these pairs by these judges, original order first."""
    pair_ids: defaultdict[int, set[int]] = defaultdict(set)
    for pair_id, judge_id in wanted:
        pair_ids[judge_id].add(pair_id)
    made: defaultdict[_PairAndJudge, list[StoredPass]] = defaultdict(list)
    for judge_id, ids in pair_ids.items():
        query = select(table).where(table.c.pair_id.in_(sorted(ids)), table.c.judge_id == judge_id)
        for row in connection.execute(query.order_by(table.c.created_at)).mappings():
            made[row["pair_id"], judge_id].append(stored_pass(row))
    for found in made.values():
        found.sort(key=pass_key)
    return made


def whole_item(connection: Connection, run_id: int, key: str) -> ItemWhole | None:
    found = (
        select(*_ITEM, *_PAIR)
        .join(pairs, pairs.c.id == items.c.pair_id)
        .where(items.c.run_id == run_id, items.c.key == shorten(key))
    )
    row = connection.execute(found).mappings().first()
    if row is None:
        return None
    item = item_record(row)
    query = _WHOLE.where(verdicts.c.run_id == run_id, verdicts.c.number == item.number)
    by_judge = {each["judge_id"]: each for each in connection.execute(query).mappings()}
    judges = judges_of_run(connection, run_id)
    wanted = [(item.pair_id, judge.id) for judge in judges]
    made = _passes_of(connection, passes, wanted)
    replaced = _passes_of(connection, replaced_passes, wanted)
    judged = []
    for judge in judges:
        its_passes = made[item.pair_id, judge.id]
        verdict = by_judge.get(judge.id)
        judged.append(
            JudgedItem(
                judge=judge,
                settled=settled_of(verdict, its_passes) if verdict is not None else None,
                passes=tuple(its_passes),
                replaced=tuple(replaced[item.pair_id, judge.id]),
            )
        )
    return ItemWhole(item, pair_of(row), tuple(judged))
