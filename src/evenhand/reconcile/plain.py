"""The usual pair: one vote an order, and agreement decides. What `agree` comes to, without a box.

`tests/test_facts.py` holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from evenhand.contract import ConfidenceSource, Order, Outcome, Pair, Vote, Winner
from evenhand.reconcile.box import Reading
from evenhand.reconcile.criterion import Criterion
from evenhand.reconcile.decision import Decision


def decide_plainly(pair: Pair, readings: Sequence[Reading | Vote]) -> Decision | None:
    """None where it takes more than this: samples, an unread pass, or a tie that may not be."""
    votes = [each for each in readings if isinstance(each, Vote)]
    if len(votes) != len(readings) or len(votes) != (2 if pair.swap_positions else 1):
        return None
    first, last = votes[0], votes[-1]
    if first.order != "original" or first.sample != 1 or last.sample != 1:
        return None
    if pair.swap_positions and last.order != "swapped":
        return None
    agreed = first.winner == last.winner
    if not agreed and not pair.allow_tie:
        return None
    choices: dict[Order, Winner | None] = {vote.order: vote.winner for vote in votes}
    second = last if pair.swap_positions else None
    criteria = _criteria(first.criteria, second.criteria if second else None)
    if not agreed:
        return Decision(
            winner="TIE",
            outcome=Outcome.INCONSISTENT,
            confidence=0.5,
            confidence_source="rule",
            choices=choices,
            criteria=criteria,
            note="inconsistent",
        )
    confidence, source = _mean_confidence(first, last)
    return Decision(
        winner=first.winner,
        outcome=Outcome.TIE if first.winner == "TIE" else Outcome.WIN,
        confidence=confidence,
        confidence_source=source,
        choices=choices,
        criteria=criteria,
    )


def _mean_confidence(first: Vote, last: Vote) -> tuple[float | None, ConfidenceSource]:
    if first.confidence is None or last.confidence is None:
        return None, "none"
    # A single order is both of them, and its mean with itself is what it says, to the last bit.
    return min(1.0, (first.confidence + last.confidence) / 2), "stated"


_Won = tuple[tuple[str, Winner], ...]


# A run's criteria are few, and so are the ways in which they can come out.
@lru_cache(maxsize=1024)
def _criteria(first: _Won, second: _Won | None) -> tuple[Criterion, ...]:
    """Both in the caller's order, and each with all criteria: so a vote is read."""
    if second is None:
        return tuple([_criterion(name, {"original": won}) for name, won in first])
    return tuple(
        [
            _criterion(name, {"original": won, "swapped": then})
            for (name, won), (_, then) in zip(first, second, strict=True)
        ]
    )


def _criterion(name: str, choices: dict[Order, Winner | None]) -> Criterion:
    named = set(choices.values())
    winner = choices["original"] if len(named) == 1 else "TIE"
    if len(named) > 1:
        outcome = Outcome.INCONSISTENT
    else:
        outcome = Outcome.TIE if winner == "TIE" else Outcome.WIN
    return Criterion(name, winner, outcome, choices, spoken={})
