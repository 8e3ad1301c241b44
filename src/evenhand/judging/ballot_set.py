"""The ballots of a pair by order, the sequence in which text is taken from them, and what several
of them choose together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from evenhand.contract import (
    Ballot,
    CriterionBallot,
    Locale,
    Order,
    Pair,
    PositionConsistency,
    Probabilities,
    Unread,
    Winner,
    criterion_key,
)
from evenhand.messages.phrases import list_choices

# Counting and weighing: what several ballots of one order, or of both, choose.

WinnerWeights = tuple[float, float, float]  # of A, of B, of TIE


def plurality(votes: Sequence[Winner]) -> Winner | None:
    """The winner with the most votes; None where that is shared, or where there are none."""
    if len(votes) == 1:  # an order that was asked once, which is the usual one
        return votes[0]
    counts = {winner: votes.count(winner) for winner in set(votes)}
    best = max(counts.values(), default=0)
    leaders = [winner for winner, count in counts.items() if count == best]
    return leaders[0] if len(leaders) == 1 else None


def weights(probabilities: Probabilities | None, winner: Winner) -> WinnerWeights:
    if probabilities is not None:
        return probabilities.a, probabilities.b, probabilities.tie
    return float(winner == "A"), float(winner == "B"), float(winner == "TIE")


def mean(rows: Sequence[WinnerWeights]) -> WinnerWeights:
    a, b, tie = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return a, b, tie


def likeliest(mean: WinnerWeights, *, allow_tie: bool) -> Winner | None:
    """The likeliest verdict. Where A and B weigh exactly the same it is a tie, or nothing."""
    a, b, tie = mean
    if allow_tie and tie >= max(a, b):
        return "TIE"
    if a == b:
        return "TIE" if allow_tie else None
    return "A" if a > b else "B"


# The ballots of a pair, sorted by order, and the sequence in which text is taken from them.

BallotOrUnread = Ballot | Unread


def canonical(orders: tuple[Order, ...], shows_first: Order | None) -> tuple[Order, ...]:
    """The orders in a sequence that does not depend on what the caller calls A."""
    return tuple(reversed(orders)) if shows_first == "swapped" else orders


_sample = attrgetter("sample")


def _said(ballots: Iterable[Ballot]) -> dict[str, list[CriterionBallot]]:
    said: dict[str, list[CriterionBallot]] = {}
    for ballot in ballots:
        for entry in ballot.criteria:
            if entry.winner is not None:
                said.setdefault(criterion_key(entry.criterion), []).append(entry)
    return said


@dataclass(frozen=True, slots=True)
class BallotSet:
    """The ballots of a pair, by order, and the orders in the sequence that text is taken from."""

    pair: Pair
    locale: Locale
    ballots: dict[Order, tuple[Ballot, ...]]
    orders: tuple[Order, ...]
    canonical: tuple[Order, ...]
    keep_both: bool
    samples: int
    # What was said on each criterion, by its key; an entry without a winner says nothing.
    said: dict[Order, dict[str, list[CriterionBallot]]]

    @classmethod
    def of(
        cls,
        pair: Pair,
        readings: Sequence[BallotOrUnread],
        orders: tuple[Order, ...],
        locale: Locale,
        shows_first: Order | None,
    ) -> BallotSet:
        by_order: dict[Order, list[Ballot]] = {order: [] for order in orders}
        for reading in readings:
            if isinstance(reading, Ballot) and reading.order in by_order:
                by_order[reading.order].append(reading)
        for ballots in by_order.values():
            ballots.sort(key=_sample)
        return cls(
            pair=pair,
            locale=locale,
            ballots={order: tuple(ballots) for order, ballots in by_order.items()},
            orders=orders,
            canonical=canonical(orders, shows_first),
            keep_both=shows_first is None and len(orders) > 1,
            samples=max(map(_sample, readings), default=1),
            said={order: _said(ballots) for order, ballots in by_order.items()},
        )

    @property
    def all(self) -> tuple[Ballot, ...]:
        return tuple(ballot for order in self.canonical for ballot in self.ballots[order])

    @property
    def has_weights(self) -> bool:
        return self.samples > 1 or all(ballot.probabilities for ballot in self.all)

    @property
    def averages_probabilities(self) -> bool:
        return all(ballot.probabilities for ballot in self.all)

    def position(self, choices: Mapping[Order, Winner | None]) -> PositionConsistency | None:
        if len(self.orders) == 1:
            return None
        first, second = choices["original"], choices["swapped"]
        return PositionConsistency(
            first_pass_winner=first,
            second_pass_winner=second,
            consistent=first is not None and first == second,
        )

    def listed(self, choices: Mapping[Order, Winner | None]) -> str:
        return list_choices(self.locale, [(order, choices[order]) for order in self.canonical])
