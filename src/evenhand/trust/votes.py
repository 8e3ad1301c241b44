"""People's votes on the items of a run: each vote, or the majority's word, as arrays.

Rows are aligned to item numbers, as those of `store.outcome_columns` are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.store import DRAWS, ORIGINS, Store, VoteColumns

NO_WINNER = -1
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
    def told(self) -> Mask:
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
    nobody voted, and where the most given verdicts are equally many (`undecided`). `shares` are
    those of A, B and TIE among the `people` who voted, NaN where nobody did.
    """

    number: Integers
    majority: Codes
    undecided: Mask
    shares: Floats  # a row an item, a column each for A, B and TIE
    people: Integers
    skipped: Integers

    @property
    def score_a(self) -> Floats:
        """A's mean score among people, a tie being half; NaN where nobody voted."""
        score: Floats = self.shares[:, 0] + self.shares[:, 2] / 2
        return score


def item_votes(
    store: Store,
    run_id: int,
    numbers: Sequence[int] | NDArray[Any],
    *,
    people: Collection[str] | None = None,
    escalated: bool = True,
) -> ItemVotes:
    """The votes on these items, of all people or of those named; `escalated` ones too or not."""
    return votes_on(store.vote_columns(run_id), numbers, people=people, escalated=escalated)


def people_labels(
    store: Store,
    run_id: int,
    numbers: Sequence[int] | NDArray[Any],
    *,
    people: Collection[str] | None = None,
    escalated: bool = True,
) -> PeopleLabels:
    """The majority's word on these items, e.g. on `outcome_columns(run_id, judge_id).number`."""
    found = item_votes(store, run_id, numbers, people=people, escalated=escalated)
    return majority_labels(found, numbers)


def votes_on(
    columns: VoteColumns,
    numbers: Sequence[int] | NDArray[Any],
    *,
    people: Collection[str] | None = None,
    escalated: bool = True,
) -> ItemVotes:
    wanted = _numbers(numbers)
    number = np.asarray(columns.number, dtype=np.int64)
    row = np.searchsorted(wanted, number)
    kept = row < wanted.size
    kept[kept] = wanted[row[kept]] == number[kept]
    who = np.asarray(columns.who, dtype=np.int32)
    origin = np.asarray(columns.origin, dtype=np.int8)
    if people is not None:
        named = [place for place, name in enumerate(columns.people) if name in set(people)]
        kept &= np.isin(who, named)
    if not escalated:
        kept &= origin != _ESCALATION
    return ItemVotes(
        people=columns.people,
        row=row[kept],
        pair=np.asarray(columns.pair_id, dtype=np.int64)[kept],
        prompt=np.asarray(columns.prompt_key, dtype=np.int64)[kept],
        who=who[kept],
        verdict=np.asarray(columns.verdict, dtype=np.int8)[kept],
        label=np.asarray(columns.label, dtype=np.int8)[kept],
        origin=origin[kept],
        draw=np.asarray(columns.draw, dtype=np.int8)[kept],
        chance=np.asarray(columns.chance, dtype=np.float64)[kept],
    )


def majority_labels(votes: ItemVotes, numbers: Sequence[int] | NDArray[Any]) -> PeopleLabels:
    wanted = _numbers(numbers)
    told = votes.told
    cells = votes.row[told] * CLASSES + votes.verdict[told]
    counts = np.bincount(cells, minlength=wanted.size * CLASSES).reshape(-1, CLASSES)
    voters = counts.sum(axis=1)
    most = counts.max(axis=1, initial=0)
    leading = (counts == most[:, np.newaxis]).sum(axis=1)
    undecided = (voters > 0) & (leading > 1)
    majority = np.where((voters > 0) & ~undecided, counts.argmax(axis=1), NO_WINNER)
    shares = np.full(counts.shape, np.nan)
    np.divide(counts, voters[:, np.newaxis], out=shares, where=voters[:, np.newaxis] > 0)
    return PeopleLabels(
        number=wanted,
        majority=majority.astype(np.int8),
        undecided=undecided,
        shares=shares,
        people=voters.astype(np.int64),
        skipped=np.bincount(votes.row[~told], minlength=wanted.size).astype(np.int64),
    )


def _numbers(numbers: Sequence[int] | NDArray[Any]) -> Integers:
    wanted = np.asarray(numbers, dtype=np.int64)
    if wanted.ndim != 1 or (np.diff(wanted) <= 0).any():
        raise InputError("the item numbers do not ascend; give each once, in ascending order")
    return wanted
