"""What a table's filters ask of the marks beside verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sqlalchemy import ColumnElement, Connection, and_, false, or_

from evenhand.store.breakdowns import came_out, criteria_places
from evenhand.store.columns import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.store.contests import between, with_model_as
from evenhand.store.marks import (
    ABSTAINED,
    ANY_LABEL,
    DISAGREES,
    ENDINGS,
    JUDGES_DIFFER,
    LABELLED,
    LABELS,
    NOTED,
    UNREAD,
)
from evenhand.store.schema import verdict_marks
from evenhand.store.verdict_table import Ends, TableFilter

Side = Literal["A", "B"]
_SIDES: dict[Side, int] = {"A": WIN_A, "B": WIN_B}
_ENDS: dict[Ends, frozenset[str]] = {
    "valid": frozenset({"win", "tie", "inconsistent"}),
    "decided": frozenset({"win", "tie"}),
    "undecided": frozenset({"inconsistent", "invalid"}),
}
_CODES: dict[str, int] = {
    "A": WIN_A,
    "B": WIN_B,
    "TIE": TIE,
    "inconsistent": INCONSISTENT,
    "invalid": INVALID,
}
_MARK = verdict_marks.c


def conditions_of(wanted: TableFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.judge_ids is not None:
        yield _MARK.judge_id.in_(list(wanted.judge_ids))
    if (wanted.outcome, wanted.winner, wanted.ending) != (None, None, None):
        yield _MARK.ending.in_(
            [
                place
                for place, (outcome, winner) in enumerate(ENDINGS)
                if wanted.outcome in (None, outcome)
                and wanted.winner in (None, winner)
                and (wanted.ending is None or outcome in _ENDS[wanted.ending])
            ]
        )
    if wanted.min_confidence is not None:
        yield _MARK.confidence >= wanted.min_confidence
    if wanted.max_confidence is not None:
        yield _MARK.confidence <= wanted.max_confidence
    for flag, value in (
        (DISAGREES, wanted.disagrees),
        (JUDGES_DIFFER, wanted.judges_differ),
        (NOTED, wanted.noted),
        (UNREAD, wanted.unread),
        (ABSTAINED, wanted.abstained),
    ):
        if value is not None:
            # Of pairs without a label nobody knows whether the verdict agrees.
            asked = flag | LABELLED if flag == DISAGREES else flag
            met = asked if value else asked & ~flag
            yield _MARK.flags.bitwise_and(asked) == met
    if wanted.label is not None:
        known = _MARK.flags.bitwise_and(ANY_LABEL)
        if wanted.label in ("any", "none"):
            yield known != 0 if wanted.label == "any" else known == 0
        else:
            yield known == LABELS[wanted.label]


def about_models(
    contest: ColumnElement[int], run_id: int, wanted: TableFilter
) -> Iterator[ColumnElement[bool]]:
    """`contest` is the column, or an expression of it that no index leads by."""
    yield from between(
        contest, run_id, model=wanted.model, against=wanted.against, named=wanted.named
    )
    if wanted.model is not None and wanted.model_wins is not None:
        sides: tuple[Side, Side] = ("A", "B") if wanted.model_wins else ("B", "A")
        yield or_(
            *(
                and_(
                    with_model_as(contest, run_id, wanted.model, stands),
                    _MARK.ending == ENDINGS.index(("win", wins)),
                )
                for stands, wins in zip(_SIDES, sides, strict=True)
            )
        )


def on_criterion(
    breakdown: ColumnElement[int], connection: Connection, run_id: int, wanted: TableFilter
) -> Iterator[ColumnElement[bool]]:
    """`breakdown` is the column, or an expression of it that no index leads by."""
    name, end, model = wanted.criterion, wanted.criterion_end, wanted.model
    if name is None and end is None:
        return
    place = None if name is None else criteria_places(connection, run_id).get(name)
    if name is not None and place is None:
        yield false()
    elif end not in ("model", "other"):
        yield came_out(breakdown, run_id, place, None if end is None else [_CODES[end]])
    elif model is None:
        yield came_out(breakdown, run_id, place, _SIDES.values())
    else:
        codes = _SIDES.values() if end == "model" else reversed(_SIDES.values())
        yield or_(
            *(
                and_(
                    with_model_as(_MARK.contest + 0, run_id, model, side),
                    came_out(breakdown, run_id, place, [code]),
                )
                for side, code in zip(_SIDES, codes, strict=True)
            )
        )
