"""The values of one comparison: each pass's result, and the decision. Kept by the store, so they
load without the answer readers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from evenhand.contract import (
    AnswerProtocol,
    Artefact,
    ConfidenceSource,
    CriterionOutcome,
    DecidedBy,
    Locale,
    MeanProbabilities,
    Mode,
    Order,
    Outcome,
    Probabilities,
    Reconciling,
    Scores,
    Unread,
    Usage,
    Winner,
)
from evenhand.judging.answers.results import ParsedVerdict
from evenhand.options import ConfidenceFrom, JudgingOptions


@dataclass(frozen=True, slots=True)
class PassBallot:
    """The deciding part of one pass, in the caller's labels; `explanation` adds the prose.

    A run makes two for each pair; prose is rarely looked at and takes five times as long to
    convert.
    """

    order: Order
    sample: int
    winner: Winner
    confidence: float | None = None
    # One for each criterion of the pair, in order; empty if none was judged.
    criteria: tuple[Winner | None, ...] = ()
    raw: str = ""
    confidence_source: Literal["stated", "logprobs", "none"] = "none"
    probabilities: Probabilities | None = None
    criterion_probabilities: tuple[Probabilities | None, ...] = ()  # by the same places
    scores: Scores | None = None
    strength: int | None = None
    protocol: str = "evenhand"
    flags: tuple[str, ...] = ()
    read_as: AnswerProtocol | None = None  # the format that the caller named; None: recognised
    # As parsed, in the labels that the pass showed; stored ballots have it in their raw text.
    prose: ParsedVerdict | None = field(default=None, compare=False, repr=False)


Reading = PassBallot | Unread


@dataclass(frozen=True, slots=True)
class PassResult:
    """One pass: what was read from it, and what it took."""

    reading: Reading
    usage: Usage = field(default_factory=Usage)
    time_ms: float = 0
    model: str | None = None
    request_ids: tuple[str, ...] = ()
    repaired: tuple[Unread, ...] = ()  # answers that could not be read, before this one

    @property
    def order(self) -> Order:
        return self.reading.order

    @property
    def sample(self) -> int:
        return self.reading.sample

    @property
    def unread(self) -> Unread | None:
        return self.reading if isinstance(self.reading, Unread) else None


@dataclass(frozen=True, slots=True)
class CriterionDecision:
    """One criterion over all ballots; `winner` is None if an order does not judge it."""

    name: str
    outcome: Outcome
    winner: Winner | None
    first_pass_winner: Winner | None = None
    second_pass_winner: Winner | None = None

    def to_contract(self) -> CriterionOutcome:
        return CriterionOutcome(
            criterion=self.name,
            outcome=self.outcome,
            first_pass_winner=self.first_pass_winner,
            second_pass_winner=self.second_pass_winner,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """Who won, and how surely: what a run stores and statistics count, without prose."""

    outcome: Outcome
    winner: Winner
    confidence: float | None
    confidence_source: ConfidenceSource
    first_pass_winner: Winner | None = None  # None, both of them, where one order was shown
    second_pass_winner: Winner | None = None
    criteria: tuple[CriterionDecision, ...] = ()
    decided_by: DecidedBy | None = None
    probabilities: MeanProbabilities | None = None
    abstained: bool = False  # less sure than its calibration promises


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision and its passes; none if nobody was asked."""

    decision: Decision
    passes: tuple[PassResult, ...]
    samples: int = 1
    time_ms: float = 0
    artefacts: tuple[Artefact, ...] = ()  # written beside them, in the caller's labels


@dataclass(frozen=True, slots=True)
class VerdictContext:
    """Who judged and how, for a verdict's metadata."""

    judge: str
    caveat: str | None
    mode: Mode
    reconcile: Reconciling
    prompt_version: str | None
    options: JudgingOptions  # those that passes and verdicts depend on

    @property
    def locale(self) -> Locale:
        return self.options.locale or "en"

    @property
    def confidence(self) -> ConfidenceFrom:
        return self.options.confidence or "stated"
