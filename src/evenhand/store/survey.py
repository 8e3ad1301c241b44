"""What a run is made of, in a few numbers: its prompts, and which models meet in it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from evenhand.store.schema import items


@dataclass(frozen=True, slots=True)
class Survey:
    """`models` are the two of each row as A and B, as often as that comes; in order of arrival."""

    prompts: int
    models: tuple[tuple[str | None, str | None, int], ...]


def survey(connection: Connection, run_id: int) -> Survey:
    column = items.c
    prompts = select(func.count(column.prompt_key.distinct())).where(column.run_id == run_id)
    models = (
        select(column.model_a, column.model_b, func.count(), func.min(column.number).label("first"))
        .where(column.run_id == run_id)
        .group_by(column.model_a, column.model_b)
        .order_by("first")
    )
    return Survey(
        prompts=connection.execute(prompts).scalar_one(),
        models=tuple((a, b, count) for a, b, count, _ in connection.execute(models)),
    )
