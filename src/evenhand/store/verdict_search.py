"""Verdicts of a run that meet conditions, in the order of its items, page by page.

An index leads to what may meet them; the rest is looked at, and never more than a bound in one
call, so that a page takes as long in a run of a million pairs as in one of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice, product
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, select, tuple_

from evenhand.contract import Outcome, Winner
from evenhand.store.catalogue import judges_of_run
from evenhand.store.intake import count_items, in_slices
from evenhand.store.records import VerdictRow, WholeVerdict
from evenhand.store.results import LIGHT, whole_of
from evenhand.store.rows import verdict_row
from evenhand.store.schema import item_tags, items, verdicts
from evenhand.store.texts import shorten

End = tuple[Outcome, Winner | None]
# Every outcome with every winner that it can have.
_ENDS: tuple[End, ...] = (
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

    @property
    def ends(self) -> tuple[End, ...] | None:
        """How a pair may have come out; None where that is all one."""
        if self.outcome is None and self.winner is None:
            return None
        return tuple(
            end for end in _ENDS if self.outcome in (None, end[0]) and self.winner in (None, end[1])
        )

    @property
    def sifted(self) -> bool:
        """Whether an index leads to more than what meets the conditions."""
        by_index = (self.tag is not None, self.abstained is True, self.ends is not None)
        looked_at = (self.disagrees, self.min_confidence, self.max_confidence, self.judge_ids)
        return (
            sum(by_index) > 1
            or self.abstained is False
            or any(each is not None for each in looked_at)
        )


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
    """The first `limit` of them after a place, having looked at no more than `look_at` items."""
    last = count_items(connection, run_id)
    if wanted.sifted:
        last = min(last, after.number + look_at)
    # One more than is wanted: then the last page knows that it is the last.
    searches = list(_searches(connection, run_id, wanted, after, last))
    found = merge(*(_places(connection, each.limit(limit + 1)) for each in searches))
    places = list(islice(found, limit + 1))
    rows = rows_at(connection, run_id, places[:limit])
    if len(places) > limit:
        return FoundVerdicts(rows, places[limit - 1])
    if wanted.sifted and last < count_items(connection, run_id):
        return FoundVerdicts(rows, VerdictPlace(last + 1, 0))
    return FoundVerdicts(rows, None)


def whole_verdicts_at(
    connection: Connection, run_id: int, places: Sequence[VerdictPlace]
) -> list[WholeVerdict]:
    """These very verdicts, with everything behind them."""
    return whole_of(connection, _at(run_id, places), {*places})


def _searches(
    connection: Connection,
    run_id: int,
    wanted: VerdictFilter,
    after: VerdictPlace,
    last: int,
) -> Iterator[Select[Any]]:
    """Each by the index that leads to the fewest, in the order of the items."""
    judge_ids = [judge.id for judge in judges_of_run(connection, run_id)]
    if wanted.judge_ids is not None:
        judge_ids = [each for each in judge_ids if each in wanted.judge_ids]
    column = verdicts.c
    sifted = select(column.number, column.judge_id).where(
        column.run_id == run_id, *_conditions(wanted)
    )
    if wanted.disagrees is not None:
        its_item = and_(items.c.run_id == column.run_id, items.c.number == column.number)
        sifted = sifted.join(items, its_item)
    if wanted.tag is None and not wanted.abstained and wanted.ends is not None:
        up_to = sifted.where(column.number <= last).order_by(column.number)
        for judge_id, end in product(judge_ids, wanted.ends):
            yield up_to.where(*_of_end(judge_id, end, after))
        return
    # By the tags' own numbers, where there is one: the verdicts' would lead through all of them.
    number = column.number if wanted.tag is None else item_tags.c.number
    if wanted.tag is not None:
        has_tag = and_(item_tags.c.run_id == column.run_id, number == column.number)
        its_tag = and_(item_tags.c.run_id == run_id, item_tags.c.tag == shorten(wanted.tag))
        sifted = sifted.join(item_tags, has_tag).where(its_tag, number >= after.number)
    yield sifted.where(
        column.judge_id.in_(judge_ids),
        number <= last,
        tuple_(number, column.judge_id) > tuple(after),
    ).order_by(number, column.judge_id)


def _of_end(judge_id: int, end: End, after: VerdictPlace) -> Iterator[ColumnElement[bool]]:
    outcome, winner = end
    yield verdicts.c.judge_id == judge_id
    yield verdicts.c.outcome == str(outcome)
    yield verdicts.c.winner.is_(None) if winner is None else verdicts.c.winner == winner
    yield verdicts.c.number >= (after.number if judge_id > after.judge_id else after.number + 1)


def _places(connection: Connection, query: Select[Any]) -> Iterator[VerdictPlace]:
    return (VerdictPlace(*row) for row in connection.execute(query))


def rows_at(
    connection: Connection, run_id: int, places: Sequence[VerdictPlace]
) -> list[VerdictRow]:
    """These very verdicts, by item, then by judge."""
    rows: list[VerdictRow] = []
    for some in in_slices(places):
        query = LIGHT.where(_at(run_id, some)).order_by(verdicts.c.number, verdicts.c.judge_id)
        there = {*some}
        rows += [
            verdict_row(row)
            for row in connection.execute(query).mappings()
            if (row["number"], row["judge_id"]) in there
        ]
    return rows


def _at(run_id: int, places: Sequence[VerdictPlace]) -> ColumnElement[bool]:
    """With other judges of the same items, which the caller leaves out."""
    numbers = list(dict.fromkeys(place.number for place in places))
    return and_(verdicts.c.run_id == run_id, verdicts.c.number.in_(numbers))


def _conditions(wanted: VerdictFilter) -> Iterator[ColumnElement[bool]]:
    column = verdicts.c
    if wanted.ends is not None and (wanted.tag is not None or wanted.abstained):
        if wanted.outcome is not None:
            yield column.outcome == str(wanted.outcome)
        if wanted.winner is not None:
            yield column.winner == wanted.winner
    if wanted.abstained is not None:
        yield column.abstained if wanted.abstained else ~column.abstained
    if wanted.min_confidence is not None:
        yield column.confidence >= wanted.min_confidence
    if wanted.max_confidence is not None:
        yield column.confidence <= wanted.max_confidence
    if wanted.disagrees is not None:
        agrees = and_(column.outcome.in_(("win", "tie")), column.winner == items.c.label)
        yield items.c.label.is_not(None)
        yield ~agrees if wanted.disagrees else agrees
