"""What all the passes of a pair come to: a verdict or a failure, with each pass as it happened.
Never something in between.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from evenhand.contract.ballot import Analysis, Ballot, Texts, Unread
from evenhand.contract.labels import Locale, Mode, Order, Winner
from evenhand.contract.model import Model
from evenhand.messages import Sentence


class Outcome(StrEnum):
    """Four different things, all the way to the statistics."""

    WIN = "win"
    TIE = "tie"
    INCONSISTENT = "inconsistent"
    INVALID = "invalid"


ConfidenceSource = Literal["stated", "logprobs", "votes", "rule", "calibration", "none"]
Reconciling = Literal["agreement", "average"]
DecidedBy = Literal["confidence", "criteria"]


class Usage(Model):
    """Tokens and money. Null where the judge did not say, or its price is not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cost_usd: float | None = None
    requests: int = 0


class Pass(Model):
    """One pass as it happened: what was read from it, and what it took."""

    order: Order
    sample: int = 1
    ballot: Ballot | None = None
    unread: Unread | None = None
    usage: Usage = Usage()
    time_ms: float = 0
    repaired: tuple[
        Unread, ...
    ] = ()  # answers of this pass that could not be read, before this one
    model: str | None = None
    request_ids: Texts = ()


class CriterionVerdict(Model):
    """One criterion after reconciling; `winner` is null where it was not judged."""

    criterion: str
    winner: Winner | None
    reasoning: str
    a_strength: str
    b_strength: str


class CriterionOutcome(Model):
    """How the orders came out on one criterion: what stands behind its winner."""

    criterion: str
    outcome: Outcome
    first_pass_winner: Winner | None = None
    second_pass_winner: Winner | None = None


class Differentiators(Model):
    a_advantages: Texts = ()
    b_advantages: Texts = ()


class PositionConsistency(Model):
    """Each order's own choice, in the caller's labels; null where its samples split evenly."""

    first_pass_winner: Winner | None
    second_pass_winner: Winner | None
    consistent: bool


class MeanProbabilities(Model):
    """The mean over both orders that decided an averaged verdict."""

    a: float
    b: float
    tie: float


class Metadata(Model):
    id: str | None = None
    evaluation_time_ms: float = 0
    positions_swapped: bool = True
    outcome: Outcome | None = None
    judge: str | None = None
    judge_caveat: Sentence | None = None
    model: str | None = None
    locale: Locale | None = None
    mode: Mode | None = None
    prompt_version: str | None = None
    confidence_source: ConfidenceSource = "none"
    reconcile: Reconciling | None = None
    samples: int = 1
    # Its probability is below what a calibration guarantees; left out of the JSON where it is not.
    abstained: bool = Field(default=False, exclude_if=lambda value: not value)
    decided_by: DecidedBy | None = None
    probabilities: MeanProbabilities | None = None
    criteria: tuple[CriterionOutcome, ...] = ()
    # What each order of an invalid pair chose, where both were read; a verdict's own is its field.
    position_consistency: PositionConsistency | None = Field(
        default=None, exclude_if=lambda value: value is None
    )
    usage: Usage = Usage()
    passes: tuple[Pass, ...] = ()


class Verdict(Model):
    """A valid verdict: a win, a tie, or an inconsistent pair."""

    success: Literal[True] = True
    winner: Winner
    confidence: float | None = Field(ge=0, le=1)
    comparison: tuple[CriterionVerdict, ...]
    overall_reasoning: str
    differentiators: Differentiators
    analysis: Analysis
    # Left out of the JSON, not null, where there was only one order.
    position_consistency: PositionConsistency | None = Field(
        default=None, exclude_if=lambda value: value is None
    )
    notes: tuple[Sentence, ...] = ()
    metadata: Metadata

    @property
    def outcome(self) -> Outcome:
        assert self.metadata.outcome is not None  # noqa: S101 - a verdict is made with one
        return self.metadata.outcome


class ErrorBody(Model):
    kind: str
    message: Sentence
    retryable: bool


class Failure(Model):
    """No verdict: no winner and no confidence are made up."""

    success: Literal[False] = False
    error: ErrorBody
    metadata: Metadata = Metadata()
