"""The whole: by agreement of the two orders, or by their mean probability."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from evenhand.contract import ConfidenceSource, DecidedBy, MeanProbabilities, Outcome, Winner
from evenhand.reconcile.box import Box
from evenhand.reconcile.criterion import Criterion
from evenhand.reconcile.decision import Decision
from evenhand.reconcile.ruling import NoRuling
from evenhand.reconcile.votes import Weights, likeliest, mean, plurality, weights


def agree(box: Box, criteria: Sequence[Criterion]) -> Decision | NoRuling:
    choices = {
        order: plurality([ballot.winner for ballot in ballots])
        for order, ballots in box.ballots.items()
    }
    named = set(choices.values())
    winner = choices["original"]
    if len(named) == 1 and winner is not None:
        confidence, source = _mean_confidence(box, winner)
        return Decision(
            winner=winner,
            outcome=Outcome.TIE if winner == "TIE" else Outcome.WIN,
            confidence=confidence,
            confidence_source=source,
            choices=choices,
            criteria=criteria,
        )
    decided_by: DecidedBy | None = None
    if box.pair.allow_tie:
        winner = "TIE"
    else:
        winner, decided_by = _separate(box, criteria)
        if winner is None:
            return NoRuling(
                "the passes do not agree on a winner, a tie is not allowed, and neither "
                "confidence nor criteria separate them; allow ties, or ask for more samples",
                criteria=tuple(criterion.counted() for criterion in criteria),
                position_consistency=box.position(choices),
            )
    return Decision(
        winner=winner,
        outcome=Outcome.INCONSISTENT,
        confidence=0.5,
        confidence_source="rule",
        choices=choices,
        criteria=criteria,
        note="split" if None in named else "inconsistent",
        decided_by=decided_by,
    )


def _mean_confidence(box: Box, winner: Winner) -> tuple[float | None, ConfidenceSource]:
    """The mean over orders of the mean over the ballots that name this winner."""
    means: list[float] = []
    source: ConfidenceSource = "none"
    for order in box.orders:
        agreeing = [ballot for ballot in box.ballots[order] if ballot.winner == winner]
        stated = [ballot.confidence for ballot in agreeing if ballot.confidence is not None]
        if len(stated) < len(agreeing):
            return None, "none"
        means.append(sum(stated) / len(stated))
        source = agreeing[0].confidence_source
    # Rounding aside the mean of numbers within 0 to 1 is within 0 to 1.
    return min(1.0, sum(means) / len(means)), source


def _separate(box: Box, criteria: Sequence[Criterion]) -> tuple[Winner | None, DecidedBy | None]:
    """Where passes differ and a tie is not allowed: the stronger signed confidence, then the
    criteria's majority, then nothing."""
    signed = {"A": Fraction(0), "B": Fraction(0)}
    ballots = box.all
    if all(ballot.confidence is not None for ballot in ballots):
        for ballot in ballots:
            if ballot.winner != "TIE":
                weight = _exact(ballot.confidence or 0.0) / len(box.ballots[ballot.order])
                signed[ballot.winner] += weight
    if signed["A"] != signed["B"]:
        return ("A" if signed["A"] > signed["B"] else "B"), "confidence"
    return _majority(box, criteria)


def _majority(box: Box, criteria: Sequence[Criterion]) -> tuple[Winner | None, DecidedBy | None]:
    won = {"A": Fraction(0), "B": Fraction(0)}
    for criterion, asked in zip(criteria, box.pair.criteria, strict=True):
        if criterion.winner in ("A", "B"):
            won[criterion.winner] += _exact(1.0 if asked.weight is None else asked.weight)
    if won["A"] == won["B"]:
        return None, None
    return ("A" if won["A"] > won["B"] else "B"), "criteria"


def _exact(number: float) -> Fraction:
    """The number as it was written: 0.1 + 0.2 is 0.3, and rounding never decides a pair."""
    return Fraction(repr(number))


def average(box: Box, criteria: Sequence[Criterion]) -> Decision | NoRuling:
    exact = box.averages_probabilities
    weighed = {
        order: mean([weights(b.probabilities if exact else None, b.winner) for b in ballots])
        for order, ballots in box.ballots.items()
    }
    allow_tie = box.pair.allow_tie
    choices = {o: likeliest(share, allow_tie=allow_tie) for o, share in weighed.items()}
    shares = mean(list(weighed.values()))
    winner = likeliest(shares, allow_tie=allow_tie)
    means = MeanProbabilities(a=shares[0], b=shares[1], tie=shares[2])
    if winner is None:
        winner, decided_by = _majority(box, criteria)
        if winner is None:
            return NoRuling(
                "A and B are equally probable, a tie is not allowed, and the criteria do not "
                "separate them; allow ties, or ask for more samples",
                criteria=tuple(criterion.counted() for criterion in criteria),
                position_consistency=box.position(choices),
            )
        return Decision(
            winner=winner,
            outcome=Outcome.INCONSISTENT,
            confidence=0.5,
            confidence_source="rule",
            choices=choices,
            criteria=criteria,
            note="split",
            decided_by=decided_by,
            probabilities=means,
        )
    flipped = len(set(choices.values())) > 1
    confidence, source = _averaged_confidence(box, shares, winner, exact=exact)
    return Decision(
        winner=winner,
        outcome=Outcome.TIE if winner == "TIE" else Outcome.WIN,
        confidence=confidence,
        confidence_source=source,
        choices=choices,
        criteria=criteria,
        note="flipped" if flipped else None,
        probabilities=means,
    )


def _averaged_confidence(
    box: Box, shares: Weights, winner: Winner, *, exact: bool
) -> tuple[float | None, ConfidenceSource]:
    a, b, tie = shares
    if winner == "TIE" and tie < max(a, b):
        # A and B weigh the same to the last bit: no probability backs the tie between them.
        return None, "none"
    if exact:
        return min(1.0, {"A": a, "B": b, "TIE": tie}[winner]), "logprobs"
    # The share of all samples, those that could not be read included.
    named = [sum(b.winner == winner for b in box.ballots[order]) for order in box.orders]
    return sum(count / box.samples for count in named) / len(box.orders), "votes"
