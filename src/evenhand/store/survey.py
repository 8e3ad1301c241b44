"""What a run is made of, in a few numbers: its prompts, which models meet in it, and which earlier
runs it grew from."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from evenhand.store.schema import items, passes, runs


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


def grown_from(connection: Connection, run_id: int, judge_id: int) -> tuple[str, ...]:
    """The finished runs whose verdicts somebody could see before this one had all of its pairs:
    of the same judge, with fewer pairs, more than half of which are in this run. Oldest first.

    A file that grew makes a new run that shares the old one's passes, so whoever asked for new
    rows made a pass that this run uses. A run that shares none has grown from nothing, which is
    known without looking.
    """
    reused = select(runs.c.reused_passes).where(runs.c.id == run_id)
    if not connection.execute(reused).scalar_one():
        return ()
    its_pairs = select(items.c.pair_id).where(items.c.run_id == run_id)
    made = passes.c.pair_id.in_(its_pairs), passes.c.judge_id == judge_id
    makers = select(passes.c.run_id).where(*made, passes.c.run_id != run_id).distinct()
    earlier = (
        select(runs.c.id, runs.c.name)
        .where(runs.c.id.in_(makers), runs.c.id < run_id, runs.c.state == "finished")
        .order_by(runs.c.id)
    )
    pairs = func.count(items.c.pair_id.distinct())
    whole = connection.execute(select(pairs).where(items.c.run_id == run_id)).scalar_one()
    found: list[str] = []
    for other, name in connection.execute(earlier).all():
        of_other = select(pairs).where(items.c.run_id == other)
        size = connection.execute(of_other).scalar_one()
        shared = connection.execute(of_other.where(items.c.pair_id.in_(its_pairs))).scalar_one()
        if size < whole and 2 * shared > size:
            found.append(name)
    return tuple(found)
