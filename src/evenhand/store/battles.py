"""Which model won against which: in one grouped query, or verdict by verdict in columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import Connection, bindparam, case, func, or_, select, tuple_

from evenhand.contract import Outcome
from evenhand.store.coding import Coded, code_outcomes
from evenhand.store.columns import BattleColumns, BattleCount
from evenhand.store.paging import of_its_item, on_page, pages
from evenhand.store.schema import items, run_judges, verdicts

# Averaged orders have a winner where they chose differently: that is a flip all the same.
_FLIPPED = case(
    (
        or_(
            verdicts.c.outcome == str(Outcome.INCONSISTENT),
            verdicts.c.first_pass_winner != verdicts.c.second_pass_winner,
        ),
        1,
    ),
    else_=0,
)


def battle_counts(
    connection: Connection, run_ids: Sequence[int], judge_ids: Collection[int] | None
) -> list[BattleCount]:
    wanted = _seats(connection, run_ids, judge_ids)
    if not wanted:
        return []
    kind = (items.c.model_a, items.c.model_b, verdicts.c.outcome, verdicts.c.winner)
    query = (
        select(*kind, func.count(), func.sum(_FLIPPED))
        .join_from(verdicts, items, of_its_item)
        .where(tuple_(verdicts.c.run_id, verdicts.c.judge_id).in_(wanted))
        .group_by(*kind)
    )
    counted = [
        BattleCount(model_a, model_b, Outcome(outcome), winner, count, flipped)
        for model_a, model_b, outcome, winner, count, flipped in connection.execute(query)
    ]
    # The engines sort texts by different rules, and nothing last or first.
    return sorted(counted, key=lambda each: tuple(part or "" for part in each[:4]))


def _seats(
    connection: Connection, run_ids: Sequence[int], judge_ids: Collection[int] | None
) -> list[tuple[int, int]]:
    """Each run with each judge that counts in it."""
    runs = list(dict.fromkeys(run_ids))
    if judge_ids is not None:
        return [(run_id, judge_id) for run_id in runs for judge_id in sorted(set(judge_ids))]
    query = (
        select(run_judges.c.run_id, run_judges.c.judge_id)
        .where(run_judges.c.run_id.in_(runs))
        .order_by(run_judges.c.run_id, run_judges.c.place)
    )
    return [(run_id, judge_id) for run_id, judge_id in connection.execute(query)]


_BATTLES = (
    select(
        items.c.prompt_key,
        items.c.model_a,
        items.c.model_b,
        verdicts.c.outcome,
        verdicts.c.winner,
        verdicts.c.judge_id,
        _FLIPPED,
    )
    .join_from(verdicts, items, of_its_item)
    .where(on_page)
    .where(verdicts.c.judge_id.in_(bindparam("judges", expanding=True)))
    .order_by(verdicts.c.number, verdicts.c.judge_id)
)


def battle_columns(
    connection: Connection, run_ids: Sequence[int], judge_ids: Collection[int] | None
) -> BattleColumns:
    wanted = _seats(connection, run_ids, judge_ids)
    judges = {judge_id: place for place, judge_id in enumerate(dict.fromkeys(j for _, j in wanted))}
    models = Coded()
    columns = BattleColumns((), tuple(judges))
    for run_id in dict.fromkeys(run_id for run_id, _ in wanted):
        its_judges = [judge_id for run, judge_id in wanted if run == run_id]
        for page in pages(connection, _BATTLES, run_id, {"judges": its_judges}):
            prompt_key, model_a, model_b, outcome, winner, judge_id, flipped = page
            columns.prompt_key.extend(prompt_key)
            columns.model_a.extend(map(models.__getitem__, model_a))
            columns.model_b.extend(map(models.__getitem__, model_b))
            columns.outcome.extend(code_outcomes(outcome, winner))
            columns.judge.extend(map(judges.__getitem__, judge_id))
            columns.flipped.extend(flipped)
    return replace(columns, models=models.table)
