"""Selects verdicts of a run: the filter, and its SQL conditions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    exists,
    false,
    func,
    literal,
    null,
    or_,
    select,
)

from evenhand.contract import Outcome, Winner
from evenhand.contract.model import Model, Share
from evenhand.contract.pair import Text
from evenhand.store.columns import FIRST_CHOICE, SECOND_CHOICE, SPLIT, TIE_BY_RULE
from evenhand.store.flags import flagged_numbers
from evenhand.store.full_text import has_words
from evenhand.store.schema import item_tags, items, pairs, passes, shorten, verdicts
from evenhand.store.votes import voted_for

# How a criterion came out: a winner, by label or as the filtered model or the other; or an outcome
# without one.
CriterionEnd = Literal["A", "B", "TIE", "inconsistent", "invalid", "model", "other"]
# Groups of outcomes: any but invalid; a win or a tie; neither.
Ends = Literal["valid", "decided", "undecided"]
# `longer` and `shorter` name the response by its length.
LabelIs = Literal["A", "B", "TIE", "any", "none", "longer", "shorter"]
# Pairs read in both orders: whether the orders agree.
Orders = Literal["agree", "differ", "read"]
# Pairs whose orders differ: the position that gains, also by half a win (a win in one order, a tie
# in the other). Neither if an order's samples split.
Leans = Literal["first", "second", "either"]
# The models a pair names: two, the same twice, one, none.
Named = Literal["two", "same", "one", "none"]


# As wide as a column of a table holds.
Characters = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]


class VerdictFilter(Model):
    """Every condition that is given must hold.

    A verdict agrees where it is the label; an inconsistent or invalid pair has none that could.
    `query` are words that must all occur in the prompt or the responses.
    """

    outcome: Outcome | None = None
    winner: Winner | None = None
    tag: Text | None = None
    disagrees: bool | None = Field(
        default=None,
        description="Only labelled pairs that a judge was asked about: whether it disagrees with "
        "the label",
    )
    abstained: bool | None = None
    min_confidence: Share | None = None
    max_confidence: Share | None = None
    ending: Ends | None = Field(
        default=None,
        description="Several outcomes at once: all but invalid; a win or a tie; neither",
    )
    label: LabelIs | None = Field(
        default=None, description="The pair's label, the longer or shorter response's, any, or none"
    )
    criterion: Text | None = Field(default=None, description="One of the run's criteria")
    criterion_end: CriterionEnd | None = Field(
        default=None,
        description="The criterion's result; model and other mean `model` and its opponent",
    )
    judges_differ: bool | None = Field(
        default=None, description="Whether another judge of the run disagrees"
    )
    noted: bool | None = Field(default=None, description="With a note on the pair")
    unread: bool | None = Field(default=None, description="With an answer that could not be read")
    by_rule: bool | None = Field(
        default=None, description="A tie of identical responses, without asking the judge"
    )
    model: Text | None = Field(default=None, description="One of the pair's models, A or B")
    against: Text | None = Field(default=None, description="The opponent")
    model_wins: bool | None = Field(
        default=None, description="Whether `model` won; false: its opponent did"
    )
    named: Named | None = Field(
        default=None, description="Two different models, one against itself, one alone, or none"
    )
    orders: Orders | None = Field(
        default=None,
        description="Pairs read in both orders: those whose orders agree, differ, or all",
    )
    leans: Leans | None = Field(
        default=None, description="The orders differ in favour of this position"
    )
    longer_wins: bool | None = Field(
        default=None, description="The longer response won; false: the shorter did"
    )
    min_length_difference: Characters | None = Field(
        default=None, description="B is longer than A by at least this many characters"
    )
    max_length_difference: Characters | None = Field(
        default=None, description="By at most this many characters"
    )
    below_confidence: Share | None = Field(default=None, description="Confidence below this")
    has_confidence: bool | None = Field(default=None, description="With a confidence, or without")
    flagged: bool | None = Field(default=None, description="Flagged, or not")
    count_votes: bool | None = Field(
        default=None,
        description="With label and disagrees: the majority of votes counts as a label if the data "
        "has none",
    )
    query: Text | None = Field(default=None, max_length=1000, description="Words to search for")


# What a table shows of a verdict, as expressions of `verdicts` joined to `items`.

_V, _I = verdicts.c, items.c
LENGTH_DIFFERENCE = _I.length_b - _I.length_a  # by how many characters B is longer than A
# What the two orders came to, if both were read.
ORDERS = case(
    (or_(FIRST_CHOICE.is_(None), SECOND_CHOICE.is_(None)), null()),
    (or_(FIRST_CHOICE == SPLIT, SECOND_CHOICE == SPLIT), "split"),
    (FIRST_CHOICE == SECOND_CHOICE, "agree"),
    (or_(FIRST_CHOICE == "A", SECOND_CHOICE == "B"), "first"),
    else_="second",
)
# Some answer was unread. Only looked for where possible: a valid verdict of one sample rests on
# ballots alone.
UNREAD = and_(
    or_(_V.outcome == "invalid", _V.samples > 1),
    exists().where(
        passes.c.pair_id == _I.pair_id,
        passes.c.judge_id == _V.judge_id,
        passes.c.status == "unread",
        passes.c.sample <= _V.samples,
    ),
)
_DECIDED = _V.outcome.in_(("win", "tie"))
_WON: dict[Winner, ColumnElement[bool]] = {
    side: and_(_V.outcome == "win", _V.winner == side) for side in ("A", "B")
}
# Labelled pairs that a judge was asked about.
COMPARED = and_(_I.label.is_not(None), ~TIE_BY_RULE)
AGREES = and_(_DECIDED, _V.winner == _I.label)

_ORDERS: dict[Orders | Leans, tuple[str, ...]] = {
    "agree": ("agree",),
    "differ": ("first", "second", "split"),
    "read": ("agree", "first", "second", "split"),
    "first": ("first",),
    "second": ("second",),
    "either": ("first", "second"),
}
_ENDS: dict[Ends, tuple[str, ...]] = {
    "valid": ("win", "tie", "inconsistent"),
    "decided": ("win", "tie"),
    "undecided": ("inconsistent", "invalid"),
}


def conditions(
    connection: Connection,
    run_id: int,
    wanted: VerdictFilter,
    judge_ids: Collection[int] | None = None,
) -> Iterator[ColumnElement[bool]]:
    """On the verdicts of this run, or of these judges of it, joined to their items."""
    yield _V.run_id == run_id
    if judge_ids is not None:
        yield _V.judge_id.in_(judge_ids)
    for name, condition in _PLAIN.items():
        if (value := getattr(wanted, name)) is not None:
            yield condition(value)
    facts = _FACTS | {
        "flagged": _V.number.in_(flagged_numbers(run_id)),
        "judges_differ": _V.number.in_(_differing(run_id)),
    }
    for name, fact in facts.items():
        if (value := getattr(wanted, name)) is not None:
            yield _holds(fact, value)
    if wanted.tag is not None:
        tag = item_tags.c
        of_tag = select(tag.number).where(tag.run_id == run_id, tag.tag == shorten(wanted.tag))
        yield _V.number.in_(of_tag)
    if wanted.query is not None:
        yield has_words(connection, _V.number, run_id, wanted.query)
    yield from _on_labels(run_id, wanted)
    yield from _on_models(wanted)
    yield from _on_criterion(wanted, connection.dialect.name)


def _holds(fact: ColumnElement[bool], wanted: bool) -> ColumnElement[bool]:
    return fact if wanted else ~fact


def _differing(run_id: int) -> Select[Any]:
    """Items with different outcomes by two judges; a missing verdict differs from none."""
    each = verdicts.alias().c
    end = each.outcome + func.coalesce(each.winner, "")
    return (
        select(each.number)
        .where(each.run_id == run_id, each.outcome != "invalid")
        .group_by(each.number)
        .having(func.min(end) != func.max(end))
    )


def _is_longer(
    is_a: ColumnElement[bool], is_b: ColumnElement[bool], *, longer: bool
) -> ColumnElement[bool]:
    """Whether A or B, as given, is the longer response, or the shorter."""
    a_longer, b_longer = LENGTH_DIFFERENCE < 0, LENGTH_DIFFERENCE > 0
    if not longer:
        a_longer, b_longer = b_longer, a_longer
    return or_(and_(is_a, a_longer), and_(is_b, b_longer))


def _on_labels(run_id: int, wanted: VerdictFilter) -> Iterator[ColumnElement[bool]]:
    """By the data's label; with `count_votes`, by most votes if there is none."""
    counted = wanted.count_votes is True
    if wanted.disagrees is not None:
        by_data = and_(COMPARED, _holds(AGREES, not wanted.disagrees))
        yield or_(by_data, _voted_otherwise(run_id, wanted.disagrees)) if counted else by_data
    if wanted.label is not None:
        yield _labelled(run_id, wanted.label, counted=counted)


def _labelled(run_id: int, label: LabelIs, *, counted: bool) -> ColumnElement[bool]:
    if label == "longer" or label == "shorter":
        named = (_labelled(run_id, each, counted=counted) for each in _WON)
        return _is_longer(*named, longer=label == "longer")
    if label == "none":
        bare = _I.label.is_(None)
        return and_(bare, _V.number.not_in(voted_for(run_id))) if counted else bare
    by_data = _I.label.is_not(None) if label == "any" else _I.label == label
    if not counted:
        return by_data
    voted = voted_for(run_id) if label == "any" else voted_for(run_id, label)
    return or_(by_data, _V.number.in_(voted))


def _voted_otherwise(run_id: int, disagrees: bool) -> ColumnElement[bool]:
    """Whether most votes differ from the verdict, or agree."""
    labels: tuple[Winner, ...] = ("A", "B", "TIE")
    voted = (
        and_(
            _V.number.in_(voted_for(run_id, label)),
            _holds(and_(_DECIDED, func.coalesce(_V.winner, "") == label), not disagrees),
        )
        for label in labels
    )
    return and_(~TIE_BY_RULE, or_(*voted))


_BOTH = and_(_I.model_a.is_not(None), _I.model_b.is_not(None))
_NAMED: dict[Named, ColumnElement[bool]] = {
    "two": and_(_BOTH, _I.model_a != _I.model_b),
    "same": and_(_BOTH, _I.model_a == _I.model_b),
    "one": _I.model_a.is_(None) != _I.model_b.is_(None),
    "none": and_(_I.model_a.is_(None), _I.model_b.is_(None)),
}


def _on_models(wanted: VerdictFilter) -> Iterator[ColumnElement[bool]]:
    model, against = wanted.model, wanted.against
    a, b = _I.model_a, _I.model_b
    if model is not None and against is not None:
        yield or_(and_(a == model, b == against), and_(a == against, b == model))
    else:
        for name in (model, against):
            if name is not None:
                yield or_(a == name, b == name)
    if model is not None and wanted.model_wins is not None:
        as_a, as_b = _WON["A"], _WON["B"]
        if not wanted.model_wins:
            as_a, as_b = as_b, as_a
        yield or_(and_(a == model, as_a), and_(b == model, as_b))


# The SQL of each simple condition.
_PLAIN: dict[str, Callable[[Any], ColumnElement[bool]]] = {
    "outcome": lambda outcome: _V.outcome == str(outcome),
    "winner": lambda winner: _V.winner == winner,
    "ending": lambda ending: _V.outcome.in_(_ENDS[ending]),
    "orders": lambda orders: ORDERS.in_(_ORDERS[orders]),
    "leans": lambda leans: ORDERS.in_(_ORDERS[leans]),
    "named": lambda named: _NAMED[named],
    "min_confidence": lambda least: _V.confidence >= least,
    "max_confidence": lambda most: _V.confidence <= most,
    "below_confidence": lambda bound: _V.confidence < bound,
    "min_length_difference": lambda least: least <= LENGTH_DIFFERENCE,
    "max_length_difference": lambda most: most >= LENGTH_DIFFERENCE,
    "longer_wins": lambda longer: _is_longer(_WON["A"], _WON["B"], longer=longer),
}
# Conditions that are true or false.
_FACTS: dict[str, ColumnElement[bool]] = {
    "abstained": _V.abstained,
    "noted": _I.noted,
    "unread": UNREAD,
    "by_rule": TIE_BY_RULE,
    "has_confidence": _V.confidence.is_not(None),
}


# `by_criterion` holds `["accuracy","win","A","A","A"]`: name, outcome, winner, each order's choice.
# Quotes within a name are escaped, so that such a prefix cannot occur inside one.
_CAME_OUT: dict[str, str] = {
    "A": '"win","A",',
    "B": '"win","B",',
    "TIE": '"tie",',
    "inconsistent": '"inconsistent",',
    "invalid": '"invalid",',
}


def _on_criterion(wanted: VerdictFilter, dialect: str) -> Iterator[ColumnElement[bool]]:
    name, end, model = wanted.criterion, wanted.criterion_end, wanted.model
    if name is None and end is None:
        return
    if end not in ("model", "other"):
        yield _came_out(name, end, dialect)
        return
    a, b = _came_out(name, "A", dialect), _came_out(name, "B", dialect)
    if model is None:
        yield or_(a, b)
    else:
        own, other = (a, b) if end == "model" else (b, a)
        yield or_(and_(_I.model_a == model, own), and_(_I.model_b == model, other))


def _came_out(name: str | None, end: str | None, dialect: str) -> ColumnElement[bool]:
    """That this criterion, or any, came out in this way, or in any."""
    quoted = None if name is None else orjson.dumps(name).decode()
    start = "," if quoted is None else f"[{quoted},"
    stated = _contains(_V.by_criterion, start + ("" if end is None else _CAME_OUT[end]), dialect)
    if end not in (None, "invalid"):
        return stated
    # Without a breakdown, all of the pair's criteria are invalid.
    given = pairs.c.criteria
    named = given != "[]" if quoted is None else _contains(given, f'{{"name":{quoted}', dialect)
    silent = and_(_V.by_criterion.is_(None), exists().where(pairs.c.id == _I.pair_id, named))
    return or_(func.coalesce(stated, false()), silent)


def _contains(column: ColumnElement[str], part: str, dialect: str) -> ColumnElement[bool]:
    place = func.strpos if dialect == "postgresql" else func.instr
    return place(column, literal(part)) > 0
