"""A run's verdicts as a table: filtered, sorted, a page at a time, by the marks beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from evenhand.contract import Outcome, Winner
from evenhand.store.contests import Named
from evenhand.store.verdict_search import VerdictFilter

Sort = Literal["number", "confidence", "length"]
# How a criterion came out: a winner, by its label or as the model that was asked for or the other
# one; or what is none.
CriterionEnd = Literal["A", "B", "TIE", "inconsistent", "invalid", "model", "other"]
# Several outcomes at once: any but invalid; a win or a tie; neither of them.
Ends = Literal["valid", "decided", "undecided"]
LabelIs = Literal["A", "B", "TIE", "any", "none"]


@dataclass(frozen=True, slots=True)
class TableFilter(VerdictFilter):
    """Every condition that is given must hold; `query` are words that must all stand in the
    prompt or the responses. `model` is one of the pair's two, wherever it stands, and `against`
    the other one; `model_wins` is whether it won, or else the other one did."""

    criterion: str | None = None
    criterion_end: CriterionEnd | None = None
    judges_differ: bool | None = None  # another judge of the run has another verdict on the pair
    noted: bool | None = None  # with a note on the pair: a much longer response, talk to the judge
    unread: bool | None = None  # an answer behind it could not be read
    query: str | None = None
    ending: Ends | None = None
    label: LabelIs | None = None
    model: str | None = None
    against: str | None = None
    named: Named | None = None
    model_wins: bool | None = None
    count_votes: bool | None = None  # where the data has no label, what most people voted is one


class TablePlace(NamedTuple):
    """Where a verdict stands in a table's order; `key` is what the table is sorted by."""

    key: float | None
    number: int
    judge_id: int


@dataclass(frozen=True, slots=True)
class TableRow:
    """`prompt` is its beginning; `length_b - length_a` is what `length` sorts by."""

    number: int
    id: str
    judge_id: int
    outcome: Outcome
    winner: Winner | None
    confidence: float | None
    label: Winner | None
    disagrees: bool | None  # None: no label
    label_voted: bool  # by people, where votes count; the data has none
    judges_differ: bool
    noted: bool
    unread: bool
    abstained: bool
    model_a: str | None
    model_b: str | None
    tags: tuple[str, ...]
    length_a: int
    length_b: int
    prompt: str
    place: TablePlace


@dataclass(frozen=True, slots=True)
class CountUpTo:
    """`more`: there are more than were counted, so that it reads "10,000+"."""

    count: int
    more: bool


@dataclass(frozen=True, slots=True)
class TablePage:
    """`next` and `previous` go into `after` and `before`; None at the ends. Where words are looked
    for, rows may be few before an end: the search goes on from `next`."""

    rows: tuple[TableRow, ...]
    next: TablePlace | None
    previous: TablePlace | None
    count: CountUpTo


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far an index is: of verdicts, or of pairs."""

    done: int
    total: int

    @property
    def whole(self) -> bool:
        return self.done >= self.total
