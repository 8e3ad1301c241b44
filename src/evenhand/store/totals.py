"""How many verdicts of a run each filter of its table would show: grouped queries over marks."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from evenhand.store.breakdowns import breakdowns_of, criteria_places
from evenhand.store.contests import Models, contests_of
from evenhand.store.schema import item_tags, verdict_marks, verdicts

MOST_TAGS = 1000
MOST_CONTESTS = 1000


@dataclass(frozen=True, slots=True)
class MarkTotals:
    """By judge, then by outcome and winner, of all verdicts; of those that are marked, by judge,
    then by ending and flags, and by criterion and judge, then by its outcome's code."""

    outcomes: dict[int, Counter[tuple[str, str | None]]]
    endings: dict[int, Counter[tuple[int, int]]]
    criteria: dict[str, dict[int, Counter[int]]]
    tags: tuple[tuple[str, int], ...]  # items; the most frequent first, at most 1,000
    contests: tuple[Models, ...]  # A and B of the pairs; one more than a thousand at most


def count_marked(connection: Connection, run_id: int) -> MarkTotals:
    return MarkTotals(
        outcomes=_outcomes(connection, run_id),
        endings=_endings(connection, run_id),
        criteria=_criteria(connection, run_id),
        tags=_tags(connection, run_id),
        contests=tuple(contests_of(connection, run_id, most=MOST_CONTESTS + 1)),
    )


def _outcomes(connection: Connection, run_id: int) -> dict[int, Counter[tuple[str, str | None]]]:
    column = verdicts.c
    kind = (column.judge_id, column.outcome, column.winner)
    query = select(*kind, func.count()).where(column.run_id == run_id).group_by(*kind)
    found: defaultdict[int, Counter[tuple[str, str | None]]] = defaultdict(Counter)
    for judge_id, outcome, winner, count in connection.execute(query):
        found[judge_id][outcome, winner] = count
    return dict(found)


def _endings(connection: Connection, run_id: int) -> dict[int, Counter[tuple[int, int]]]:
    column = verdict_marks.c
    kind = (column.judge_id, column.ending, column.flags)
    query = select(*kind, func.count()).where(column.run_id == run_id).group_by(*kind)
    found: defaultdict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for judge_id, ending, flags, count in connection.execute(query):
        found[judge_id][ending, flags] = count
    return dict(found)


def _criteria(connection: Connection, run_id: int) -> dict[str, dict[int, Counter[int]]]:
    column = verdict_marks.c
    kind = (column.breakdown, column.judge_id)
    query = select(*kind, func.count()).where(column.run_id == run_id).group_by(*kind)
    told = breakdowns_of(connection, run_id)
    found: dict[str, dict[int, Counter[int]]] = {
        name: {} for name in criteria_places(connection, run_id)
    }
    for breakdown, judge_id, count in connection.execute(query):
        for name, code in told[breakdown]:
            found[name].setdefault(judge_id, Counter())[code] += count
    return found


def _tags(connection: Connection, run_id: int) -> tuple[tuple[str, int], ...]:
    column = item_tags.c
    count = func.count()
    query = (
        select(column.tag, count)
        .where(column.run_id == run_id)
        .group_by(column.tag)
        .order_by(count.desc(), column.tag)
        .limit(MOST_TAGS)
    )
    return tuple((tag, number) for tag, number in connection.execute(query))
