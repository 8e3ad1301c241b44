"""The numbers that stand for outcomes and winners in columns: the store writes them, statistics
count them.
"""

from __future__ import annotations

from evenhand.contract.verdict import Winner

WIN_A, WIN_B, TIE, INCONSISTENT, INVALID = range(5)

# Of a label, a vote or one order of a pair, whose verdicts have no fifth kind.
NO_WINNER, SAYS_A, SAYS_B, SAYS_TIE = -1, 0, 1, 2
WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")  # by code


def winner_code(winner: Winner | None) -> int:
    return NO_WINNER if winner is None else WINNERS.index(winner)
