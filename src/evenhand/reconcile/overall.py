"""The whole: by agreement of the two orders, or by their mean probability."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from evenhand.contract import (
    Ballot,
    ConfidenceSource,
    CriterionVerdict,
    Differentiators,
    MeanProbabilities,
    Order,
    Outcome,
    Winner,
    criterion_key,
)
from evenhand.phrases import marks, say
from evenhand.reconcile.box import Box
from evenhand.reconcile.criterion import Criterion
from evenhand.reconcile.prose import analysis, distinct, merged, speakers, with_reason
from evenhand.reconcile.ruling import DecidedBy, NoRuling, Ruling
from evenhand.reconcile.votes import Weights, likeliest, mean, plurality, weights


def agree(box: Box, criteria: Sequence[Criterion]) -> Ruling | NoRuling:
    choices = {
        order: plurality([ballot.winner for ballot in ballots])
        for order, ballots in box.ballots.items()
    }
    named = set(choices.values())
    winner = choices["original"]
    if len(named) == 1 and winner is not None:
        confidence, source = _mean_confidence(box, winner)
        return _ruling(
            box,
            criteria,
            choices,
            winner=winner,
            outcome=Outcome.TIE if winner == "TIE" else Outcome.WIN,
            confidence=confidence,
            source=source,
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
                criteria=tuple(criterion.counted(box) for criterion in criteria),
                position_consistency=box.position(choices),
            )
    sentence = "split" if None in named else "inconsistent"
    return _ruling(
        box,
        criteria,
        choices,
        winner=winner,
        outcome=Outcome.INCONSISTENT,
        confidence=0.5,
        source="rule",
        notes=(say(box.locale, sentence, choices=box.listed(choices)),),
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


def average(box: Box, criteria: Sequence[Criterion]) -> Ruling | NoRuling:
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
                criteria=tuple(criterion.counted(box) for criterion in criteria),
                position_consistency=box.position(choices),
            )
        return _ruling(
            box,
            criteria,
            choices,
            winner=winner,
            outcome=Outcome.INCONSISTENT,
            confidence=0.5,
            source="rule",
            notes=(say(box.locale, "split", choices=box.listed(choices)),),
            decided_by=decided_by,
            probabilities=means,
        )
    flipped = len(set(choices.values())) > 1
    confidence, source = _averaged_confidence(box, shares, winner, exact=exact)
    return _ruling(
        box,
        criteria,
        choices,
        winner=winner,
        outcome=Outcome.TIE if winner == "TIE" else Outcome.WIN,
        confidence=confidence,
        source=source,
        notes=(say(box.locale, "flipped", choices=box.listed(choices)),) if flipped else (),
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


def _ruling(
    box: Box,
    criteria: Sequence[Criterion],
    choices: dict[Order, Winner | None],
    *,
    winner: Winner,
    outcome: Outcome,
    confidence: float | None,
    source: ConfidenceSource,
    notes: tuple[str, ...] = (),
    decided_by: DecidedBy | None = None,
    probabilities: MeanProbabilities | None = None,
) -> Ruling:
    inconsistent = outcome is Outcome.INCONSISTENT
    heard, both = speakers(
        box, box.ballots, winner=winner, choices=choices, decided=not inconsistent
    )
    comparison = tuple([criterion.told(box) for criterion in criteria])
    if inconsistent:
        points = _claims(box, criteria, comparison, heard)
    else:
        points = _advantages(criteria, comparison, heard, winner)
    return Ruling(
        winner=winner,
        outcome=outcome,
        confidence=confidence,
        confidence_source=source,
        comparison=comparison,
        criteria=tuple(criterion.counted(box) for criterion in criteria),
        overall_reasoning=merged(
            box,
            [order for order, _ in heard],
            [ballot.reasoning for _, ballot in heard],
            both=both,
        ),
        differentiators=Differentiators(
            a_advantages=distinct(points["A"]), b_advantages=distinct(points["B"])
        ),
        analysis=analysis(box, heard, both=both),
        position_consistency=box.position(choices),
        notes=notes,
        decided_by=decided_by,
        probabilities=probabilities,
    )


def _advantages(
    criteria: Sequence[Criterion],
    comparison: Sequence[CriterionVerdict],
    heard: Sequence[tuple[Order, Ballot]],
    winner: Winner,
) -> dict[Winner, list[str]]:
    """By side: the criteria that it won, each with its reason, and what decided for it overall."""
    won = _criteria_won(criteria, comparison)
    for _, ballot in heard:
        if ballot.winner == winner:
            won[winner] += ballot.differentiators
    return won


def _claims(
    box: Box,
    criteria: Sequence[Criterion],
    comparison: Sequence[CriterionVerdict],
    heard: Sequence[tuple[Order, Ballot]],
) -> dict[Winner, list[str]]:
    """The same where the passes differ: what each of them said, marked with its pass."""
    won = _criteria_won(criteria, comparison)
    lost = {criterion_key(c.name) for c in criteria if c.outcome is Outcome.INCONSISTENT}
    for order, ballot in heard:
        which = marks(box.locale)[order]
        for entry in ballot.criteria:
            if entry.winner is not None and criterion_key(entry.criterion) in lost:
                won[entry.winner].append(which + with_reason(entry.criterion, entry.reasoning))
        won[ballot.winner] += [which + point for point in ballot.differentiators]
    return won


def _criteria_won(
    criteria: Sequence[Criterion], comparison: Sequence[CriterionVerdict]
) -> dict[Winner, list[str]]:
    won: dict[Winner, list[str]] = {"A": [], "B": [], "TIE": []}
    for criterion, told in zip(criteria, comparison, strict=True):
        if criterion.winner is not None and criterion.outcome is Outcome.WIN:
            won[criterion.winner].append(with_reason(criterion.name, told.reasoning))
    return won
