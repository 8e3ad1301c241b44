"""The ballots of a pair, sorted by order, and the sequence in which text is taken from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.contract import Ballot, Locale, Order, Pair, PositionConsistency, Unread, Winner
from evenhand.phrases import list_choices

Reading = Ballot | Unread


def canonical(orders: tuple[Order, ...], shows_first: Order | None) -> tuple[Order, ...]:
    """The orders in a sequence that does not depend on what the caller calls A."""
    return tuple(reversed(orders)) if shows_first == "swapped" else orders


@dataclass(frozen=True, slots=True)
class Box:
    """The ballots of a pair, by order, and the orders in the sequence that text is taken from."""

    pair: Pair
    locale: Locale
    ballots: dict[Order, tuple[Ballot, ...]]
    orders: tuple[Order, ...]
    canonical: tuple[Order, ...]
    keep_both: bool
    samples: int

    @classmethod
    def of(
        cls,
        pair: Pair,
        readings: Sequence[Reading],
        orders: tuple[Order, ...],
        locale: Locale,
        shows_first: Order | None,
    ) -> Box:
        ballots: dict[Order, tuple[Ballot, ...]] = {
            order: tuple(
                sorted(
                    (r for r in readings if isinstance(r, Ballot) and r.order == order),
                    key=lambda ballot: ballot.sample,
                )
            )
            for order in orders
        }
        return cls(
            pair=pair,
            locale=locale,
            ballots=ballots,
            orders=orders,
            canonical=canonical(orders, shows_first),
            keep_both=shows_first is None and len(orders) > 1,
            samples=max((reading.sample for reading in readings), default=1),
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

    def position(self, choices: dict[Order, Winner | None]) -> PositionConsistency | None:
        if len(self.orders) == 1:
            return None
        first, second = choices["original"], choices["swapped"]
        return PositionConsistency(
            first_pass_winner=first,
            second_pass_winner=second,
            consistent=first is not None and first == second,
        )

    def listed(self, choices: dict[Order, Winner | None]) -> str:
        return list_choices(self.locale, [(order, choices[order]) for order in self.canonical])
