"""A decision with its reasons: what the passes said, gathered into one ruling."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.contract import (
    Ballot,
    CriterionVerdict,
    Differentiators,
    Order,
    Outcome,
    Winner,
    criterion_key,
)
from evenhand.phrases import marks, say
from evenhand.reconcile.box import Box
from evenhand.reconcile.criterion import Criterion
from evenhand.reconcile.decision import Decision
from evenhand.reconcile.prose import analysis, distinct, merged, speakers, with_reason
from evenhand.reconcile.ruling import Ruling


def tell(box: Box, decision: Decision) -> Ruling:
    criteria, choices = decision.criteria, decision.choices
    inconsistent = decision.outcome is Outcome.INCONSISTENT
    heard, both = speakers(
        box, box.ballots, winner=decision.winner, choices=choices, decided=not inconsistent
    )
    comparison = tuple([criterion.told(box) for criterion in criteria])
    if inconsistent:
        points = _claims(box, criteria, comparison, heard)
    else:
        points = _advantages(criteria, comparison, heard, decision.winner)
    notes: tuple[str, ...] = ()
    if decision.note is not None:
        notes = (say(box.locale, decision.note, choices=box.listed(choices)),)
    return Ruling(
        winner=decision.winner,
        outcome=decision.outcome,
        confidence=decision.confidence,
        confidence_source=decision.confidence_source,
        comparison=comparison,
        criteria=decision.counted(),
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
        decided_by=decision.decided_by,
        probabilities=decision.probabilities,
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
