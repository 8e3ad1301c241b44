"""The order in which a run's pairs should be labelled, and which draw some labels came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.stats.clusters import Floats
from evenhand.stats.label_design import LabelDraw, doubts_of_confidence, draw_labels
from evenhand.store import OutcomeColumns, RunItem, Store

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
    for item in store.run_items(run_id):
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
        doubts if by_doubt else np.ones(doubts.size), 0, ids=[item.key for item in items], seed=seed
    )
    return LabelQueue(tuple(items), rows, by_doubt, drawn)
