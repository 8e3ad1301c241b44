"""People's votes on a run as arrays aligned to its items, and as one label for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import NO_WINNER
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.store import DRAWS, ORIGINS, Store, VoteColumns

# Rows are aligned to item numbers, as those of `store.columns.outcomes` are.

CLASSES = 3  # A, B, TIE
_RANDOM, _WEIGHTED, _CHOSEN = (DRAWS.index(each) for each in ("random", "weighted", "chosen"))
_ESCALATION = ORIGINS.index("escalation")

Integers = NDArray[np.int64]
Codes = NDArray[np.int8]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ItemVotes:
    """Every vote on the asked-for items: `row` is a place among their numbers.

    `verdict` is 0 A, 1 B, 2 TIE, -1 skipped; `label` the data file's own likewise, -1 none. `who`,
    `origin` and `draw` are places in `people`, ORIGINS and DRAWS. `chance` is NaN, and `draw` -1,
    where it is not known.
    """

    people: tuple[str, ...]
    row: NDArray[np.intp]
    pair: Integers
    prompt: Integers
    who: NDArray[np.int32]
    verdict: Codes
    label: Codes
    origin: Codes
    draw: Codes
    chance: Floats

    @property
    def decided(self) -> Mask:
        """The votes of people who did not skip the pair."""
        given: Mask = self.verdict >= 0
        return given

    @property
    def escalated(self) -> Mask:
        """The pair was shown to people because the judge was unsure: no random draw."""
        escalated: Mask = self.origin == _ESCALATION
        return escalated

    @property
    def chosen(self) -> Mask:
        """The pair was picked for what was known of it: no random draw either."""
        chosen: Mask = self.draw == _CHOSEN
        return chosen

    @property
    def picked(self) -> Mask:
        """As `is_picked` of the store: these say nothing about other pairs, and are no labels."""
        return self.escalated | self.chosen

    @property
    def drawn_evenly(self) -> Mask:
        evenly: Mask = self.draw == _RANDOM
        return evenly

    @property
    def drawn_by_chance(self) -> Mask:
        by_chance: Mask = (self.draw == _WEIGHTED) & ~np.isnan(self.chance)
        return by_chance

    def only(self, kept: Mask) -> ItemVotes:
        columns = (each.name for each in fields(self) if each.name != "people")
        return ItemVotes(self.people, *(getattr(self, name)[kept] for name in columns))


@dataclass(frozen=True, slots=True)
class PeopleLabels:
    """What people say of each asked-for item, a row each.

    `majority` is the verdict that more people gave than any other: 0 A, 1 B, 2 TIE; -1 where
    nobody voted, and where the most given verdicts are equally many (`undecided`). `people` are
    those who voted.
    """

    majority: Codes
    undecided: Mask
    people: Integers


def item_votes(store: Store, run_id: int, numbers: Sequence[int] | NDArray[Any]) -> ItemVotes:
    return votes_on(store.votes.columns(run_id), numbers)


def votes_on(columns: VoteColumns, numbers: Sequence[int] | NDArray[Any]) -> ItemVotes:
    wanted = _numbers(numbers)
    number = np.asarray(columns.number, dtype=np.int64)
    row = np.searchsorted(wanted, number)
    kept = row < wanted.size
    kept[kept] = wanted[row[kept]] == number[kept]
    return ItemVotes(
        people=columns.people,
        row=row[kept],
        pair=np.asarray(columns.pair_id, dtype=np.int64)[kept],
        prompt=np.asarray(columns.prompt_key, dtype=np.int64)[kept],
        who=np.asarray(columns.who, dtype=np.int32)[kept],
        verdict=np.asarray(columns.verdict, dtype=np.int8)[kept],
        label=np.asarray(columns.label, dtype=np.int8)[kept],
        origin=np.asarray(columns.origin, dtype=np.int8)[kept],
        draw=np.asarray(columns.draw, dtype=np.int8)[kept],
        chance=np.asarray(columns.chance, dtype=np.float64)[kept],
    )


def majority_labels(votes: ItemVotes, numbers: Sequence[int] | NDArray[Any]) -> PeopleLabels:
    wanted = _numbers(numbers)
    decided = votes.decided
    cells = votes.row[decided] * CLASSES + votes.verdict[decided]
    counts = np.bincount(cells, minlength=wanted.size * CLASSES).reshape(-1, CLASSES)
    voters = counts.sum(axis=1)
    most = counts.max(axis=1, initial=0)
    leading = (counts == most[:, np.newaxis]).sum(axis=1)
    undecided = (voters > 0) & (leading > 1)
    majority = np.where((voters > 0) & ~undecided, counts.argmax(axis=1), NO_WINNER)
    return PeopleLabels(majority.astype(np.int8), undecided, voters.astype(np.int64))


def _numbers(numbers: Sequence[int] | NDArray[Any]) -> Integers:
    wanted = np.asarray(numbers, dtype=np.int64)
    if wanted.ndim != 1 or (np.diff(wanted) <= 0).any():
        raise InputError(Message("trust.numbers_not_ascending"))
    return wanted


# One label a pair, for learning and for figures: the data's own, or else what most people say.


@dataclass(frozen=True, slots=True)
class FairLabels:
    """By row: 0 A, 1 B, 2 TIE and -1 none; which of them are people's; and which of those are of
    pairs that were drawn by unequal chances."""

    winners: Codes
    by_people: Mask
    by_doubt: Mask


def fair_labels(
    store: Store,
    run_id: int,
    numbers: NDArray[np.int64],
    *,
    of_data: Any,
    evenly: bool = False,
) -> FairLabels:
    """`of_data` has the data's own label of each of the items, -1 where it has none.

    Votes on pairs that were chosen for what was known of them, or shown to people because a judge
    was unsure, are left out: they say nothing of other pairs. `evenly` leaves out those too that
    were drawn with unequal chances.
    """
    winners = np.array(of_data, dtype=np.int8)
    votes = item_votes(store, run_id, numbers)
    weighted = votes.draw == _WEIGHTED
    kept = votes.only(~(votes.picked | weighted) if evenly else ~votes.picked)
    voted = majority_labels(kept, numbers).majority
    by_people = (winners == NO_WINNER) & (voted != NO_WINNER)
    winners[by_people] = voted[by_people]
    unequal = kept.row[kept.decided & (kept.draw == _WEIGHTED)]
    by_doubt = by_people & np.isin(np.arange(winners.size), unequal)
    return FairLabels(winners, by_people, by_doubt)
