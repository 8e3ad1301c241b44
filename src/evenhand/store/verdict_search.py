"""Verdicts of a run that meet conditions, in the order of its items, page by page.

An index leads to what may meet them; the rest is looked at, and never more than a bound in one
call, so that a page takes as long in a run of a million pairs as in one of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, select, tuple_

from evenhand.contract import Outcome, Winner
from evenhand.store.catalogue import judges_of_run
from evenhand.store.intake import in_slices
from evenhand.store.records import VerdictRow, WholeVerdict
from evenhand.store.results import LIGHT, whole_of
from evenhand.store.rows import verdict_row
from evenhand.store.schema import item_tags, items, verdicts
from evenhand.store.texts import shorten

# Every outcome with every winner that it can have.
_ENDS: tuple[tuple[Outcome, Winner | None], ...] = (
    (Outcome.WIN, "A"),
    (Outcome.WIN, "B"),
    (Outcome.TIE, "TIE"),
    (Outcome.INCONSISTENT, "TIE"),
    (Outcome.INCONSISTENT, "A"),
    (Outcome.INCONSISTENT, "B"),
    (Outcome.INVALID, None),
)


class VerdictPlace(NamedTuple):
    """Where a verdict stands in its run: by item, then by judge."""

    number: int
    judge_id: int


RUN_START = VerdictPlace(0, 0)


@dataclass(frozen=True, slots=True)
class VerdictFilter:
    """Every condition that is given must hold.

    `disagrees` is of labelled pairs alone: a verdict agrees where it is the label, and an
    inconsistent or invalid pair has none that could.
    """

    outcome: Outcome | None = None
    winner: Winner | None = None
    judge_ids: tuple[int, ...] | None = None
    tag: str | None = None
    disagrees: bool | None = None
    abstained: bool | None = None
    min_confidence: float | None = None
    max_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class FoundVerdicts:
    """`reached` is how far the search came, and None at the end; rows may be few before it."""

    rows: list[VerdictRow]
    reached: VerdictPlace | None


def find_verdicts(
    connection: Connection,
    run_id: int,
    wanted: VerdictFilter,
    *,
    after: VerdictPlace,
    limit: int,
    look_at: int,
) -> FoundVerdicts:
    """The first `limit` of them after a place, having looked at no more than `look_at`."""
    judge_ids = [judge.id for judge in judges_of_run(connection, run_id)]
    if wanted.judge_ids is not None:
        judge_ids = [each for each in judge_ids if each in wanted.judge_ids]
    # One more than is wanted: then the last page knows that it is the last.
    look_at = max(look_at, limit + 1)
    candidates = _candidates(connection, run_id, wanted, judge_ids, after, look_at)
    places = list(islice(candidates, look_at))
    rows: list[VerdictRow] = []
    for some in in_slices(places):
        rows += _meeting(connection, run_id, wanted, some)
        if len(rows) > limit:
            last = rows[limit - 1]
            return FoundVerdicts(rows[:limit], VerdictPlace(last.item.number, last.judge_id))
    return FoundVerdicts(rows, places[-1] if len(places) == look_at else None)


def whole_verdicts_at(
    connection: Connection, run_id: int, places: Sequence[VerdictPlace]
) -> list[WholeVerdict]:
    """These very verdicts, with everything behind them."""
    return whole_of(connection, _at(run_id, places), {*places})


def _candidates(
    connection: Connection,
    run_id: int,
    wanted: VerdictFilter,
    judge_ids: Sequence[int],
    after: VerdictPlace,
    limit: int,
) -> Iterator[VerdictPlace]:
    """By the index that leads to the fewest: by tag, by abstention, by outcome, or all."""
    column = verdicts.c
    every = select(column.number, column.judge_id).where(
        column.run_id == run_id,
        column.judge_id.in_(list(judge_ids)),
        tuple_(column.number, column.judge_id) > tuple(after),
    )
    in_order = every.order_by(column.number, column.judge_id).limit(limit)
    if wanted.tag is not None:
        tag = item_tags.c
        tagged = and_(tag.run_id == column.run_id, tag.number == column.number)
        query = every.join(item_tags, tagged).where(
            tag.run_id == run_id, tag.tag == shorten(wanted.tag), tag.number >= after.number
        )
        yield from _places(connection, query.order_by(tag.number, column.judge_id).limit(limit))
    elif wanted.abstained:
        yield from _places(connection, in_order.where(column.abstained))
    elif wanted.outcome is not None or wanted.winner is not None:
        yield from merge(
            *(
                _places(connection, _of_end(run_id, judge_id, end, after).limit(limit))
                for judge_id in judge_ids
                for end in _ENDS
                if wanted.outcome in (None, end[0]) and wanted.winner in (None, end[1])
            )
        )
    else:
        yield from _places(connection, in_order)


def _of_end(
    run_id: int, judge_id: int, end: tuple[Outcome, Winner | None], after: VerdictPlace
) -> Select[Any]:
    column = verdicts.c
    outcome, winner = end
    first = after.number if judge_id > after.judge_id else after.number + 1
    return (
        select(column.number, column.judge_id)
        .where(
            column.run_id == run_id,
            column.judge_id == judge_id,
            column.outcome == str(outcome),
            column.winner.is_(None) if winner is None else column.winner == winner,
            column.number >= first,
        )
        .order_by(column.number)
    )


def _places(connection: Connection, query: Select[Any]) -> Iterator[VerdictPlace]:
    return (VerdictPlace(*row) for row in connection.execute(query))


def _meeting(
    connection: Connection, run_id: int, wanted: VerdictFilter, places: Sequence[VerdictPlace]
) -> list[VerdictRow]:
    query = LIGHT.where(_at(run_id, places), *_conditions(wanted))
    query = query.order_by(verdicts.c.number, verdicts.c.judge_id)
    there = {*places}
    rows = connection.execute(query).mappings()
    return [verdict_row(row) for row in rows if (row["number"], row["judge_id"]) in there]


def _at(run_id: int, places: Sequence[VerdictPlace]) -> ColumnElement[bool]:
    """With other judges of the same items, which the caller leaves out."""
    numbers = list(dict.fromkeys(place.number for place in places))
    return and_(verdicts.c.run_id == run_id, verdicts.c.number.in_(numbers))


def _conditions(wanted: VerdictFilter) -> Iterator[ColumnElement[bool]]:
    column = verdicts.c
    if wanted.outcome is not None:
        yield column.outcome == str(wanted.outcome)
    if wanted.winner is not None:
        yield column.winner == wanted.winner
    if wanted.abstained is not None:
        yield column.abstained == wanted.abstained
    if wanted.min_confidence is not None:
        yield column.confidence >= wanted.min_confidence
    if wanted.max_confidence is not None:
        yield column.confidence <= wanted.max_confidence
    if wanted.disagrees is not None:
        agrees = and_(column.outcome.in_(("win", "tie")), column.winner == items.c.label)
        yield items.c.label.is_not(None)
        yield ~agrees if wanted.disagrees else agrees
