"""One judge's verdicts on a run, as columns."""

from __future__ import annotations

import math
from dataclasses import replace

import orjson
from sqlalchemy import Connection, bindparam, select

from evenhand.store.coding import WINNERS, Coded, code_outcomes
from evenhand.store.columns import OutcomeColumns
from evenhand.store.paging import of_its_item, on_page, pages
from evenhand.store.schema import items, verdicts

_OUTCOMES = (
    select(
        verdicts.c.number,
        items.c.prompt_key,
        verdicts.c.outcome,
        verdicts.c.winner,
        verdicts.c.first_pass_winner,
        verdicts.c.second_pass_winner,
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
        number, prompt_key, outcome, winner, first, second, confidence, *of_item = page
        length_a, length_b, model_a, model_b, tags, label = of_item
        columns.number.extend(number)
        columns.prompt_key.extend(prompt_key)
        columns.outcome.extend(code_outcomes(outcome, winner))
        columns.first_winner.extend(map(WINNERS.__getitem__, first))
        columns.second_winner.extend(map(WINNERS.__getitem__, second))
        columns.confidence.extend(math.nan if each is None else each for each in confidence)
        columns.length_a.extend(length_a)
        columns.length_b.extend(length_b)
        columns.model_a.extend(map(models.__getitem__, model_a))
        columns.model_b.extend(map(models.__getitem__, model_b))
        columns.label.extend(map(WINNERS.__getitem__, label))
        columns.tags.extend(map(tag_sets.__getitem__, [each or _NO_TAGS for each in tags]))
    read = tuple(tuple(orjson.loads(text)) for text in tag_sets if text is not None)
    return replace(columns, models=models.table, tag_sets=read)
