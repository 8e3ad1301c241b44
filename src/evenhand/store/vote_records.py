"""What people said about pairs, as values. Nothing here knows of a database."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from evenhand.contract import Order, Winner
from evenhand.store.columns import codes, fractions, small_codes, whole_numbers

# Where a vote came from. An escalated pair was shown to people because the judge was unsure.
Origin = Literal["import", "terminal", "page", "escalation"]
# How the pair was chosen: evenly from all pairs of a run, by known chances that differ, or because
# of what was known about it. Votes on chosen pairs say nothing about the others.
Draw = Literal["random", "weighted", "chosen"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
DRAWS: tuple[Draw, ...] = get_args(Draw)
LONGEST_NAME = 200
UNKNOWN_DRAW = -1


@dataclass(frozen=True, slots=True)
class NewVote:
    """`verdict` is None where the person looked and skipped. `both_bad`: a tie, and neither is any
    good; it counts as the tie that it is, and is kept as what was said.

    What is None otherwise is not told: then a vote that is there already keeps its own.
    """

    pair_id: int
    who: str
    verdict: Winner | None
    origin: Origin | None = None
    draw: Draw | None = None
    chance: float | None = None
    shown_order: Order | None = None
    at: datetime | None = None
    comment: str | None = None
    both_bad: bool = False


@dataclass(frozen=True, slots=True)
class StoredVote:
    pair_id: int
    who: str
    verdict: Winner | None
    origin: Origin
    draw: Draw | None
    chance: float | None
    shown_order: Order | None
    at: datetime
    comment: str | None
    both_bad: bool = False


class ItemVote(NamedTuple):
    """A vote, and an item of a run that has its pair."""

    number: int
    key: str
    vote: StoredVote


class PairStanding(NamedTuple):
    """How far a pair is voted on, as one person is to know it: `labels` are verdicts of people who
    met the pair in a fair draw, `others` those of them that are not the person's own."""

    pair_id: int
    votes: int
    labels: int
    others: int
    own: bool
    skipped: bool  # by the person
    page_at: float | None  # when the person voted on it on a page


class AddedVotes(NamedTuple):
    """`unchanged` votes said nothing that was not there already."""

    new: int
    replaced: int
    unchanged: int


class RunItem(NamedTuple):
    """What may be known of an item without reading its texts."""

    number: int
    key: str
    pair_id: int
    label: Winner | None
    model_a: str | None
    model_b: str | None


@dataclass(frozen=True, slots=True)
class VoteColumns:
    """The votes on a run's items, by item number and person.

    A vote on a pair that several items share stands with each of them. `verdict` is 0 A, 1 B,
    2 TIE, and -1 skipped; `draw` and `origin` are places in DRAWS and ORIGINS, -1 not known.
    """

    people: tuple[str, ...]
    number: array[int] = field(default_factory=whole_numbers)
    pair_id: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    who: array[int] = field(default_factory=codes)  # a place in `people`
    verdict: array[int] = field(default_factory=small_codes)
    origin: array[int] = field(default_factory=small_codes)
    draw: array[int] = field(default_factory=small_codes)
    chance: array[float] = field(default_factory=fractions)  # NaN where it is not known
    label: array[int] = field(default_factory=small_codes)  # the data file's own
