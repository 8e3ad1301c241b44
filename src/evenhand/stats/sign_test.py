"""The exact sign test: could a fair coin have decided like this?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from scipy.special import bdtr

from evenhand.contract.model import Model
from evenhand.errors import InputError


class SignTest(Model):
    """Two-sided, on those who decided; a prompt decides by the sign of its summed score."""

    p_value: float
    wins_a: int
    wins_b: int
    by: Literal["pair", "prompt"]


def sign_test_p(wins: int, losses: int) -> float:
    """Twice the smaller tail of a fair coin, at most 1 (exact binomial).

    A p-value too small for a double is given as the smallest one: never 0.
    """
    if wins < 0 or losses < 0:
        raise InputError(f"the sign test got {wins} wins and {losses} losses; give counts")
    tail = float(bdtr(min(wins, losses), wins + losses, 0.5))
    return max(sys.float_info.min, min(1.0, 2 * tail))


def holm_adjusted(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Each p-value of a family (tags, criteria) as Holm's step-down procedure (1979) adjusts it:
    the smallest level at which that one is significant while the chance of any false finding in
    the family stays below the level, however the tests depend on each other. None stays None, and
    is no member of the family."""
    for p_value in p_values:
        if p_value is not None and not 0 <= p_value <= 1:
            raise InputError(f"a p-value is {p_value}; give numbers from 0 to 1")
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p_value, place) in enumerate(known):
        least = max(least, min(1.0, (len(known) - rank) * p_value))
        adjusted[place] = least
    return tuple(adjusted)


def sign_test(wins_a: int, wins_b: int, *, by: Literal["pair", "prompt"]) -> SignTest | None:
    """None where nobody decided."""
    if wins_a + wins_b == 0:
        return None
    return SignTest(p_value=sign_test_p(wins_a, wins_b), wins_a=wins_a, wins_b=wins_b, by=by)
