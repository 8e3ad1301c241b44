"""One judge's verdicts on a run, as columns."""

from __future__ import annotations

import math
from dataclasses import replace

import orjson
from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, func, or_, select

from evenhand.store.coding import CHOICES, SPLIT, WINNERS, Coded, code_outcomes
from evenhand.store.columns import OutcomeColumns
from evenhand.store.paging import of_its_item, on_page, pages
from evenhand.store.schema import items, verdicts, votes


def _choice(order: ColumnElement[str], other: ColumnElement[str]) -> ColumnElement[str]:
    """What one order chose. None is stored for one that split, was not read, or was not asked:
    it split where both were asked, and read, as every valid verdict's are, and as those of an
    invalid one are for which either order's choice is stored."""
    read = or_(verdicts.c.outcome != "invalid", other.is_not(None))
    asked = and_(items.c.swap_positions, verdicts.c.passes > 0)
    return case((and_(order.is_(None), read, asked), SPLIT), else_=order)


_FIRST, _SECOND = verdicts.c.first_pass_winner, verdicts.c.second_pass_winner
_OUTCOMES = (
    select(
        verdicts.c.number,
        items.c.prompt_key,
        verdicts.c.outcome,
        verdicts.c.winner,
        _choice(_FIRST, _SECOND),
        _choice(_SECOND, _FIRST),
        items.c.swap_positions,
        verdicts.c.confidence,
        items.c.length_a,
        items.c.length_b,
        items.c.model_a,
        items.c.model_b,
        items.c.tags,
        items.c.label,
    )
    .join_from(verdicts, items, of_its_item)
    .where(on_page, verdicts.c.judge_id == bindparam("judge"))
    .order_by(verdicts.c.number)
)
_NO_TAGS = "[]"


def outcome_columns(connection: Connection, run_id: int, judge_id: int) -> OutcomeColumns:
    models, tag_sets = Coded(), Coded()
    columns = OutcomeColumns((), ())
    for page in pages(connection, _OUTCOMES, run_id, {"judge": judge_id}):
        number, prompt_key, outcome, winner, first, second, both, confidence, *of_item = page
        length_a, length_b, model_a, model_b, tags, label = of_item
        columns.number.extend(number)
        columns.prompt_key.extend(prompt_key)
        columns.outcome.extend(code_outcomes(outcome, winner))
        columns.first_winner.extend(map(CHOICES.__getitem__, first))
        columns.second_winner.extend(map(CHOICES.__getitem__, second))
        columns.both_orders.extend(both)
        columns.confidence.extend(math.nan if each is None else each for each in confidence)
        columns.length_a.extend(length_a)
        columns.length_b.extend(length_b)
        columns.model_a.extend(map(models.__getitem__, model_a))
        columns.model_b.extend(map(models.__getitem__, model_b))
        columns.label.extend(map(WINNERS.__getitem__, label))
        columns.tags.extend(map(tag_sets.__getitem__, [each or _NO_TAGS for each in tags]))
    read = tuple(tuple(orjson.loads(text)) for text in tag_sets if text is not None)
    return replace(columns, models=models.table, tag_sets=read)


def right_and_wrong(connection: Connection, judge_id: int) -> tuple[int, int]:
    """Of a judge's wins in any run, how many name the winner that a label or a vote does, and how
    many the other one. Audits, probes and people's votes all leave labels."""
    named = ("A", "B")
    won = and_(verdicts.c.judge_id == judge_id, verdicts.c.outcome == "win")
    right = wrong = 0
    of_votes = or_(votes.c.draw.is_(None), votes.c.draw != "chosen")
    by_votes = (
        select(func.sum(case((votes.c.verdict == verdicts.c.winner, 1), else_=0)), func.count())
        .join_from(verdicts, items, of_its_item)
        .join(votes, votes.c.pair_id == items.c.pair_id)
        .where(won, items.c.label.is_(None), votes.c.verdict.in_(named), of_votes)
    )
    by_labels = (
        select(func.sum(case((items.c.label == verdicts.c.winner, 1), else_=0)), func.count())
        .join_from(verdicts, items, of_its_item)
        .where(won, items.c.label.in_(named))
    )
    for query in (by_labels, by_votes):
        same, all_of_them = connection.execute(query).one()
        right, wrong = right + int(same or 0), wrong + all_of_them - int(same or 0)
    return right, wrong
