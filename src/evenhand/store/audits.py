"""What an audit asks beside the verdicts: ids, repeated questions, pairs that two runs share."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from evenhand.store.coding import WINNERS
from evenhand.store.columns import PassColumns
from evenhand.store.schema import items, passes

_AT_ONCE = 500


def item_keys(connection: Connection, run_id: int, numbers: Sequence[int]) -> dict[int, str]:
    query = select(items.c.number, items.c.key, items.c.full_key).where(items.c.run_id == run_id)
    found: dict[int, str] = {}
    for start in range(0, len(numbers), _AT_ONCE):
        some = query.where(items.c.number.in_(numbers[start : start + _AT_ONCE]))
        found |= {number: full or key for number, key, full in connection.execute(some)}
    return found


_PASSES = (
    select(
        items.c.number,
        items.c.prompt_key,
        passes.c.shown_order,
        passes.c.sample,
        passes.c.winner,
    )
    .join_from(items, passes, passes.c.pair_id == items.c.pair_id)
    .where(items.c.run_id == bindparam("run"), passes.c.judge_id == bindparam("judge"))
)


def pass_columns(connection: Connection, run_id: int, judge_id: int) -> PassColumns:
    columns = PassColumns()
    answer = connection.execute(_PASSES, {"run": run_id, "judge": judge_id})
    for part in answer.partitions(10_000):
        number, prompt_key, order, sample, winner = zip(*part, strict=True)
        columns.number.extend(number)
        columns.prompt_key.extend(prompt_key)
        columns.order.extend(0 if each == "original" else 1 for each in order)
        columns.sample.extend(sample)
        columns.winner.extend(map(WINNERS.__getitem__, winner))
    return columns


def shared_items(connection: Connection, one: int, other: int) -> tuple[list[int], list[int]]:
    """The numbers of items whose texts are equal in two runs, in the order of the first."""
    theirs = items.alias()
    query = (
        select(items.c.number, theirs.c.number)
        .join_from(items, theirs, items.c.pair_id == theirs.c.pair_id)
        .where(items.c.run_id == one, theirs.c.run_id == other)
        .order_by(items.c.number, theirs.c.number)
    )
    found: dict[int, int] = {}
    for number, same in connection.execute(query):
        found.setdefault(number, same)
    return list(found), list(found.values())
