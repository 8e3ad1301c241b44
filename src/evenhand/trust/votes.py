"""People's votes on a run: as arrays aligned to its items, as one label for each pair, and summed
up (who voted, how far people agree).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import NO_WINNER
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.report.lookup import find_run
from evenhand.stats.agreement.raters import RaterAgreement, agreement_among
from evenhand.stats.estimates import EstimatedShare, estimate_share
from evenhand.store import DRAWS, ORIGINS, Store, VoteColumns

# Rows are aligned to item numbers, as those of `store.outcome_columns` are.

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
    return votes_on(store.vote_columns(run_id), numbers)


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


# What people's votes on a run come to: who voted, how far they agree, what the majority says.


class VerdictCounts(Model):
    """How many pairs came to each verdict; `none` are those that are equally divided."""

    a: int
    b: int
    tie: int
    none: int


class PersonSummary(Model):
    """One person, and how often others who voted on the same pairs say the same."""

    who: str
    votes: int
    skipped: int
    agreement: EstimatedShare


class VotesSummary(Model):
    """The votes on a run's pairs. Rows of the same pair count once.

    `agreement` is over every two people who voted on the same pair. `with_label` is how often the
    majority says what the data file's own label says. `by_origin` and `by_draw` count votes; a
    draw that nobody knows is `unknown`.
    """

    run: str
    pairs: int
    voted_pairs: int
    people: tuple[PersonSummary, ...]
    votes: int
    skipped: int
    people_a_pair: tuple[int, ...]  # how many pairs have one person's vote, two people's, …
    majority: VerdictCounts
    agreement: RaterAgreement
    with_label: EstimatedShare
    by_origin: dict[str, int]
    by_draw: dict[str, int]
    level: float
    seed: int


def sum_up_votes(summary: VotesSummary) -> Message:
    """In a sentence: who voted on how much, and how far they agree."""
    counts = {"people": len(summary.people), "n": summary.voted_pairs, "pairs": summary.pairs}
    share = summary.agreement.agreement
    if not summary.votes:
        return Message("trust.votes_none")
    if share.value is None or share.low is None or share.high is None:
        return Message("trust.votes_unknown", reason=share.reason or "", **counts)
    low, high = 100 * share.low, 100 * share.high
    return Message("trust.votes_agree", share=share.value, low=low, high=high, **counts)


def summarise_votes(store: Store, name: str, *, level: float = 0.95, seed: int = 0) -> VotesSummary:
    run = find_run(store, name)
    firsts: dict[int, int] = {}
    for item in store.run_items(run.id):
        firsts.setdefault(item.pair_id, item.number)
    numbers = np.array(sorted(firsts.values()), dtype=np.int64)
    votes = item_votes(store, run.id, numbers)
    labels = majority_labels(votes, numbers)
    given = votes.decided
    agreement = agreement_among(
        votes.pair[given],
        votes.verdict[given],
        prompts=votes.prompt[given],
        level=level,
        seed=seed,
    )
    decided = labels.majority[labels.people > 0]
    spread = np.bincount(labels.people)[1:]
    return VotesSummary(
        run=run.name,
        pairs=numbers.size,
        voted_pairs=int((labels.people > 0).sum()),
        people=_each_person(votes, level=level),
        votes=int(given.sum()),
        skipped=int((~given).sum()),
        people_a_pair=tuple(int(count) for count in spread),
        majority=VerdictCounts(
            a=int((decided == 0).sum()),
            b=int((decided == 1).sum()),
            tie=int((decided == 2).sum()),
            none=int((decided == -1).sum()),
        ),
        agreement=agreement,
        with_label=_with_label(votes, labels.majority, level=level),
        by_origin=_counted(votes.origin, ORIGINS),
        by_draw=_counted(votes.draw, (*DRAWS, "unknown")),
        level=level,
        seed=seed,
    )


def _counted(codes: Codes, names: tuple[str, ...]) -> dict[str, int]:
    """By name, where there are any; -1 is the last of the names."""
    counts = np.bincount(codes % len(names), minlength=len(names))
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}


def _with_label(votes: ItemVotes, majority: Codes, *, level: float) -> EstimatedShare:
    """Over pairs that have both a label and a majority."""
    rows, firsts = np.unique(votes.row, return_index=True)
    label, prompt = votes.label[firsts], votes.prompt[firsts]
    both = (label >= 0) & (majority[rows] >= 0)
    same = (label == majority[rows])[both].astype(np.float64)
    return _share(same, np.ones(same.size), prompt[both], level=level, unit="labelled pair")


def _each_person(votes: ItemVotes, *, level: float) -> tuple[PersonSummary, ...]:
    decided = votes.decided
    rows = int(votes.row.max(initial=-1)) + 1
    counts = np.bincount(
        votes.row[decided] * CLASSES + votes.verdict[decided], minlength=rows * CLASSES
    ).reshape(-1, CLASSES)
    voters = counts.sum(axis=1)
    people = []
    for place, who in enumerate(votes.people):
        own = votes.who == place
        mine = own & decided
        others = (voters[votes.row[mine]] - 1).astype(np.float64)
        same = (counts[votes.row[mine], votes.verdict[mine]] - 1).astype(np.float64)
        shared = others > 0
        people.append(
            PersonSummary(
                who=who,
                votes=int(mine.sum()),
                skipped=int((own & ~decided).sum()),
                agreement=_share(
                    same[shared],
                    others[shared],
                    votes.prompt[mine][shared],
                    level=level,
                    unit="shared vote",
                ),
            )
        )
    people.sort(key=lambda person: (-person.votes, person.who))
    return tuple(people)


def _share(
    part: Floats, of: Floats, prompts: Integers, *, level: float, unit: str
) -> EstimatedShare:
    """Rows of one prompt are no more independent than several people's votes on one pair."""
    cluster = np.unique(prompts, return_inverse=True)[1]
    groups = int(cluster.max(initial=-1)) + 1
    whole: Floats = np.bincount(cluster, weights=of, minlength=groups).astype(np.float64)
    own: Floats = np.bincount(cluster, weights=part, minlength=groups).astype(np.float64)
    return estimate_share(
        own, whole - own, independent=bool((whole <= 1).all()), level=level, unit=unit
    )
