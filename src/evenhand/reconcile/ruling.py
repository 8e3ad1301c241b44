"""What reconciling comes to, before the metadata: a ruling, or none and why."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.contract import (
    Analysis,
    ConfidenceSource,
    CriterionOutcome,
    CriterionVerdict,
    DecidedBy,
    Differentiators,
    MeanProbabilities,
    Outcome,
    Pair,
    PositionConsistency,
    Winner,
)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A valid verdict before its metadata."""

    winner: Winner
    outcome: Outcome
    confidence: float | None
    confidence_source: ConfidenceSource
    comparison: tuple[CriterionVerdict, ...]
    criteria: tuple[CriterionOutcome, ...]
    overall_reasoning: str
    differentiators: Differentiators
    analysis: Analysis
    position_consistency: PositionConsistency | None
    notes: tuple[str, ...]
    decided_by: DecidedBy | None = None
    probabilities: MeanProbabilities | None = None

    @classmethod
    def of_identical(cls, pair: Pair, not_judged: str) -> Ruling:
        """A tie that nobody was asked about, because the two texts are the same."""
        return cls(
            winner="TIE",
            outcome=Outcome.TIE,
            confidence=None,
            confidence_source="none",
            comparison=tuple(
                CriterionVerdict(
                    criterion=criterion.name,
                    winner=None,
                    reasoning=not_judged,
                    a_strength="",
                    b_strength="",
                )
                for criterion in pair.criteria
            ),
            criteria=(),
            overall_reasoning="",
            differentiators=Differentiators(),
            analysis=Analysis(),
            position_consistency=None,
            notes=(),
        )


@dataclass(frozen=True, slots=True)
class NoRuling:
    """The outcome `invalid`, and why."""

    reason: str
    criteria: tuple[CriterionOutcome, ...] = ()
    position_consistency: PositionConsistency | None = None
