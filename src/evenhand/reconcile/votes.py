"""Counting and weighing: what several ballots of one order, or of both, choose."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.contract import Probabilities, Winner

Weights = tuple[float, float, float]  # of A, of B, of TIE


def plurality(votes: Sequence[Winner]) -> Winner | None:
    """The winner with the most votes; None where that is shared, or where there are none."""
    if len(votes) == 1:  # an order that was asked once, which is the usual one
        return votes[0]
    counts = {winner: votes.count(winner) for winner in set(votes)}
    best = max(counts.values(), default=0)
    leaders = [winner for winner, count in counts.items() if count == best]
    return leaders[0] if len(leaders) == 1 else None


def weights(probabilities: Probabilities | None, winner: Winner) -> Weights:
    if probabilities is not None:
        return probabilities.a, probabilities.b, probabilities.tie
    return float(winner == "A"), float(winner == "B"), float(winner == "TIE")


def mean(rows: Sequence[Weights]) -> Weights:
    a, b, tie = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return a, b, tie


def likeliest(mean: Weights, *, allow_tie: bool) -> Winner | None:
    """The likeliest verdict. Where A and B weigh exactly the same it is a tie, or nothing."""
    a, b, tie = mean
    if allow_tie and tie >= max(a, b):
        return "TIE"
    if a == b:
        return "TIE" if allow_tie else None
    return "A" if a > b else "B"
