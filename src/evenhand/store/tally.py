"""A run in numbers: two sums over its verdicts and its passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Table, func, select

from evenhand.store.intake import count_items
from evenhand.store.records import Spending, Tally
from evenhand.store.schema import (
    passes,
    replaced_passes,
    run_judges,
    skipped_rows,
    verdicts,
)
from evenhand.store.work import used_by


def tally(connection: Connection, run_id: int, judge_id: int | None) -> Tally:
    its_judges = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
    if judge_id is not None:
        its_judges = its_judges.where(run_judges.c.judge_id == judge_id)
    used = _spent(connection, passes, run_id, its_judges)
    replaced = _spent(connection, replaced_passes, run_id, its_judges)
    own = [row for row in used if row["run_id"] == run_id]
    return replace(
        _verdicts(connection, run_id, its_judges),
        ballot_passes=sum(row["passes"] for row in used if row["status"] == "ballot"),
        unread_passes=sum(row["passes"] for row in used if row["status"] == "unread"),
        failed_passes=sum(row["passes"] for row in used if row["status"] == "failed"),
        reused_passes=sum(row["passes"] for row in used if row["run_id"] != run_id),
        used=_added(used),
        made=_added([*own, *(row for row in replaced if row["run_id"] == run_id)]),
    )


def count_verdicts(connection: Connection, run_id: int) -> Tally:
    """Without the passes, whose sums take many times as long."""
    its_judges = select(run_judges.c.judge_id).where(run_judges.c.run_id == run_id)
    return _verdicts(connection, run_id, its_judges)


def _verdicts(connection: Connection, run_id: int, its_judges: Select[tuple[int]]) -> Tally:
    counted = _counted(connection, run_id, its_judges)
    pairs = count_items(connection, run_id)
    judges = connection.execute(
        select(func.count()).select_from(its_judges.subquery())
    ).scalar_one()
    skipped = select(func.count()).where(skipped_rows.c.run_id == run_id)
    return Tally(
        pairs=pairs,
        wins_a=counted.get(("win", "A"), 0),
        wins_b=counted.get(("win", "B"), 0),
        ties=_of_outcome(counted, "tie"),
        inconsistent=_of_outcome(counted, "inconsistent"),
        invalid=_of_outcome(counted, "invalid"),
        pending=pairs * judges - sum(counted.values()),
        skipped_rows=connection.execute(skipped).scalar_one(),
    )


def _counted(
    connection: Connection, run_id: int, its_judges: Any
) -> dict[tuple[str, str | None], int]:
    column = verdicts.c
    # By judge too, in the order of the index: then nothing has to be sorted.
    by_end = (column.judge_id, column.outcome, column.winner)
    query = (
        select(column.outcome, column.winner, func.count())
        .where(column.run_id == run_id, column.judge_id.in_(its_judges))
        .group_by(*by_end)
    )
    counted: Counter[tuple[str, str | None]] = Counter()
    for outcome, winner, count in connection.execute(query):
        counted[outcome, winner] += count
    return counted


def _of_outcome(counted: dict[tuple[str, str | None], int], wanted: str) -> int:
    return sum(count for (outcome, _), count in counted.items() if outcome == wanted)


def _spent(connection: Connection, table: Table, run_id: int, its_judges: Any) -> list[RowMapping]:
    column = table.c
    query = (
        select(
            column.status,
            column.run_id,
            func.count().label("passes"),
            func.sum(column.requests).label("requests"),
            func.sum(column.input_tokens).label("input_tokens"),
            func.sum(column.output_tokens).label("output_tokens"),
            func.sum(column.cached_input_tokens).label("cached_input_tokens"),
            func.sum(column.cost_usd).label("cost_usd"),
            func.count(column.input_tokens + column.output_tokens).label("counted"),
            func.count(column.cost_usd).label("priced"),
            func.sum(column.time_ms).label("time_ms"),
        )
        .where(used_by(table, run_id), column.judge_id.in_(its_judges))
        .group_by(column.status, column.run_id)
    )
    return list(connection.execute(query).mappings())


def _added(rows: list[RowMapping]) -> Spending:
    count = sum(row["passes"] for row in rows)
    return Spending(
        passes=count,
        requests=int(sum(row["requests"] for row in rows)),
        input_tokens=_whole(row["input_tokens"] for row in rows),
        output_tokens=_whole(row["output_tokens"] for row in rows),
        cached_input_tokens=_whole(row["cached_input_tokens"] for row in rows),
        cost_usd=_known(row["cost_usd"] for row in rows),
        uncounted_passes=count - sum(row["counted"] for row in rows),
        unpriced_passes=count - sum(row["priced"] for row in rows),
        time_ms=sum(row["time_ms"] for row in rows),
    )


def _known(values: Iterable[Any]) -> Any:
    there = [value for value in values if value is not None]
    return sum(there) if there else None


def _whole(values: Iterable[Any]) -> int | None:
    # PostgreSQL's sum of whole numbers is a Decimal.
    total = _known(values)
    return None if total is None else int(total)
