"""How sure a verdict is: the signals that a calibration learns from.

Each is relative to the verdict's winner, so that swapping the responses leaves it bit-identical.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from evenhand.contract import Order, Outcome, Pair, Unread
from evenhand.judging.decision import Decision, PassBallot, Reading

SignalValues: TypeAlias = dict[str, float | None]
# 0 has no logarithm; smaller probabilities carry no information.
_LEAST_PROBABILITY = 1e-6


def signals_of(pair: Pair, readings: Sequence[Reading], decision: Decision) -> SignalValues | None:
    """None for an inconsistent verdict, whose confidence is fixed by rule."""
    if decision.outcome not in (Outcome.WIN, Outcome.TIE):
        return None
    return {
        "stated": decision.confidence if decision.confidence_source == "stated" else None,
        "margin": _margin(readings, decision),
        "scores": _towards_winner(readings, decision, _score_difference),
        "strength": _towards_winner(readings, decision, _signed_strength),
        "orders": _orders_agree(pair, decision),
        "samples": _sample_agreement(readings, decision),
        "criteria": _criteria_margin(pair, decision),
        "length": _length_difference(pair, decision),
    }


def _margin(readings: Sequence[Reading], decision: Decision) -> float | None:
    """The log ratio of the winner's mean probability to the runner-up's."""
    by_order: dict[Order, list[tuple[float, float, float]]] = {}
    for reading in readings:
        if isinstance(reading, Unread):
            continue
        shares = reading.probabilities
        if shares is None:
            return None
        by_order.setdefault(reading.order, []).append((shares.a, shares.b, shares.tie))
    if not by_order:
        return None
    # Within an order, then over the two: their sum does not depend on which comes first.
    means = [
        [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        for rows in by_order.values()
    ]
    a, b, tie = (sum(column) / len(means) for column in zip(*means, strict=True))
    own, others = {"A": (a, (b, tie)), "B": (b, (a, tie)), "TIE": (tie, (a, b))}[decision.winner]
    return math.log(max(own, _LEAST_PROBABILITY)) - math.log(max(*others, _LEAST_PROBABILITY))


def _towards_winner(
    readings: Sequence[Reading],
    decision: Decision,
    towards_a: Callable[[PassBallot], float | None],
) -> float | None:
    """The mean lean to the winner on the judge's own scale; for a tie, minus the distance from one.
    None unless every ballot has it."""
    by_order: dict[Order, list[float]] = {}
    for reading in readings:
        if isinstance(reading, Unread):
            continue
        leaning = towards_a(reading)
        if leaning is None:
            return None
        by_order.setdefault(reading.order, []).append(leaning)
    if not by_order:
        return None
    means = [sum(leanings) / len(leanings) for leanings in by_order.values()]
    mean = sum(means) / len(means)
    # Starting at 0, so that a mean of 0 has no sign.
    return {"A": mean, "B": 0.0 - mean, "TIE": 0.0 - abs(mean)}[decision.winner]


def _score_difference(ballot: PassBallot) -> float | None:
    return None if ballot.scores is None else ballot.scores.a - ballot.scores.b


def _signed_strength(ballot: PassBallot) -> float | None:
    if ballot.strength is None:
        return None
    return {"A": 1.0, "B": -1.0, "TIE": 0.0}[ballot.winner] * ballot.strength


def _orders_agree(pair: Pair, decision: Decision) -> float | None:
    """Always 1 under agreement; averaged orders may differ."""
    if not pair.swap_positions:
        return None
    first = decision.first_pass_winner
    return float(first is not None and first == decision.second_pass_winner)


def _sample_agreement(readings: Sequence[Reading], decision: Decision) -> float | None:
    """The share of all samples that name the winner, unread ones included."""
    if all(reading.sample == 1 for reading in readings):
        return None
    naming: dict[Order, list[bool]] = {}
    for reading in readings:
        named = isinstance(reading, PassBallot) and reading.winner == decision.winner
        naming.setdefault(reading.order, []).append(named)
    shares = [sum(named) / len(named) for named in naming.values()]
    return sum(shares) / len(shares)


def _criteria_margin(pair: Pair, decision: Decision) -> float | None:
    """The weight of the criteria won less those lost, as a share of those judged; for a tie, minus
    the distance from one."""
    won = {"A": 0.0, "B": 0.0, "TIE": 0.0}
    for criterion, asked in zip(decision.criteria, pair.criteria, strict=False):
        if criterion.winner is not None:
            won[criterion.winner] += 1.0 if asked.weight is None else asked.weight
    total = won["A"] + won["B"] + won["TIE"]
    if total <= 0:
        return None
    if decision.winner == "TIE":
        return -abs(won["A"] - won["B"]) / total
    other = "B" if decision.winner == "A" else "A"
    return (won[decision.winner] - won[other]) / total


def _length_difference(pair: Pair, decision: Decision) -> float | None:
    """The log ratio of the winner's length to the loser's. None for a tie."""
    lengths = {"A": len(pair.response_a), "B": len(pair.response_b)}
    if decision.winner == "TIE":
        return None
    loser = "B" if decision.winner == "A" else "A"
    return math.log1p(lengths[decision.winner]) - math.log1p(lengths[loser])
