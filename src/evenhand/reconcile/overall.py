"""The whole: by agreement of the two orders, or by their mean probability."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.contract import (
    Ballot,
    ConfidenceSource,
    Differentiators,
    MeanProbabilities,
    Order,
    Outcome,
    Winner,
    criterion_key,
)
from evenhand.phrases import mark, say
from evenhand.reconcile.box import Box
from evenhand.reconcile.criterion import Criterion
from evenhand.reconcile.prose import analysis, distinct, merged, representative, with_reason
from evenhand.reconcile.ruling import DecidedBy, NoRuling, Ruling
from evenhand.reconcile.votes import likeliest, mean, plurality, weights


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
                "the orders named different winners, a tie is not allowed, and neither "
                "confidence nor criteria separate them",
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
    signed = {"A": 0.0, "B": 0.0}
    for order in box.orders:
        ballots = box.ballots[order]
        if any(ballot.confidence is None for ballot in ballots):
            signed = {"A": 0.0, "B": 0.0}
            break
        for side in ("A", "B"):
            signed[side] += sum(b.confidence or 0 for b in ballots if b.winner == side) / len(
                ballots
            )
    if signed["A"] != signed["B"]:
        return ("A" if signed["A"] > signed["B"] else "B"), "confidence"
    return _majority(box, criteria)


def _majority(box: Box, criteria: Sequence[Criterion]) -> tuple[Winner | None, DecidedBy | None]:
    won = {"A": 0.0, "B": 0.0}
    for criterion, asked in zip(criteria, box.pair.criteria, strict=True):
        if criterion.winner in ("A", "B"):
            won[criterion.winner] += asked.weight if asked.weight is not None else 1.0
    if won["A"] == won["B"]:
        return None, None
    return ("A" if won["A"] > won["B"] else "B"), "criteria"


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
    decided_by: DecidedBy | None = None
    if winner is None:
        winner, decided_by = _majority(box, criteria)
    if winner is None:
        return NoRuling(
            "A and B are equally probable, a tie is not allowed, and the criteria do not "
            "separate them",
            criteria=tuple(criterion.counted(box) for criterion in criteria),
            position_consistency=box.position(choices),
        )
    a, b, tie = shares
    # Where A and B weigh the same to the last bit, no probability backs the tie between them.
    backed = decided_by is None and not (winner == "TIE" and tie < max(a, b))
    confidence = min(1.0, {"A": a, "B": b, "TIE": tie}[winner]) if backed else None
    flipped = len(set(choices.values())) > 1
    return _ruling(
        box,
        criteria,
        choices,
        winner=winner,
        outcome=Outcome.TIE if winner == "TIE" else Outcome.WIN,
        confidence=confidence,
        source=("logprobs" if exact else "votes") if backed else "none",
        notes=(say(box.locale, "flipped", choices=box.listed(choices)),) if flipped else (),
        decided_by=decided_by,
        probabilities=MeanProbabilities(a=a, b=b, tie=tie),
    )


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
    speakers = [
        (order, representative(box.ballots[order], winner, choices[order]))
        for order in box.canonical
    ]
    inconsistent = outcome is Outcome.INCONSISTENT
    return Ruling(
        winner=winner,
        outcome=outcome,
        confidence=confidence,
        confidence_source=source,
        comparison=tuple(criterion.told(box) for criterion in criteria),
        criteria=tuple(criterion.counted(box) for criterion in criteria),
        overall_reasoning=merged(
            box, [(order, ballot.reasoning) for order, ballot in speakers], both=inconsistent
        ),
        differentiators=advantages(box, criteria, speakers, winner, inconsistent=inconsistent),
        analysis=analysis(box, speakers, both=inconsistent),
        position_consistency=box.position(choices),
        notes=notes,
        decided_by=decided_by,
        probabilities=probabilities,
    )


def advantages(
    box: Box,
    criteria: Sequence[Criterion],
    speakers: Sequence[tuple[Order, Ballot]],
    winner: Winner,
    *,
    inconsistent: bool,
) -> Differentiators:
    won: dict[str, list[str]] = {"A": [], "B": [], "TIE": []}
    for criterion in criteria:
        if criterion.winner is not None and criterion.outcome is Outcome.WIN:
            won[criterion.winner].append(with_reason(criterion.name, criterion.told(box).reasoning))
    for order, ballot in speakers:
        if inconsistent:
            lost = {criterion_key(c.name) for c in criteria if c.outcome is Outcome.INCONSISTENT}
            said = [
                (entry.winner, with_reason(entry.criterion, entry.reasoning))
                for entry in ballot.criteria
                if entry.winner is not None and criterion_key(entry.criterion) in lost
            ]
            said += [(ballot.winner, point) for point in ballot.differentiators]
            for side, point in said:
                won[side].append(mark(box.locale, order, point))
        elif ballot.winner == winner:
            won[winner] += ballot.differentiators
    return Differentiators(a_advantages=distinct(won["A"]), b_advantages=distinct(won["B"]))
