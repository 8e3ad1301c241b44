"""What the single passes of an audited run come to: the counts that published tables have, passes
that a recording lacks, and how often a judge says the same when asked again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.contract.codes import INVALID, NO_WINNER, SAYS_A, SAYS_B, SAYS_TIE
from evenhand.contract.model import Model
from evenhand.messages import Message
from evenhand.stats.estimates import EstimatedShare, share_of_rows
from evenhand.stats.rates.position_bias import SPLIT
from evenhand.store import OutcomeColumns
from evenhand.store.records import PassColumns

Codes = NDArray[np.int8]
Rows = NDArray[np.bool_]


class OrderCounts(Model):
    """The labelled pairs in one order, each counted once. `tie` is a tie that the label is not;
    `split` are orders whose samples do not agree."""

    right: int
    wrong: int
    tie: int
    unread: int
    split: int


class PassCounts(Model):
    """Of the labelled pairs. `unread` have an order without a readable verdict; in a flip to the
    first, both orders took the response that was shown first."""

    original: OrderCounts
    swapped: OrderCounts
    both_right: int
    unread: int
    flips_to_first: int
    flips_to_second: int


class MissingPasses(Model):
    """Labelled pairs without a verdict because a replayed judge has no recording of a pass, and
    how many of them lack which."""

    pairs: int
    original: int
    swapped: int

    def message(self, code: str, *, of: int) -> Message:
        # One order alone can be audited where it is the original one that is there.
        one_order = self.swapped > self.original
        remedy = Message("trust.audit_one_order" if one_order else "trust.record_passes")
        lacking = {"original": self.original, "swapped": self.swapped}
        return Message(code, n=self.pairs, of=of, remedy=remedy, **lacking)


class RunPasses:
    """A judge's passes on a run, beside the rows of its outcomes."""

    def __init__(self, columns: OutcomeColumns, passes: PassColumns) -> None:
        self._number = np.asarray(columns.number, dtype=np.int64)
        self._invalid = np.asarray(columns.outcome) == INVALID
        self._both = np.asarray(columns.both_orders) == 1
        drawn = np.asarray(columns.drawn_order)
        self._drawn = drawn == 1 if drawn.size else np.zeros(self._number.size, dtype=np.bool_)
        self._chosen = tuple(
            np.array(each, dtype=np.int8) for each in (columns.first_winner, columns.second_winner)
        )
        self._order = np.asarray(passes.order)
        self._sample = np.asarray(passes.sample)
        self._winner = np.asarray(passes.winner, dtype=np.int8)
        self._prompt = np.asarray(passes.prompt_key)
        self._not_recorded = np.asarray(passes.not_recorded) == 1
        # A pair that was never judged has passes and no row.
        numbers = np.asarray(passes.number, dtype=np.int64)
        row = np.searchsorted(self._number, numbers)
        self._judged = row < self._number.size
        self._judged[self._judged] = self._number[row[self._judged]] == numbers[self._judged]
        self._row = row

    def _shown(self, order: int) -> Rows:
        """Passes are shared between runs, so that one may be there that this run did not ask."""
        shown: Rows = self._both.copy()
        if order == 0:
            shown |= ~self._drawn
        own = self._row[self._judged & (self._order == order)]
        there = np.zeros(shown.size, dtype=np.bool_)
        there[own] = True
        shown |= self._drawn & there
        return shown

    def _choices(self, order: int) -> Codes:
        """What each row chose in an order. A verdict in one order and an invalid one keep none,
        but their passes do."""
        chosen = self._chosen[order].copy()
        own = self._judged & (self._order == order) & (self._winner != NO_WINNER)
        votes = np.zeros((chosen.size, 3), dtype=np.int64)
        np.add.at(votes, (self._row[own], self._winner[own]), 1)
        most = votes.max(axis=1)
        decidable = (chosen == NO_WINNER) & (most > 0)
        alone = (votes == most[:, np.newaxis]).sum(axis=1) == 1
        chosen[decidable] = np.where(alone, votes.argmax(axis=1), SPLIT)[decidable]
        return chosen

    def counts(self, labels: Codes) -> PassCounts:
        known = labels != NO_WINNER
        shown = [known & self._shown(order) for order in (0, 1)]
        chosen = [self._choices(order) for order in (0, 1)]
        twice = shown[0] & shown[1]
        first, second = chosen

        def count(rows: Rows) -> int:
            return int(rows.sum())

        def of_order(rows: Rows, choices: Codes) -> OrderCounts:
            right = choices == labels
            return OrderCounts(
                right=count(rows & right),
                wrong=count(rows & ~right & np.isin(choices, (SAYS_A, SAYS_B))),
                tie=count(rows & ~right & (choices == SAYS_TIE)),
                unread=count(rows & (choices == NO_WINNER)),
                split=count(rows & (choices == SPLIT)),
            )

        unread = [
            rows & (choices == NO_WINNER) for rows, choices in zip(shown, chosen, strict=True)
        ]
        return PassCounts(
            original=of_order(shown[0], first),
            swapped=of_order(shown[1], second),
            both_right=count(twice & (first == labels) & (second == labels)),
            unread=count(unread[0] | unread[1]),
            flips_to_first=count(twice & (first == SAYS_A) & (second == SAYS_B)),
            flips_to_second=count(twice & (first == SAYS_B) & (second == SAYS_A)),
        )

    def missing(self, labelled: Rows) -> tuple[Rows, MissingPasses]:
        """Which labelled rows have no verdict for want of a recording, and what they lack."""
        lacking = []
        for order in (0, 1):
            rows = np.zeros(self._number.size, dtype=np.bool_)
            rows[self._row[self._judged & self._not_recorded & (self._order == order)]] = True
            lacking.append(rows & labelled & self._invalid)
        either = lacking[0] | lacking[1]
        original, swapped = (int(rows.sum()) for rows in lacking)
        return either, MissingPasses(pairs=int(either.sum()), original=original, swapped=swapped)

    def retest(self, *, level: float) -> EstimatedShare | None:
        """Two samples of the same question: how often they say the same."""
        if not self._sample.size or self._sample.max() < 2:
            return None
        order = np.lexsort((self._sample, self._order, self._row))
        asked = self._row[order] * 2 + self._order[order]
        winners, prompts = self._winner[order], self._prompt[order]
        # Neighbouring samples: the first with the second, the second with the third.
        follows = (asked[1:] == asked[:-1]) & self._judged[order][1:]
        follows &= (winners[1:] != NO_WINNER) & (winners[:-1] != NO_WINNER)
        same = (winners[1:] == winners[:-1])[follows]
        return share_of_rows(same, prompts[1:][follows], level=level, unit="repeated question")
