"""What is left to judge, what was judged, and what is to be tried again."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    update,
)

from evenhand.store.bulk import insert_new
from evenhand.store.marks import forget_marks
from evenhand.store.records import NewPass, NewVerdict, PassKey, StoredPass, WorkItem
from evenhand.store.rows import (
    PASS_COLUMNS,
    VERDICT_COLUMNS,
    pair_of,
    pass_key,
    pass_values,
    stored_pass,
    verdict_values,
)
from evenhand.store.schema import (
    items,
    pairs,
    passes,
    replaced_passes,
    run_judges,
    runs,
    verdicts,
)

_Query = TypeVar("_Query", bound=Select[Any])

_has_no_verdict = (
    ~select(literal(1))
    .where(
        verdicts.c.run_id == items.c.run_id,
        verdicts.c.number == items.c.number,
        verdicts.c.judge_id == bindparam("judge"),
    )
    .exists()
)
_earlier = items.alias()
_repeats_another = (
    select(literal(1))
    .where(
        _earlier.c.run_id == items.c.run_id,
        _earlier.c.pair_id == items.c.pair_id,
        _earlier.c.number < items.c.number,
    )
    .exists()
)
_PENDING = (
    select(items.c.number, items.c.key, items.c.full_key, items.c.swap_positions, pairs)
    .join(pairs, pairs.c.id == items.c.pair_id)
    .where(items.c.run_id == bindparam("run"), items.c.number > bindparam("after"))
    .where(_has_no_verdict)
    .order_by(items.c.number)
    .limit(bindparam("most"))
)
_PENDING_UP_TO = _PENDING.where(items.c.number <= bindparam("up_to"))
_PENDING_NUMBERS = (
    select(items.c.number)
    .where(items.c.run_id == bindparam("run"), items.c.number > bindparam("after"))
    .where(items.c.number <= bindparam("up_to"), _has_no_verdict)
    .order_by(items.c.number)
    .limit(bindparam("most"))
)
_PASSES_OF_PENDING = (
    select(items.c.number, passes)
    .join(passes, passes.c.pair_id == items.c.pair_id)
    .where(items.c.run_id == bindparam("run"))
    .where(items.c.number.between(bindparam("first"), bindparam("last")))
    .where(passes.c.judge_id == bindparam("judge"))
    .where(_has_no_verdict)
)


_LAST_OF_ALL = 2**62


def _only(query: _Query, firsts: bool | None) -> _Query:
    if firsts is None:
        return query
    return query.where(~_repeats_another if firsts else _repeats_another)


def pending_span(
    connection: Connection,
    run_id: int,
    judge_id: int,
    *,
    after: int,
    up_to: int | None,
    limit: int,
    firsts: bool | None,
) -> tuple[int, int, int] | None:
    """The first and the last number of the next pending items, and how many they are."""
    each = _only(_PENDING_NUMBERS, firsts).subquery().c.number
    asked = {"run": run_id, "judge": judge_id, "after": after, "most": limit}
    asked["up_to"] = _LAST_OF_ALL if up_to is None else up_to
    first, last, count = connection.execute(
        select(func.min(each), func.max(each), func.count(each)), asked
    ).one()
    return (first, last, count) if count else None


def pending(
    connection: Connection,
    run_id: int,
    judge_id: int,
    *,
    after: int,
    limit: int,
    up_to: int | None = None,
    firsts: bool | None = None,
) -> list[WorkItem]:
    asked = {"run": run_id, "judge": judge_id, "after": after, "most": limit}
    query = _PENDING
    if up_to is not None:
        query, asked["up_to"] = _PENDING_UP_TO, up_to
    rows = connection.execute(_only(query, firsts), asked).mappings().all()
    if not rows:
        return []
    reach = {"run": run_id, "judge": judge_id}
    reach |= {"first": rows[0]["number"], "last": rows[-1]["number"]}
    made: defaultdict[int, dict[PassKey, StoredPass]] = defaultdict(dict)
    for row in connection.execute(_PASSES_OF_PENDING, reach).mappings():
        stored = stored_pass(row)
        made[row["number"]][pass_key(stored)] = stored
    return [
        WorkItem(
            number=row["number"],
            key=row["full_key"] or row["key"],
            pair_id=row["id"],
            pair=pair_of(row),
            passes=made.get(row["number"], {}),
        )
        for row in rows
    ]


def write(
    connection: Connection, new_passes: Sequence[NewPass], new_verdicts: Sequence[NewVerdict]
) -> None:
    now = time.time()
    # In one order for everybody, so that two processes never wait for each other in a circle.
    rows = sorted([pass_values(new, now) for new in new_passes], key=lambda row: row[:4])
    insert_new(connection, passes, PASS_COLUMNS, rows)
    insert_new(
        connection, verdicts, VERDICT_COLUMNS, [verdict_values(new, now) for new in new_verdicts]
    )


def used_by(table: Table, run_id: int) -> ColumnElement[bool]:
    """The passes that verdicts of this run rest on, of all that its pairs have: another run may
    have asked for more samples, or in both orders."""
    its_pairs = select(items.c.pair_id).where(items.c.run_id == run_id)
    swapped = items.alias()
    # Looked up for each pass. Under an OR, PostgreSQL makes a list of what IN selects, and goes
    # through all of a long one for every pass: for a million pairs it had no end in ten minutes.
    shown_both_ways = exists().where(
        swapped.c.run_id == run_id, swapped.c.pair_id == table.c.pair_id, swapped.c.swap_positions
    )
    most = select(func.max(verdicts.c.samples)).where(verdicts.c.run_id == run_id)
    return and_(
        table.c.pair_id.in_(its_pairs),
        or_(table.c.shown_order == "original", shown_both_ways),
        table.c.sample <= func.coalesce(most.scalar_subquery(), table.c.sample),
    )


def retire(connection: Connection, run_id: int, statuses: Collection[str]) -> int:
    """Set passes aside so that they are made anew, and undo the verdicts that rest on them.

    A pass is shared: a verdict of another run that rests on it goes too, and comes back from the
    new pass when that run is resumed.
    """
    retired = and_(
        passes.c.status.in_(sorted(statuses)),
        passes.c.judge_id.in_(select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)),
        used_by(passes, run_id),
    )
    moved = [passes.c[name] for name in PASS_COLUMNS]
    copy = select(literal(time.time()), *moved).where(retired)
    connection.execute(insert(replaced_passes).from_select(["replaced_at", *PASS_COLUMNS], copy))
    rests_on = (
        select(verdicts.c.run_id, verdicts.c.number, verdicts.c.judge_id)
        .select_from(passes)
        .join(items, items.c.pair_id == passes.c.pair_id)
        .join(
            verdicts,
            and_(
                verdicts.c.run_id == items.c.run_id,
                verdicts.c.number == items.c.number,
                verdicts.c.judge_id == passes.c.judge_id,
            ),
        )
        .where(retired, passes.c.sample <= verdicts.c.samples)
        .where(or_(items.c.swap_positions, passes.c.shown_order == "original"))
    )
    key = tuple_(verdicts.c.run_id, verdicts.c.number, verdicts.c.judge_id)
    undone = rests_on.subquery()
    touched = runs.c.id.in_(select(undone.c.run_id))
    now = time.time()
    connection.execute(update(runs).where(touched).values(state="stopped", updated_at=now))
    forget_marks(connection, rests_on)
    connection.execute(delete(verdicts).where(key.in_(rests_on)))
    if "failed" in statuses:
        # The pass that failed may have been made since, by another run.
        judge_failed = and_(verdicts.c.run_id == run_id, verdicts.c.error_kind != "invalid")
        forget_marks(connection, select(verdicts.c.run_id, verdicts.c.number).where(judge_failed))
        connection.execute(delete(verdicts).where(judge_failed))
    return connection.execute(delete(passes).where(retired)).rowcount
