"""What a table's filters ask of the marks beside verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sqlalchemy import ColumnElement, Connection, and_, false, or_

from evenhand.contract import Winner
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
from evenhand.store.verdict_table import Ends, LabelIs, TableFilter
from evenhand.store.voted_labels import voted_for

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


def conditions_of(run_id: int, wanted: TableFilter) -> Iterator[ColumnElement[bool]]:
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
    counted = wanted.count_votes is True
    for flag, value in (
        (JUDGES_DIFFER, wanted.judges_differ),
        (NOTED, wanted.noted),
        (UNREAD, wanted.unread),
        (ABSTAINED, wanted.abstained),
    ):
        if value is not None:
            yield _MARK.flags.bitwise_and(flag) == (flag if value else 0)
    if wanted.disagrees is not None:
        # Of pairs without a label nobody knows whether the verdict agrees.
        met = LABELLED | DISAGREES if wanted.disagrees else LABELLED
        by_data = _MARK.flags.bitwise_and(LABELLED | DISAGREES) == met
        yield or_(by_data, _against_votes(run_id, wanted.disagrees)) if counted else by_data
    if wanted.label is not None:
        yield _labelled(run_id, wanted.label, counted=counted)


def _labelled(run_id: int, label: LabelIs, *, counted: bool) -> ColumnElement[bool]:
    """By the data; and where votes are counted, by what most people say of a pair without one."""
    known = _MARK.flags.bitwise_and(ANY_LABEL)
    if label == "none":
        bare = known == 0
        return and_(bare, _MARK.number.not_in(voted_for(run_id))) if counted else bare
    by_data = known != 0 if label == "any" else known == LABELS[label]
    if not counted:
        return by_data
    said = voted_for(run_id) if label == "any" else voted_for(run_id, label)
    return or_(by_data, _MARK.number.in_(said))


def _against_votes(run_id: int, disagrees: bool) -> ColumnElement[bool]:
    """Whether what most people say of a pair is another end than the verdict's, or the same."""
    ends: dict[Winner, int] = {
        "A": ENDINGS.index(("win", "A")),
        "B": ENDINGS.index(("win", "B")),
        "TIE": ENDINGS.index(("tie", "TIE")),
    }
    return or_(
        *(
            and_(
                _MARK.number.in_(voted_for(run_id, said)),
                _MARK.ending != end if disagrees else _MARK.ending == end,
            )
            for said, end in ends.items()
        )
    )


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
