"""Asking a person for votes: which pairs, in which order, which response first, and going on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from evenhand.contract import Order, Pair, Winner
from evenhand.contract.codes import INCONSISTENT, TIE, WINNERS
from evenhand.data.votes import DrawnRow
from evenhand.errors import DataError, InputError
from evenhand.messages import Message
from evenhand.stats.seeded_order import order_key
from evenhand.store import (
    DRAWS,
    ORIGINS,
    Draw,
    NewVote,
    Origin,
    RunItem,
    RunRecord,
    Store,
    VoteColumns,
)
from evenhand.store.records import UNKNOWN_DRAW, is_picked

PairSelection = Literal["random", "unlabelled", "inconsistent", "disagreements", "abstained"]
# What a person says of the responses as they are shown.
Choice = Literal["first", "second", "tie", "skip"]
_AS_SHOWN: dict[Order, dict[Choice, Winner | None]] = {
    "original": {"first": "A", "second": "B", "tie": "TIE", "skip": None},
    "swapped": {"first": "B", "second": "A", "tie": "TIE", "skip": None},
}


def winner_of(choice: Choice, order: Order) -> Winner | None:
    """A choice between the responses as shown, in the pair's own letters; None is a skip."""
    return _AS_SHOWN[order][choice]


@dataclass(frozen=True, slots=True)
class QueuedPair:
    """A pair in a person's queue, and the order in which its responses are shown."""

    number: int
    pair_id: int
    order: Order
    draw: Draw | None = None
    chance: float | None = None
    origin: Origin = "terminal"


def refuse_forgotten_texts(run: RunRecord) -> None:
    """Nobody can vote on `(forgotten)`. Names no run: voters are told no names."""
    if run.texts_forgotten:
        raise InputError(Message("trust.texts_forgotten"))


class Labelling:
    """One person's way through a run. What is voted is stored at once, so that a new one made in
    the same way goes on where the last one stopped."""

    def __init__(
        self,
        store: Store,
        run_id: int,
        who: str,
        *,
        queue: tuple[QueuedPair, ...],
        voted: Collection[int] | None = None,
    ) -> None:
        """`voted` are the pairs that need not be asked: all that the person has voted on, unless
        they are told."""
        run = store.runs.at(run_id)
        if run is not None:
            refuse_forgotten_texts(run)
        self._store = store
        self._run_id = run_id
        self._who = who
        if voted is None:
            voted = _voted(store.votes.columns(run_id), who)
        self._voted = set(voted)
        self._at = 0
        self.queue = queue

    @property
    def voted(self) -> int:
        """How many pairs of the queue the person has voted on, or skipped."""
        return sum(asked.pair_id in self._voted for asked in self.queue)

    def next(self) -> QueuedPair | None:
        """The pair to show now; None where all are voted on."""
        while self._at < len(self.queue) and self.queue[self._at].pair_id in self._voted:
            self._at += 1
        return self.queue[self._at] if self._at < len(self.queue) else None

    def pair(self, asked: QueuedPair) -> Pair:
        """With its responses as they are to be shown."""
        pair = self._store.items.pair(self._run_id, asked.number)
        if pair is None:
            raise InputError(Message("trust.run_deleted_votes_kept"))
        if asked.order == "original":
            return pair
        turned = {"response_a": pair.response_b, "response_b": pair.response_a}
        return pair.model_copy(update=turned)

    def vote(self, asked: QueuedPair, choice: Choice) -> None:
        vote = NewVote(
            pair_id=asked.pair_id,
            who=self._who,
            verdict=winner_of(choice, asked.order),
            origin=asked.origin,
            draw=asked.draw,
            chance=asked.chance,
            shown_order=asked.order,
        )
        self._store.votes.add([vote])
        self._voted.add(asked.pair_id)

    def undo(self) -> bool:
        """Take back the vote before this pair, which is then asked again; whether there was one."""
        for place in range(self._at - 1, -1, -1):
            asked = self.queue[place]
            if asked.pair_id in self._voted:
                self._store.votes.withdraw(asked.pair_id, self._who)
                self._voted.discard(asked.pair_id)
                self._at = place
                return True
        return False


def begin_labelling(
    store: Store,
    run_id: int,
    who: str,
    *,
    only: PairSelection = "random",
    number: int | None = None,
    seed: int = 0,
) -> Labelling:
    """The first `number` pairs of a random order that the seed names, the same for everybody; a
    person's own votes change nothing about which pairs these are."""
    firsts: dict[int, RunItem] = {}
    of_pair: dict[int, int] = {}
    for item in store.items.all(run_id):
        firsts.setdefault(item.pair_id, item)
        of_pair[item.number] = item.pair_id
    wanted = _chosen(store, run_id, who, firsts, of_pair, only=only)
    ordered = sorted(
        (firsts[pair_id] for pair_id in wanted),
        key=lambda item: (order_key(item.key, seed=seed), item.number),
    )
    draw: Draw = "random" if only == "random" else "chosen"
    # What comes to people because a judge was unsure is known as that, and kept out of figures
    # that need a fair draw.
    origin: Origin = "escalation" if only == "abstained" else "terminal"
    queue = tuple(
        QueuedPair(
            item.number, item.pair_id, side_for(item.key, who, seed=seed), draw=draw, origin=origin
        )
        for item in ordered[:number]
    )
    return Labelling(store, run_id, who, queue=queue)


def begin_drawn(
    store: Store,
    run_id: int,
    who: str,
    *,
    rows: Iterable[DrawnRow],
    number: int | None = None,
    seed: int = 0,
) -> Labelling:
    """The first `number` pairs of a draw from the top, which is the order that its chances hold
    for. A vote that the person gave before counts as given only if it came by a fair draw too:
    one on a chosen pair is asked for again, and is then one of this draw."""
    by_key = {item.key: item for item in store.items.all(run_id)}
    queue: dict[int, QueuedPair] = {}
    for row in rows:
        item = by_key.get(row.pair)
        if item is None:
            raise DataError(Message("trust.row_pair_unknown", row=row.row, pair=row.pair[:40]))
        asked = QueuedPair(
            item.number,
            item.pair_id,
            side_for(item.key, who, seed=seed),
            draw=row.draw,
            chance=row.chance,
            origin="escalation" if row.origin == "escalation" else "terminal",
        )
        queue.setdefault(item.pair_id, asked)
    wanted = tuple(queue.values())[:number]
    columns = store.votes.columns(run_id)
    voted = _voted(columns, who)
    if any(asked.draw not in (None, "chosen") for asked in wanted):
        voted &= _fairly_drawn(columns, who)
    return Labelling(store, run_id, who, queue=wanted, voted=voted)


def _fairly_drawn(columns: VoteColumns, who: str) -> set[int]:
    votes = zip(columns.pair_id, columns.who, columns.draw, columns.origin, strict=True)
    return {
        pair_id
        for pair_id, person, draw, origin in votes
        if columns.people[person] == who
        and draw != UNKNOWN_DRAW
        and not is_picked(ORIGINS[origin], DRAWS[draw])
    }


def side_for(key: str, who: str, *, seed: int) -> Order:
    """At random for each person, so that a liking for the first place cancels out."""
    return "swapped" if order_key(f"side\0{who}\0{key}", seed=seed) & 1 else "original"


def _chosen(
    store: Store,
    run_id: int,
    who: str,
    firsts: dict[int, RunItem],
    of_pair: dict[int, int],
    *,
    only: PairSelection,
) -> Iterable[int]:
    if only == "random":
        return firsts
    others = _others_say(store.votes.columns(run_id), who)
    if only == "unlabelled":
        return [
            pair_id
            for pair_id, item in firsts.items()
            if item.label is None and pair_id not in others
        ]
    if only == "abstained":
        from evenhand.report.abstentions import unsettled_items

        unsettled = {of_pair[number] for number in unsettled_items(store, run_id)}
        return [pair_id for pair_id in firsts if pair_id in unsettled]
    verdicts: dict[int, set[int]] = {pair_id: set() for pair_id in firsts}
    for judge in store.runs.judges(run_id):
        columns = store.columns.outcomes(run_id, judge.id).asked()
        for number, outcome in zip(columns.number, columns.outcome, strict=True):
            verdicts[of_pair[number]].add(outcome)
    if only == "inconsistent":
        return [pair_id for pair_id, outcomes in verdicts.items() if INCONSISTENT in outcomes]
    return [
        pair_id
        for pair_id, outcomes in verdicts.items()
        if _disagree(outcomes, firsts[pair_id].label, others.get(pair_id))
    ]


def _disagree(outcomes: set[int], label: Winner | None, votes: Counter[int] | None) -> bool:
    """Judges with each other, or one with the label, or else with what most others say."""
    winners = {outcome for outcome in outcomes if outcome <= TIE}
    if not winners:
        return False
    if label is not None:
        winners.add(WINNERS.index(label))
    elif votes:
        (most, count), *rest = votes.most_common()
        if not rest or rest[0][1] < count:
            winners.add(most)
    return len(winners) > 1


def _voted(columns: VoteColumns, who: str) -> set[int]:
    if who not in columns.people:
        return set()
    own = columns.people.index(who)
    return {
        pair_id
        for pair_id, person in zip(columns.pair_id, columns.who, strict=True)
        if person == own
    }


def _others_say(columns: VoteColumns, who: str) -> dict[int, Counter[int]]:
    """How often other people gave each verdict on each pair; rows of one pair are its one vote."""
    counts: dict[int, Counter[int]] = {}
    seen: set[tuple[int, int]] = set()
    for pair_id, person, verdict in zip(columns.pair_id, columns.who, columns.verdict, strict=True):
        if verdict < 0 or columns.people[person] == who or (pair_id, person) in seen:
            continue
        seen.add((pair_id, person))
        counts.setdefault(pair_id, Counter())[verdict] += 1
    return counts
