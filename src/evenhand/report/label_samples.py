"""Labels for correcting a win rate: in which order pairs are drawn, doubtful ones first by a known
chance, and which of the labels at hand come from pairs drawn by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message, Sentence, chained
from evenhand.report.votes import Codes, item_votes
from evenhand.stats.columns import Floats
from evenhand.stats.correction.corrected_rate import winner_scores
from evenhand.stats.correction.labels import (
    LabelDraw,
    doubts_of_confidence,
    draw_labels,
    joint_chances,
)
from evenhand.stats.distributions import binomial_tail
from evenhand.store import OutcomeColumns, RunItem, RunRecord, Store

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

# Chances are written and read again with all their digits.
_SAME = 1e-9
# As often as somebody may have drawn more; beyond that the chances are no queue's of ours.
_MOST_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class LabelQueue:
    """All judged pairs, the doubtful ones tending to come early. It depends on the seed, on the
    pairs' ids and on the judge's confidences, and on nobody's labels: so it is the same queue
    whenever it is made.

    Rows of the same texts are one pair, which people label once: `items` has the first of each,
    and `of_row` each verdict's place among them.
    """

    items: tuple[RunItem, ...]
    of_row: Rows
    by_doubt: bool  # else every pair had the same chance
    draw: LabelDraw

    @property
    def places(self) -> Rows:
        """Each pair's place in the queue."""
        places = np.empty(len(self.items), dtype=np.intp)
        places[self.draw.queue] = np.arange(len(self.items))
        return places

    def chances_after(self, number: int) -> Floats:
        if not self.by_doubt:
            return np.full(len(self.items), number / max(len(self.items), 1))
        return self.draw.chances_after(number)

    def drawn(self, pairs: Rows, chances: Floats) -> int | None:
        """How many pairs had been drawn when these came with these chances, in one round or
        several; None where they did not come from this queue."""
        rounds: list[int] = []
        left = np.arange(pairs.size)
        while left.size and len(rounds) < _MOST_ROUNDS:
            least = left[np.argmin(chances[left])]
            number = self._number(int(pairs[least]), float(chances[least]))
            expected = self.draw.chances_after(number)[pairs[left]]
            fits = np.abs(expected - chances[left]) <= _SAME * expected
            if not fits.any():
                return None
            rounds.append(number)
            left = left[~fits]
        if left.size or not rounds or int(self.places[pairs].max()) >= max(rounds):
            return None
        return max(rounds)

    def _number(self, pair: int, chance: float) -> int:
        """The fewest draws that give the pair this chance: chances grow with the draws."""
        low, high = 0, len(self.items)
        while low < high:
            middle = (low + high) // 2
            if self.draw.chances_after(middle)[pair] < chance * (1 - _SAME):
                low = middle + 1
            else:
                high = middle
        return low


def label_queue(store: Store, run_id: int, columns: OutcomeColumns, *, seed: int) -> LabelQueue:
    judged = set(columns.number)
    places: dict[int, int] = {}
    items: list[RunItem] = []
    of_row: list[int] = []
    for item in store.items.all(run_id):
        if item.number in judged:
            of_row.append(places.setdefault(item.pair_id, len(items)))
            if of_row[-1] == len(items):
                items.append(item)
    rows = np.array(of_row, dtype=np.intp)
    first = np.unique(rows, return_index=True)[1]
    confidence = np.asarray(columns.confidence, dtype=np.float64)[first]
    known = ~np.isnan(confidence)
    doubts = doubts_of_confidence(np.where(known, confidence, 0.5), read=known)
    by_doubt = bool(doubts.size) and bool((doubts != doubts[0]).any())
    drawn = draw_labels(
        doubts if by_doubt else np.ones(doubts.size), ids=[item.key for item in items], seed=seed
    )
    return LabelQueue(tuple(items), rows, by_doubt, drawn)


# Which labels count, and by which chances.

Drawn = Literal["every pair", "at random", "with known chances"]

_UNKNOWN_DRAW = -1
_HARDLY_BY_CHANCE = 0.001


class LeftOut(Model):
    """Labels that have no part in a corrected rate."""

    reason: Sentence
    labels: int
    pairs: int


@dataclass(frozen=True, slots=True)
class LabelSample:
    """Labels that count, or would if they were `decided`; a row is a place among the verdicts.

    `chances` are of all pairs, where they differ. `escalated` ones are there to be counted.
    """

    rows: Rows
    scores: Floats  # A's
    decided: Mask
    escalated: Mask
    chances: Floats | None
    drawn: Drawn
    people: int
    left_out: tuple[LeftOut, ...]
    notes: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """Every label there is: the votes, then the data's own, by how their pairs were drawn."""

    rows: Rows
    winners: Codes
    chance: Floats
    escalated: Mask
    even: Mask
    weighted: Mask
    chosen: Mask
    untold: Mask
    of_data: Mask
    who: NDArray[np.int32]  # -1 for the data's own

    @property
    def usable(self) -> Mask:
        return self.even | self.weighted

    @property
    def decided(self) -> Mask:
        given: Mask = self.winners >= 0
        return given


def read_labels(
    store: Store, run_id: int, columns: OutcomeColumns, *, are_random: bool = False
) -> Labels:
    """`are_random` is the user's word for the data's labels, and for votes that do not say."""
    votes = item_votes(store, run_id, np.asarray(columns.number, dtype=np.int64))
    label = np.asarray(columns.label, dtype=np.int8)
    own = np.flatnonzero(label >= 0)
    escalated = votes.escalated
    untold = ~escalated & (votes.draw == _UNKNOWN_DRAW)
    even = ~escalated & votes.drawn_evenly
    weighted = ~escalated & votes.drawn_by_chance
    chosen = ~(escalated | untold | even | weighted)
    if are_random:
        even, untold = even | untold, np.zeros_like(untold)

    def with_data(of_votes: NDArray[np.bool_], of_data: bool) -> Mask:
        return np.concatenate([of_votes, np.full(own.size, of_data)])

    return Labels(
        rows=np.concatenate([votes.row, own]).astype(np.intp),
        winners=np.concatenate([votes.verdict, label[own]]).astype(np.int8),
        chance=np.concatenate([votes.chance, np.full(own.size, np.nan)]),
        escalated=with_data(escalated, False),
        even=with_data(even, are_random),
        weighted=with_data(weighted, False),
        chosen=with_data(chosen, False),
        untold=with_data(untold, not are_random),
        of_data=with_data(np.zeros_like(even), True),
        who=np.concatenate([votes.who, np.full(own.size, -1)]).astype(np.int32),
    )


def sample_labels(
    store: Store,
    run: RunRecord,
    columns: OutcomeColumns,
    *,
    are_random: bool = False,
    seed: int = 0,
) -> LabelSample:
    """Refused where no label is of a pair that was drawn by a known chance."""
    labels = read_labels(store, run.id, columns, are_random=are_random)
    pairs = len(columns.number)
    usable = labels.usable
    # Where every pair has a label nothing hangs on how they were drawn. The data's own comes first,
    # as in an audit.
    whole = 0 < pairs == np.unique(labels.rows[labels.decided]).size
    beside = np.zeros_like(usable)
    if whole:
        beside = np.isin(labels.rows, labels.rows[labels.of_data]) & ~labels.of_data
        usable = ~beside
    elif not (usable & labels.decided).any():
        raise InputError(_refusal(run.name, labels))
    notes: list[str] = []
    chances, otherwise = None, np.zeros_like(usable)
    if not whole and (labels.weighted & labels.decided).any():
        queue = label_queue(store, run.id, columns, seed=seed)
        chances, otherwise = _chances(labels, queue, pairs, notes)
        usable = usable & ~otherwise
    if not whole:
        notes += _not_of_this_run(store, run, columns, np.unique(labels.rows[usable & labels.even]))
    escalated = labels.escalated & ~usable
    kept = usable | escalated
    scores, decided = winner_scores(labels.winners[kept])
    drawn: Drawn = "every pair" if whole else "at random"
    left = {
        "trust.left_out_beside": beside,
        "trust.left_out_escalated": escalated & ~beside,
        "trust.left_out_chosen": labels.chosen & ~usable & ~beside,
        "trust.left_out_draw_unknown": labels.untold & ~labels.of_data & ~usable & ~beside,
        "trust.left_out_data": labels.untold & labels.of_data & ~usable,
        "trust.left_out_drawn_otherwise": otherwise,
        "trust.left_out_skipped": usable & ~labels.decided,
    }
    return LabelSample(
        rows=labels.rows[kept],
        scores=scores,
        decided=decided,
        escalated=escalated[kept],
        chances=chances,
        drawn=drawn if chances is None else "with known chances",
        people=int(np.unique(labels.who[usable & labels.decided & ~labels.of_data]).size),
        left_out=tuple(
            LeftOut(
                reason=Message(code),
                labels=int(mask.sum()),
                pairs=int(np.unique(labels.rows[mask]).size),
            )
            for code, mask in left.items()
            if mask.any()
        ),
        notes=tuple(notes),
    )


def _chances(
    labels: Labels, queue: LabelQueue, pairs: int, notes: list[str]
) -> tuple[Floats | None, Mask]:
    """Every pair's chance of a label, and which labels cannot be joined with the others.

    The queue knows the chances of all pairs, so that an even draw beside it can be joined, and
    that what was drawn in several rounds counts by the last. Chances of another source are taken
    as they are told.
    """
    weighted, even = labels.weighted & labels.decided, labels.even & labels.decided
    none = np.zeros_like(weighted)
    of_label = queue.of_row[labels.rows]
    drawn = queue.drawn(of_label[weighted], labels.chance[weighted])
    if drawn is not None:
        answered = np.zeros(len(queue.items), dtype=np.bool_)
        answered[of_label[weighted | even]] = True
        in_order = answered[queue.draw.queue[:drawn]]
        first_gap = drawn if in_order.all() else int(np.argmin(in_order))
        if int(queue.places[of_label[weighted]].max()) < first_gap:
            drawn = first_gap  # people stopped on the way, and left nothing out
        else:
            missing = int((~in_order).sum())
            notes.append(Message("trust.drawn_without_verdict", drawn=drawn, n=missing))
        chances = queue.chances_after(drawn)
        if even.any():
            share = np.unique(of_label[even]).size / len(queue.items)
            chances = joint_chances(chances, np.full(len(queue.items), share))
        return chances[queue.of_row], none
    notes.append(Message("trust.chances_of_votes"))
    if np.unique(labels.rows[even]).size > np.unique(labels.rows[weighted]).size:
        return None, labels.weighted
    chances = np.ones(pairs)
    chances[labels.rows[weighted]] = labels.chance[weighted]
    return chances, labels.even


def _not_of_this_run(
    store: Store, run: RunRecord, columns: OutcomeColumns, drawn: Rows
) -> Iterator[str]:
    """Votes are on pairs, whichever run they were drawn from. What a cascade's first judge left is
    a run of its own, and an even draw from that is none from all pairs."""
    if not drawn.size:
        return
    for other in store.runs.all():
        if other.sources != (f"{run.name}-left",):
            continue
        numbers = np.asarray(columns.number, dtype=np.int64)
        left = np.isin(numbers, store.items.shared(run.id, other.id)[0])
        inside = int(left[drawn].sum())
        # The chance of so many or more; a draw without putting back has a smaller one still.
        if inside and binomial_tail(inside - 1, drawn.size, float(left.mean())) < _HARDLY_BY_CHANCE:
            yield Message(
                "trust.drawn_from_another_run",
                inside=inside,
                drawn=drawn.size,
                run=other.name,
                percent=100 * float(left.mean()),
            )


def _refusal(run: str, labels: Labels) -> str:
    if labels.usable.any():
        return Message("trust.drawn_unlabelled", run=run)
    if not labels.rows.size:
        return Message("trust.nothing_labelled", run=run)
    kinds = {
        "trust.labels_of_data": labels.of_data,
        "trust.labels_of_people": labels.untold & ~labels.of_data,
        "trust.labels_chosen": labels.chosen,
        "trust.labels_escalated": labels.escalated,
    }
    counted = chained(Message(code, n=int(has.sum())) for code, has in kinds.items() if has.any())
    code = "trust.draw_unknown" if labels.untold.any() else "trust.not_drawn_at_random"
    return Message(code, run=run, labels=counted)
