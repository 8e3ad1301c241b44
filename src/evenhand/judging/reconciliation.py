"""Ballots become a decision, by agreement of the two orders or by their mean probability. Pure: the
same ballots give the same decision, and mirrored ballots the mirrored one. Nothing here may prefer
the first pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import TypeVar

from evenhand import contract
from evenhand.contract import (
    ConfidenceSource,
    DecidedBy,
    MeanProbabilities,
    Order,
    Outcome,
    Pair,
    PositionConsistency,
    Probabilities,
    Reconciling,
    Unread,
    Winner,
)
from evenhand.judging.decision import CriterionDecision, Decision, PassBallot, Reading
from evenhand.messages import Message, chained
from evenhand.messages.phrases import name_pass

Choices = Mapping[Order, Winner | None]  # each order's own; None where its samples split evenly


@dataclass(frozen=True, slots=True)
class Unreconciled:
    """The outcome `invalid`, and why."""

    reason: str
    criteria: tuple[CriterionDecision, ...] = ()
    position_consistency: PositionConsistency | None = None


def decide(
    pair: Pair,
    readings: Sequence[Reading],
    *,
    how: Reconciling = "agreement",
    shows_first: Order | None = None,
) -> Decision | Unreconciled:
    """The decision. `shows_first` (see `shown_first`) orders the reasons if there is none."""
    ballots = by_order(pair, [each for each in readings if isinstance(each, PassBallot)])
    silent = [order for order in canonical(pair, shows_first) if not ballots[order]]
    if silent:
        return Unreconciled(_why_silent(readings, silent))
    if how == "agreement":
        return _agree(pair, ballots)
    samples = max([each.sample for each in readings])
    if samples == 1 and not _all_weighed(ballots):
        return Unreconciled(Message("unread.average_needs_probabilities"))
    return _average(pair, ballots, samples)


_AnyBallot = TypeVar("_AnyBallot", PassBallot, contract.Ballot)
_sample = attrgetter("sample")


def by_order(pair: Pair, ballots: Iterable[_AnyBallot]) -> dict[Order, list[_AnyBallot]]:
    """The ballots of each order that the pair is shown in, by sample."""
    grouped: dict[Order, list[_AnyBallot]] = {order: [] for order in pair.orders}
    for ballot in ballots:
        if ballot.order in grouped:
            grouped[ballot.order].append(ballot)
    for of_order in grouped.values():
        of_order.sort(key=_sample)
    return grouped


def shown_first(digests: tuple[bytes, bytes]) -> Order | None:
    """The order whose first-shown response has the smaller hash; None if they are equal.

    The one property of an order that does not depend on the caller's labels.
    """
    a, b = digests
    return None if a == b else "original" if a < b else "swapped"


def canonical(pair: Pair, shows_first: Order | None) -> tuple[Order, ...]:
    """The orders in a sequence that does not depend on the caller's labels."""
    return tuple(reversed(pair.orders)) if shows_first == "swapped" else pair.orders


def position(pair: Pair, choices: Choices) -> PositionConsistency | None:
    if not pair.swap_positions:
        return None
    first, second = choices["original"], choices["swapped"]
    return PositionConsistency(
        first_pass_winner=first,
        second_pass_winner=second,
        consistent=first is not None and first == second,
    )


def _why_silent(readings: Sequence[Reading], silent: Sequence[Order]) -> str:
    reasons = {order: _why_unread(readings, order) for order in silent}
    if len(silent) > 1 and len(set(reasons.values())) == 1:
        return Message("unread.both_passes", reason=reasons[silent[0]])
    return chained(
        Message("unread.one_pass", which=name_pass("en", order), reason=reason)
        for order, reason in reasons.items()
    )


def _why_unread(readings: Iterable[Reading], order: Order) -> str:
    reasons = list(
        dict.fromkeys(r.reason for r in readings if isinstance(r, Unread) and r.order == order)
    )
    if not reasons:
        return Message("unread.not_made")
    return Message("unread.not_read", reasons=reasons)


# By agreement: both orders choose the same, or the pair is inconsistent.

_Ballots = Mapping[Order, Sequence[PassBallot]]


def _agree(pair: Pair, ballots: _Ballots) -> Decision | Unreconciled:
    criteria = _agree_on_criteria(
        tuple([criterion.name for criterion in pair.criteria]),
        tuple([tuple([ballot.criteria for ballot in each]) for each in ballots.values()]),
        pair.orders,
    )
    choices = {order: _plurality([b.winner for b in each]) for order, each in ballots.items()}
    winner = choices[pair.orders[0]]
    if winner is not None and all(choice == winner for choice in choices.values()):
        confidence, source = _mean_confidence(ballots, winner)
        return Decision(
            Outcome.TIE if winner == "TIE" else Outcome.WIN,
            winner,
            confidence,
            source,
            *_both(pair, choices),
            criteria,
        )
    decided_by: DecidedBy | None = None
    if pair.allow_tie:
        winner = "TIE"
    else:
        winner, decided_by = _break_tie(pair, ballots, criteria)
        if winner is None:
            return Unreconciled(
                Message("unread.passes_disagree"),
                criteria,
                position(pair, choices),
            )
    return _inconsistent(pair, winner, choices, criteria, decided_by)


def _inconsistent(
    pair: Pair,
    winner: Winner,
    choices: Choices,
    criteria: tuple[CriterionDecision, ...],
    decided_by: DecidedBy | None,
    probabilities: MeanProbabilities | None = None,
) -> Decision:
    return Decision(
        Outcome.INCONSISTENT,
        winner,
        0.5,
        "rule",
        *_both(pair, choices),
        criteria,
        decided_by,
        probabilities,
    )


def _both(pair: Pair, choices: Choices) -> tuple[Winner | None, Winner | None]:
    return (choices["original"], choices["swapped"]) if pair.swap_positions else (None, None)


def _plurality(votes: Sequence[Winner]) -> Winner | None:
    """The winner with the most votes; None if tied or empty."""
    if len(votes) == 1:  # an order that was asked once, which is the usual one
        return votes[0]
    counts = {winner: votes.count(winner) for winner in set(votes)}
    best = max(counts.values(), default=0)
    leaders = [winner for winner, count in counts.items() if count == best]
    return leaders[0] if len(leaders) == 1 else None


_Won = tuple[Winner | None, ...]  # each criterion's winner in one ballot


# A run has few criteria, with few ways to come out.
@lru_cache(maxsize=1024)
def _agree_on_criteria(
    names: tuple[str, ...], won: tuple[tuple[_Won, ...], ...], orders: tuple[Order, ...]
) -> tuple[CriterionDecision, ...]:
    return tuple(
        [
            _agree_on_criterion(name, [_named(ballots, place) for ballots in won], orders)
            for place, name in enumerate(names)
        ]
    )


def _named(won: Iterable[_Won], place: int) -> list[Winner]:
    """The winners that one order's ballots name for a criterion."""
    return [winner for each in won if each and (winner := each[place]) is not None]


def _agree_on_criterion(
    name: str, named: Sequence[list[Winner]], orders: Sequence[Order]
) -> CriterionDecision:
    choices = [_plurality(winners) for winners in named]
    by_pass = _by_pass(choices, orders)
    winner = choices[0]
    if not all(named):
        return CriterionDecision(name, Outcome.INVALID, None, *by_pass)
    if winner is not None and all(choice == winner for choice in choices):
        outcome = Outcome.TIE if winner == "TIE" else Outcome.WIN
        return CriterionDecision(name, outcome, winner, *by_pass)
    return CriterionDecision(name, Outcome.INCONSISTENT, "TIE", *by_pass)


def _by_pass(choices: Sequence[Winner | None], orders: Sequence[Order]) -> Sequence[Winner | None]:
    """The first and second pass's choice; a lone second pass may have been drawn."""
    return choices if "original" in orders else (None, *choices)


def _mean_confidence(ballots: _Ballots, winner: Winner) -> tuple[float | None, ConfidenceSource]:
    """The mean over orders of the mean over ballots that name this winner."""
    means: list[float] = []
    source: ConfidenceSource = "none"
    for of_order in ballots.values():
        agreeing = [ballot for ballot in of_order if ballot.winner == winner]
        stated = [ballot.confidence for ballot in agreeing if ballot.confidence is not None]
        if len(stated) < len(agreeing):
            return None, "none"
        means.append(sum(stated) / len(stated))
        source = agreeing[0].confidence_source
    # Rounding may leave 0 to 1.
    return min(1.0, sum(means) / len(means)), source


def _break_tie(
    pair: Pair, ballots: _Ballots, criteria: Sequence[CriterionDecision]
) -> tuple[Winner | None, DecidedBy | None]:
    """If passes differ and ties are not allowed: the stronger signed confidence, then the
    criteria's majority, then None."""
    signed = {"A": Fraction(0), "B": Fraction(0)}
    confidences = [ballot.confidence for each in ballots.values() for ballot in each]
    if None not in confidences:
        for of_order in ballots.values():
            for ballot in of_order:
                if ballot.winner != "TIE":
                    signed[ballot.winner] += _exact(ballot.confidence or 0.0) / len(of_order)
    if signed["A"] != signed["B"]:
        return ("A" if signed["A"] > signed["B"] else "B"), "confidence"
    return _majority(pair, criteria)


def _majority(
    pair: Pair, criteria: Sequence[CriterionDecision]
) -> tuple[Winner | None, DecidedBy | None]:
    won = {"A": Fraction(0), "B": Fraction(0)}
    for criterion, asked in zip(criteria, pair.criteria, strict=True):
        if criterion.winner in ("A", "B"):
            won[criterion.winner] += _exact(1.0 if asked.weight is None else asked.weight)
    if won["A"] == won["B"]:
        return None, None
    return ("A" if won["A"] > won["B"] else "B"), "criteria"


def _exact(number: float) -> Fraction:
    """The number as written: 0.1 + 0.2 is 0.3, so that rounding never decides a pair."""
    return Fraction(repr(number))


# By the mean probability over the orders, or by the mean share of the samples.

_Weights = tuple[float, float, float]  # of A, of B, of TIE


def _average(pair: Pair, ballots: _Ballots, samples: int) -> Decision | Unreconciled:
    exact = _all_weighed(ballots)
    criteria = tuple(
        [
            _average_criterion(criterion.name, place, ballots, samples)
            for place, criterion in enumerate(pair.criteria)
        ]
    )
    weighed = {
        order: _mean([_weights(b.probabilities if exact else None, b.winner) for b in each])
        for order, each in ballots.items()
    }
    choices = {o: _likeliest(each, allow_tie=pair.allow_tie) for o, each in weighed.items()}
    shares = _mean(list(weighed.values()))
    winner = _likeliest(shares, allow_tie=pair.allow_tie)
    means = MeanProbabilities(a=shares[0], b=shares[1], tie=shares[2])
    if winner is None:
        winner, decided_by = _majority(pair, criteria)
        if winner is None:
            return Unreconciled(
                Message("unread.equally_probable"),
                criteria,
                position(pair, choices),
            )
        return _inconsistent(pair, winner, choices, criteria, decided_by, means)
    confidence, source = _averaged_confidence(
        ballots, shares, winner, samples=None if exact else samples
    )
    return Decision(
        Outcome.TIE if winner == "TIE" else Outcome.WIN,
        winner,
        confidence,
        source,
        *_both(pair, choices),
        criteria,
        probabilities=means,
    )


def _average_criterion(name: str, place: int, ballots: _Ballots, samples: int) -> CriterionDecision:
    named: list[list[Winner]] = []
    weighed: list[list[_Weights]] = []
    exact = True
    for of_order in ballots.values():
        judging = [b for b in of_order if b.criteria and b.criteria[place] is not None]
        named.append(_named([b.criteria for b in judging], place))
        shares = [
            b.criterion_probabilities[place] if b.criterion_probabilities else None for b in judging
        ]
        exact = exact and None not in shares
        weighed.append([_weights(p, w) for p, w in zip(shares, named[-1], strict=True)])
    # Without probabilities or repeats there is nothing to average: a criterion whose winner changed
    # with the order stays inconsistent.
    if not all(named) or not (exact or samples > 1):
        return _agree_on_criterion(name, named, tuple(ballots))
    means = [_mean(each) for each in weighed]
    winner = _likeliest(_mean(means), allow_tie=True)
    outcome = Outcome.TIE if winner == "TIE" else Outcome.WIN
    choices = [_likeliest(each, allow_tie=True) for each in means]
    return CriterionDecision(name, outcome, winner, *_by_pass(choices, tuple(ballots)))


def _all_weighed(ballots: _Ballots) -> bool:
    return all(ballot.probabilities for each in ballots.values() for ballot in each)


def _weights(probabilities: Probabilities | None, winner: Winner) -> _Weights:
    if probabilities is not None:
        return probabilities.a, probabilities.b, probabilities.tie
    return float(winner == "A"), float(winner == "B"), float(winner == "TIE")


def _mean(rows: Sequence[_Weights]) -> _Weights:
    a, b, tie = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return a, b, tie


def _likeliest(mean: _Weights, *, allow_tie: bool) -> Winner | None:
    """The likeliest verdict. If A and B weigh exactly the same: a tie, or None."""
    a, b, tie = mean
    if allow_tie and tie >= max(a, b):
        return "TIE"
    if a == b:
        return "TIE" if allow_tie else None
    return "A" if a > b else "B"


def _averaged_confidence(
    ballots: _Ballots, shares: _Weights, winner: Winner, *, samples: int | None
) -> tuple[float | None, ConfidenceSource]:
    """`samples` is None if probabilities were averaged, not shares of the samples."""
    a, b, tie = shares
    if winner == "TIE" and tie < max(a, b):
        # A and B weigh exactly the same: the tie has no probability.
        return None, "none"
    if samples is None:
        return min(1.0, {"A": a, "B": b, "TIE": tie}[winner]), "logprobs"
    # The share of all samples, unread ones included.
    named = [sum(b.winner == winner for b in of_order) for of_order in ballots.values()]
    return sum(count / samples for count in named) / len(named), "votes"
