"""The exact sign test: could a fair coin have decided like this?"""

from __future__ import annotations

import sys
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


def sign_test(wins_a: int, wins_b: int, *, by: Literal["pair", "prompt"]) -> SignTest | None:
    """None where nobody decided."""
    if wins_a + wins_b == 0:
        return None
    return SignTest(p_value=sign_test_p(wins_a, wins_b), wins_a=wins_a, wins_b=wins_b, by=by)
