"""The numbers that stand for outcomes and winners in columns, and how many there are of each: the
store writes them, statistics count them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from evenhand.contract.model import Model
from evenhand.contract.verdict import Winner

WIN_A, WIN_B, TIE, INCONSISTENT, INVALID = range(5)

# A label, a vote or a single order has no fifth outcome.
NO_WINNER, SAYS_A, SAYS_B, SAYS_TIE = -1, 0, 1, 2
WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")  # by code


class OutcomeCounts(Model):
    """How many pairs had each outcome."""

    wins_a: int
    wins_b: int
    ties: int
    inconsistent: int
    invalid: int

    @property
    def valid(self) -> int:
        return self.wins_a + self.wins_b + self.ties + self.inconsistent

    @property
    def outcomes(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in OUTCOMES}

    @classmethod
    def of_codes(cls, totals: Iterable[Any], **known: Any) -> Self:
        return cls(**dict(zip(OUTCOMES, map(int, totals), strict=True)), **known)


OUTCOMES = tuple(OutcomeCounts.model_fields)  # by code


def winner_code(winner: Winner | None) -> int:
    return NO_WINNER if winner is None else WINNERS.index(winner)
