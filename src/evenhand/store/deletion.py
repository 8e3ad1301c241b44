"""Forgetting a run, and what no other run needs."""

from __future__ import annotations

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)

from evenhand.store.full_text import forget_words
from evenhand.store.schema import (
    batch_requests,
    batches,
    item_tags,
    items,
    jobs,
    judges,
    kept_figures,
    pairs,
    passes,
    queue,
    replaced_passes,
    replaced_votes,
    run_breakdowns,
    run_contests,
    run_criteria,
    run_indexes,
    run_judges,
    runs,
    skipped_rows,
    verdict_marks,
    verdicts,
    votes,
)

_BESIDE_ITEMS = (
    *(verdicts, queue, item_tags, skipped_rows, jobs),
    *(verdict_marks, run_contests, run_criteria, run_breakdowns, run_indexes, kept_figures),
    *(batch_requests, batches),
)


def passes_to_go(connection: Connection, run_id: int) -> int:
    query = select(func.count()).select_from(passes).where(_goes_with(passes, run_id))
    return connection.execute(query).scalar_one()


def votes_to_go(connection: Connection, run_id: int) -> int:
    other = items.alias()
    elsewhere = exists().where(other.c.pair_id == votes.c.pair_id, other.c.run_id != run_id)
    query = select(func.count()).select_from(votes).where(_of_run(votes, run_id), ~elsewhere)
    return connection.execute(query).scalar_one()


def delete_run(connection: Connection, run_id: int, *, with_votes: bool) -> None:
    its_judges = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
    dropped_judges = [
        row.judge_id
        for row in connection.execute(
            its_judges.where(
                run_judges.c.judge_id.not_in(
                    select(run_judges.c.judge_id).where(run_judges.c.run_id != run_id)
                )
            )
        )
    ]
    for table in (passes, replaced_passes):
        connection.execute(delete(table).where(_goes_with(table, run_id)))
        made_here = and_(_of_run(table, run_id), table.c.run_id == run_id)
        connection.execute(update(table).where(made_here).values(run_id=None))
    for table in _BESIDE_ITEMS:
        connection.execute(delete(table).where(table.c.run_id == run_id))
    reach = connection.execute(
        select(func.min(items.c.pair_id), func.max(items.c.pair_id)).where(items.c.run_id == run_id)
    ).one()
    connection.execute(delete(items).where(items.c.run_id == run_id))
    if reach[0] is not None:
        _delete_pairs(connection, *reach, with_votes=with_votes)
    connection.execute(delete(run_judges).where(run_judges.c.run_id == run_id))
    for judge_id in dropped_judges:
        has_passes = select(exists().where(passes.c.judge_id == judge_id))
        if not connection.execute(has_passes).scalar():
            connection.execute(delete(judges).where(judges.c.id == judge_id))
    connection.execute(delete(runs).where(runs.c.id == run_id))


def _delete_pairs(connection: Connection, first: int, last: int, *, with_votes: bool) -> None:
    """Pairs come in with an item, so one without any is nobody's, unless people voted on it: their
    work stays, and what it is about."""
    if with_votes:
        voted_here = exists().where(items.c.pair_id == votes.c.pair_id)
        connection.execute(delete(votes).where(votes.c.pair_id.between(first, last), ~voted_here))
    for table, column in ((replaced_votes, replaced_votes.c.pair_id), (pairs, pairs.c.id)):
        is_used = or_(
            exists().where(items.c.pair_id == column), exists().where(votes.c.pair_id == column)
        )
        connection.execute(delete(table).where(column.between(first, last), ~is_used))
    forget_words(connection, first, last)


def _of_run(table: Table, run_id: int) -> ColumnElement[bool]:
    return table.c.pair_id.in_(select(items.c.pair_id).where(items.c.run_id == run_id))


def _goes_with(table: Table, run_id: int) -> ColumnElement[bool]:
    its_judges = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
    other = items.alias()
    pair_used = exists().where(other.c.pair_id == table.c.pair_id, other.c.run_id != run_id)
    other_judges = run_judges.alias()
    used = exists().where(
        other.c.pair_id == table.c.pair_id,
        other.c.run_id != run_id,
        other_judges.c.run_id == other.c.run_id,
        other_judges.c.judge_id == table.c.judge_id,
    )
    # A pair that stays may have passes of judges that were never this run's; those stay too.
    gone = or_(~pair_used, and_(table.c.judge_id.in_(its_judges), ~used))
    return and_(_of_run(table, run_id), gone)
