"""Who won, and how sure that is: all that statistics need, without a word of prose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand.contract import (
    ConfidenceSource,
    CriterionOutcome,
    DecidedBy,
    MeanProbabilities,
    Order,
    Outcome,
    Winner,
)
from evenhand.reconcile.criterion import Criterion


@dataclass(frozen=True, slots=True)
class Decision:
    winner: Winner
    outcome: Outcome
    confidence: float | None
    confidence_source: ConfidenceSource
    choices: Mapping[Order, Winner | None]  # each order's own
    criteria: Sequence[Criterion]
    note: Literal["inconsistent", "split", "flipped"] | None = None
    decided_by: DecidedBy | None = None
    probabilities: MeanProbabilities | None = None

    def counted(self) -> tuple[CriterionOutcome, ...]:
        return tuple([criterion.counted() for criterion in self.criteria])
