"""Asking in an order of one's own: prompts at random by a seed, or contests between two models.

A prompt's place is a digest of the seed and its key. It depends on nothing else, so that the order
is the same in every store, and the same again when a run is resumed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    delete,
    func,
    literal,
    select,
    tuple_,
)

from evenhand.errors import InputError
from evenhand.store.bulk import insert_new
from evenhand.store.intake import count_items
from evenhand.store.records import PassKey, Queued, QueuePlace, StoredPass, WorkItem
from evenhand.store.rows import pair_of, pass_key, stored_pass
from evenhand.store.schema import items, pairs, passes, queue, verdicts

_COLUMNS = ("run_id", "contest", "place", "number")
_AT_ONCE = 5_000

its_item = and_(items.c.run_id == queue.c.run_id, items.c.number == queue.c.number)
its_verdict = and_(
    verdicts.c.run_id == queue.c.run_id,
    verdicts.c.number == queue.c.number,
    verdicts.c.judge_id == bindparam("judge"),
)
is_pending = ~select(literal(1)).where(its_verdict).exists()
in_contest = and_(queue.c.run_id == bindparam("run"), queue.c.contest == bindparam("contest"))


# Making it


def fill_queue(connection: Connection, run_id: int, *, seed: int, by_models: bool) -> None:
    there = select(func.count()).where(queue.c.run_id == run_id)
    if connection.execute(there).scalar_one() == count_items(connection, run_id):
        return
    connection.execute(delete(queue).where(queue.c.run_id == run_id))
    contests: dict[frozenset[str], int] = {}
    for page in _items(connection, run_id):
        rows = []
        for number, key, *models in page:
            contest = 0
            if by_models:
                if None in models:
                    raise InputError(
                        f"item {number} does not name both its models; name them in the data"
                    )
                contest = contest_of(contests, *models)
            rows.append((run_id, contest, _place(seed, key), number))
        insert_new(connection, queue, _COLUMNS, sorted(rows))


def contest_of(numbers: dict[frozenset[str], int], model_a: str, model_b: str) -> int:
    """From 1, as they first come by item number."""
    return numbers.setdefault(frozenset((model_a, model_b)), len(numbers) + 1)


def _items(connection: Connection, run_id: int) -> Iterator[list[Any]]:
    column = items.c
    query = (
        select(column.number, column.prompt_key, column.model_a, column.model_b)
        .where(column.run_id == run_id)
        .order_by(column.number)
        .limit(_AT_ONCE)
    )
    after = 0
    while rows := list(connection.execute(query.where(column.number > after))):
        yield rows
        after = rows[-1].number


# The rows of a prompt come one after the other, or the prompts come again with every model.
@lru_cache(maxsize=65_536)
def _place(seed: int, prompt_key: int) -> int:
    told = b"place 1;%d;%d" % (seed, prompt_key)
    # Above 0, so that 0 is before the first of them.
    return int.from_bytes(blake2b(told, digest_size=8).digest(), "little") >> 1 or 1


# Taking from it

_QUEUED = (
    select(
        queue.c.place, items.c.number, items.c.key, items.c.full_key, items.c.swap_positions, pairs
    )
    .join_from(queue, items, its_item)
    .join(pairs, pairs.c.id == items.c.pair_id)
    .where(in_contest, is_pending)
    .where(
        tuple_(queue.c.place, queue.c.number)
        > tuple_(bindparam("place", type_=queue.c.place.type), bindparam("number"))
    )
    .order_by(queue.c.place, queue.c.number)
    .limit(bindparam("most"))
)


def queued(
    connection: Connection,
    run_id: int,
    judge_id: int,
    *,
    contest: int,
    after: QueuePlace,
    limit: int,
) -> list[Queued]:
    asked = {"run": run_id, "judge": judge_id, "contest": contest, "most": limit}
    asked |= {"place": after.place, "number": after.number}
    rows = connection.execute(_QUEUED, asked).mappings().all()
    made: defaultdict[int, dict[PassKey, StoredPass]] = defaultdict(dict)
    if rows:
        of_pairs = passes.c.pair_id.in_({row["id"] for row in rows})
        query = select(passes).where(of_pairs, passes.c.judge_id == judge_id)
        for row in connection.execute(query).mappings():
            stored = stored_pass(row)
            made[row["pair_id"]][pass_key(stored)] = stored
    return [
        Queued(
            QueuePlace(row["place"], row["number"]),
            WorkItem(
                number=row["number"],
                key=row["full_key"] or row["key"],
                pair_id=row["id"],
                pair=pair_of(row),
                passes=made.get(row["id"], {}),
            ),
        )
        for row in rows
    ]
