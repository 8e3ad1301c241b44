"""Which verdicts of a run are wanted: the filter, and its conditions on the verdicts themselves or
on the verdict index beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, false, or_, select

from evenhand.contract import Outcome, Winner
from evenhand.contract.codes import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.store.columns import TIE_BY_RULE
from evenhand.store.flags import flagged_numbers
from evenhand.store.schema import items, run_breakdowns, run_contests, verdict_index, verdicts
from evenhand.store.verdict_index import (
    ABSTAINED,
    ANY_LABEL,
    ANY_ORDERS,
    BY_RULE,
    CRITERION_LETTERS,
    DISAGREES,
    ENDINGS,
    JUDGES_DIFFER,
    LABELLED,
    LABELS,
    NOTED,
    ORDERS,
    UNREAD,
    contest_key,
    criteria_places,
    name_key,
)
from evenhand.store.votes import voted_for

# How a criterion came out: a winner, by its label or as the model that was asked for or the other
# one; or what is none.
CriterionEnd = Literal["A", "B", "TIE", "inconsistent", "invalid", "model", "other"]
# Several outcomes at once: any but invalid; a win or a tie; neither of them.
Ends = Literal["valid", "decided", "undecided"]
# `longer` and `shorter` name the response by its length.
LabelIs = Literal["A", "B", "TIE", "any", "none", "longer", "shorter"]
# Of pairs that were read in both orders: whether they chose the same.
Orders = Literal["agree", "differ", "read"]
# Of those that differ: the position that gains, also by half a win (a win in one order and a tie
# in the other). Where the samples of an order split, it is neither.
Leans = Literal["first", "second", "either"]
# How many models a pair names: two, one and the same twice, one alone, none.
Named = Literal["two", "same", "one", "none"]
_ORDERS: dict[Orders | Leans, tuple[str, ...]] = {
    "agree": ("agree",),
    "differ": ("first", "second", "split"),
    "read": tuple(ORDERS),
    "first": ("first",),
    "second": ("second",),
    "either": ("first", "second"),
}
_ENDS: dict[Ends, frozenset[str]] = {
    "valid": frozenset({"win", "tie", "inconsistent"}),
    "decided": frozenset({"win", "tie"}),
    "undecided": frozenset({"inconsistent", "invalid"}),
}


@dataclass(frozen=True, slots=True)
class VerdictFilter:
    """Every condition that is given must hold.

    `disagrees` is of labelled pairs that a judge was asked about: a verdict agrees where it is the
    label, and an inconsistent or invalid pair has none that could. `query` are words that must all
    stand in the prompt or the responses. `model` is one of the pair's two, wherever it stands, and
    `against` the other one; `model_wins` is whether it won, or else the other one did.
    """

    outcome: Outcome | None = None
    winner: Winner | None = None
    ending: Ends | None = None
    judge_ids: tuple[int, ...] | None = None
    tag: str | None = None
    disagrees: bool | None = None
    abstained: bool | None = None
    min_confidence: float | None = None
    max_confidence: float | None = None
    # Only in the index:
    criterion: str | None = None
    criterion_end: CriterionEnd | None = None
    judges_differ: bool | None = None  # another judge of the run has another verdict on the pair
    noted: bool | None = None  # with a note on the pair: a much longer response, talk to the judge
    unread: bool | None = None  # an answer behind it could not be read
    by_rule: bool | None = None  # a tie of identical responses, about which no judge was asked
    query: str | None = None
    label: LabelIs | None = None
    model: str | None = None
    against: str | None = None
    named: Named | None = None
    model_wins: bool | None = None
    orders: Orders | None = None
    leans: Leans | None = None
    longer_wins: bool | None = None  # or the shorter does; nothing where neither is, or nobody wins
    # By how many characters B is longer than A.
    min_length_difference: int | None = None
    max_length_difference: int | None = None
    below_confidence: float | None = None
    has_confidence: bool | None = None
    flagged: bool | None = None
    count_votes: bool | None = None  # where the data has no label, what most people voted is one

    @property
    def needs_index(self) -> bool:
        names = fields(self)[[each.name for each in fields(self)].index("criterion") :]
        return any(getattr(self, each.name) is not None for each in names)

    @property
    def ends(self) -> tuple[int, ...] | None:
        """How a pair may have come out, as places in ENDINGS; None where that is all one."""
        if (self.outcome, self.winner, self.ending) == (None, None, None):
            return None
        return tuple(
            place
            for place, (outcome, winner) in enumerate(ENDINGS)
            if self.outcome in (None, outcome)
            and self.winner in (None, winner)
            and (self.ending is None or outcome in _ENDS[self.ending])
        )

    @property
    def sifted(self) -> bool:
        """Whether an index of the verdicts leads to more than what meets the conditions."""
        by_index = (self.tag is not None, self.abstained is True, self.ends is not None)
        looked_at = (self.disagrees, self.min_confidence, self.max_confidence, self.judge_ids)
        return (
            sum(by_index) > 1
            or self.abstained is False
            or any(each is not None for each in looked_at)
        )


@dataclass(frozen=True, slots=True)
class _Source:
    """Where conditions look: at the verdicts, or at their index."""

    judge_id: ColumnElement[int]
    confidence: ColumnElement[float]
    abstained: ColumnElement[bool]
    agrees: ColumnElement[bool]
    disagrees: ColumnElement[bool]
    ended: Callable[[Sequence[int]], ColumnElement[bool]]


def of_ending(place: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    outcome, winner = ENDINGS[place]
    column = verdicts.c
    named = column.winner.is_(None) if winner is None else column.winner == winner
    return column.outcome == outcome, named


def _ended(places: Sequence[int]) -> ColumnElement[bool]:
    return or_(false(), *(and_(*of_ending(place)) for place in places))


_INDEX = verdict_index.c


def _flagged(flags: int, value: int | None = None) -> ColumnElement[bool]:
    return _INDEX.flags.bitwise_and(flags) == (flags if value is None else value)


_AGREES = and_(verdicts.c.outcome.in_(("win", "tie")), verdicts.c.winner == items.c.label)
BY_VERDICTS = _Source(
    judge_id=verdicts.c.judge_id,
    confidence=verdicts.c.confidence,
    abstained=verdicts.c.abstained,
    agrees=and_(items.c.label.is_not(None), ~TIE_BY_RULE, _AGREES),
    disagrees=and_(items.c.label.is_not(None), ~TIE_BY_RULE, ~_AGREES),
    ended=_ended,
)
BY_INDEX = _Source(
    judge_id=_INDEX.judge_id,
    confidence=_INDEX.confidence,
    abstained=_flagged(ABSTAINED),
    agrees=_flagged(LABELLED | DISAGREES, LABELLED),
    disagrees=_flagged(LABELLED | DISAGREES),
    ended=_INDEX.ending.in_,
)


def conditions(wanted: VerdictFilter, source: _Source) -> Iterator[ColumnElement[bool]]:
    """Those that hold of the verdicts and of the index alike."""
    if wanted.judge_ids is not None:
        yield source.judge_id.in_(list(wanted.judge_ids))
    if wanted.ends is not None:
        yield source.ended(wanted.ends)
    if wanted.abstained is not None:
        yield source.abstained if wanted.abstained else ~source.abstained
    if wanted.min_confidence is not None:
        yield source.confidence >= wanted.min_confidence
    if wanted.max_confidence is not None:
        yield source.confidence <= wanted.max_confidence
    if wanted.disagrees is not None and not wanted.count_votes:
        # Of pairs without a label nobody knows whether the verdict agrees.
        yield source.disagrees if wanted.disagrees else source.agrees


def index_conditions(run_id: int, wanted: VerdictFilter) -> Iterator[ColumnElement[bool]]:
    yield from conditions(wanted, BY_INDEX)
    counted = wanted.count_votes is True
    for flag, value in (
        (JUDGES_DIFFER, wanted.judges_differ),
        (NOTED, wanted.noted),
        (UNREAD, wanted.unread),
        (BY_RULE, wanted.by_rule),
    ):
        if value is not None:
            yield _flagged(flag, flag if value else 0)
    for kind in (wanted.orders, wanted.leans):
        if kind is not None:
            such = [ORDERS[each] for each in _ORDERS[kind]]
            yield _INDEX.flags.bitwise_and(ANY_ORDERS).in_(such)
    if wanted.longer_wins is not None:
        won = (_INDEX.ending == _WIN[side] for side in _WIN)
        yield _of_longer(*won, longer=wanted.longer_wins)
    if wanted.min_length_difference is not None:
        yield _INDEX.longer >= wanted.min_length_difference
    if wanted.max_length_difference is not None:
        yield _INDEX.longer <= wanted.max_length_difference
    if wanted.below_confidence is not None:
        yield _INDEX.confidence < wanted.below_confidence
    if wanted.has_confidence is not None:
        stated = _INDEX.confidence.is_not(None)
        yield stated if wanted.has_confidence else ~stated
    if wanted.disagrees is not None and counted:
        by_data = BY_INDEX.disagrees if wanted.disagrees else BY_INDEX.agrees
        yield or_(by_data, _against_votes(run_id, wanted.disagrees))
    if wanted.flagged is not None:
        flagged = _INDEX.number.in_(flagged_numbers(run_id))
        yield flagged if wanted.flagged else ~flagged
    if wanted.label is not None:
        yield _labelled(run_id, wanted.label, counted=counted)


_WIN: dict[Winner, int] = {"A": ENDINGS.index(("win", "A")), "B": ENDINGS.index(("win", "B"))}


def _of_longer(
    is_a: ColumnElement[bool], is_b: ColumnElement[bool], *, longer: bool
) -> ColumnElement[bool]:
    """Whether the one that is A or B is the longer of the two, or else the shorter."""
    a_longer, b_longer = _INDEX.longer < 0, _INDEX.longer > 0
    if not longer:
        a_longer, b_longer = b_longer, a_longer
    return or_(and_(is_a, a_longer), and_(is_b, b_longer))


def _labelled(run_id: int, label: LabelIs, *, counted: bool) -> ColumnElement[bool]:
    """By the data; and where votes are counted, by what most people say of a pair without one."""
    if label == "longer" or label == "shorter":
        named = (_labelled(run_id, each, counted=counted) for each in _WIN)
        return _of_longer(*named, longer=label == "longer")
    known = _INDEX.flags.bitwise_and(ANY_LABEL)
    if label == "none":
        bare = known == 0
        return and_(bare, _INDEX.number.not_in(voted_for(run_id))) if counted else bare
    by_data = known != 0 if label == "any" else known == LABELS[label]
    if not counted:
        return by_data
    voted = voted_for(run_id) if label == "any" else voted_for(run_id, label)
    return or_(by_data, _INDEX.number.in_(voted))


def _against_votes(run_id: int, disagrees: bool) -> ColumnElement[bool]:
    """Whether what most people say of a pair is another end than the verdict's, or the same."""
    ends: dict[Winner, int] = {**_WIN, "TIE": ENDINGS.index(("tie", "TIE"))}
    against = or_(
        *(
            and_(
                _INDEX.number.in_(voted_for(run_id, label)),
                _INDEX.ending != end if disagrees else _INDEX.ending == end,
            )
            for label, end in ends.items()
        )
    )
    return and_(_flagged(BY_RULE, 0), against)


# Models and criteria stand in the index as one number each (`contest`, `breakdown`). The column is
# given, or an expression of it that no index leads by.

Side = Literal["A", "B"]
_SIDES: dict[Side, int] = {"A": WIN_A, "B": WIN_B}
_CODES: dict[str, int] = {
    "A": WIN_A,
    "B": WIN_B,
    "TIE": TIE,
    "inconsistent": INCONSISTENT,
    "invalid": INVALID,
}
_CONTEST = run_contests.c
_BOTH = and_(_CONTEST.key_a.is_not(None), _CONTEST.key_b.is_not(None))
_NAMED: dict[Named, ColumnElement[bool]] = {
    "two": and_(_BOTH, _CONTEST.key_a != _CONTEST.key_b),
    "same": and_(_BOTH, _CONTEST.key_a == _CONTEST.key_b),
    "one": or_(
        and_(_CONTEST.key_a.is_(None), _CONTEST.key_b.is_not(None)),
        and_(_CONTEST.key_a.is_not(None), _CONTEST.key_b.is_(None)),
    ),
    "none": and_(_CONTEST.key_a.is_(None), _CONTEST.key_b.is_(None)),
}


def on_models(
    contest: ColumnElement[int], run_id: int, wanted: VerdictFilter
) -> Iterator[ColumnElement[bool]]:
    model, against = wanted.model, wanted.against
    if model is not None and against is not None:
        keys = {contest_key((model, against)), contest_key((against, model))}
        yield contest.in_(sorted(keys))
    else:
        for name in (model, against):
            if name is not None:
                key = name_key(name)
                either = or_(_CONTEST.key_a == key, _CONTEST.key_b == key)
                yield contest.in_(_contests(run_id, either))
    if wanted.named is not None:
        yield contest.in_(_contests(run_id, _NAMED[wanted.named]))
    if model is not None and wanted.model_wins is not None:
        sides: tuple[Side, Side] = ("A", "B") if wanted.model_wins else ("B", "A")
        yield or_(
            *(
                and_(
                    _with_model_as(contest, run_id, model, stands),
                    _INDEX.ending == _WIN[wins],
                )
                for stands, wins in zip(_SIDES, sides, strict=True)
            )
        )


def _with_model_as(
    contest: ColumnElement[int], run_id: int, model: str, side: Side
) -> ColumnElement[bool]:
    column = _CONTEST.key_a if side == "A" else _CONTEST.key_b
    return contest.in_(_contests(run_id, column == name_key(model)))


def _contests(run_id: int, condition: ColumnElement[bool]) -> Any:
    return select(_CONTEST.contest).where(_CONTEST.run_id == run_id, condition)


def on_criterion(
    breakdown: ColumnElement[int], connection: Connection, run_id: int, wanted: VerdictFilter
) -> Iterator[ColumnElement[bool]]:
    name, end, model = wanted.criterion, wanted.criterion_end, wanted.model
    if name is None and end is None:
        return
    place = None if name is None else criteria_places(connection, run_id).get(name)
    if name is not None and place is None:
        yield false()
    elif end not in ("model", "other"):
        yield _came_out(breakdown, run_id, place, None if end is None else [_CODES[end]])
    elif model is None:
        yield _came_out(breakdown, run_id, place, _SIDES.values())
    else:
        codes = _SIDES.values() if end == "model" else reversed(_SIDES.values())
        yield or_(
            *(
                and_(
                    _with_model_as(_INDEX.contest + 0, run_id, model, side),
                    _came_out(breakdown, run_id, place, [code]),
                )
                for side, code in zip(_SIDES, codes, strict=True)
            )
        )


def _came_out(
    breakdown: ColumnElement[int], run_id: int, place: int | None, codes: Iterable[int] | None
) -> ColumnElement[bool]:
    """That the criterion at this place, or any, came out in one of these ways, or in any."""
    ends = "_" if codes is None else [CRITERION_LETTERS[code] for code in codes]
    start = "%" if place is None else f"%,{place}"
    such = or_(*(run_breakdowns.c.outcomes.like(f"{start}{end},%") for end in ends))
    return breakdown.in_(
        select(run_breakdowns.c.breakdown).where(run_breakdowns.c.run_id == run_id, such)
    )
