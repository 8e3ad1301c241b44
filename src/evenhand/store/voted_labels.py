"""What people's votes say of the items of a run that have no label: as labels, for tables.

The same votes count as in an audit: of those who did not skip, on pairs that nobody picked for what
was known of them. What most of them said is the label; where no verdict has the most, none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, or_, select

from evenhand.contract import Winner
from evenhand.store.intake import in_slices
from evenhand.store.schema import items, votes

_VOTE = votes.c
_FAIR = and_(
    _VOTE.verdict.is_not(None),
    _VOTE.origin != "escalation",
    or_(_VOTE.draw.is_(None), _VOTE.draw != "chosen"),
)


def _given(*verdicts: str) -> ColumnElement[int]:
    return func.sum(case((_VOTE.verdict.in_(verdicts), 1), else_=0))


_COUNTS: dict[Winner, ColumnElement[int]] = {
    "A": _given("A"),
    "B": _given("B"),
    "TIE": _given("TIE", "BOTH_BAD"),
}


def _most(winner: Winner) -> ColumnElement[bool]:
    own = _COUNTS[winner]
    return and_(*(own > other for name, other in _COUNTS.items() if name != winner))


def voted_for(run_id: int, winner: Winner | None = None) -> Select[Any]:
    """The numbers of items without a label of which most people say this; or anything at all."""
    wanted = or_(*map(_most, _COUNTS)) if winner is None else _most(winner)
    said = select(_VOTE.pair_id).where(_FAIR).group_by(_VOTE.pair_id).having(wanted)
    # Votes are few: by no index of the run, which would lead through all of its items.
    return select(items.c.number).where(
        items.c.run_id + 0 == run_id, items.c.label.is_(None), items.c.pair_id.in_(said)
    )


def voted_labels(
    connection: Connection, run_id: int, numbers: Collection[int]
) -> dict[int, Winner]:
    """Of those of these items that have no label of the data, and one by votes."""
    found: dict[int, Winner] = {}
    for some in in_slices(sorted(set(numbers))):
        query = (
            select(items.c.number, *_COUNTS.values())
            .join_from(items, votes, _VOTE.pair_id == items.c.pair_id)
            .where(items.c.run_id == run_id, items.c.number.in_(some))
            .where(items.c.label.is_(None), _FAIR)
            .group_by(items.c.number)
        )
        for number, *counts in connection.execute(query):
            if counts.count(max(counts)) == 1:
                found[number] = tuple(_COUNTS)[counts.index(max(counts))]
    return found
