"""What callers get: ballots and unread passes, and the verdict or failure they add up to."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Literal, get_args

from pydantic import Field

from evenhand.contract.model import Model
from evenhand.messages import Sentence

# The labels A and B, and what exchanging them does to winners and to prose.

Winner = Literal["A", "B", "TIE"]
Order = Literal["original", "swapped"]
Locale = Literal["en", "zh"]
Mode = Literal["reasoned", "letter"]
# The formats in which a judge was asked to answer, for completions recorded elsewhere.
AnswerProtocol = Literal["evenhand", "mt-bench", "arena-hard", "llmbar", "three-class", "scores"]
PROTOCOLS: tuple[AnswerProtocol, ...] = get_args(AnswerProtocol)

WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")
ORDERS: tuple[Order, ...] = ("original", "swapped")

_FLIPPED: dict[Winner, Winner] = {"A": "B", "B": "A", "TIE": "TIE"}

# Only the full forms that the prompt asks for are renamed: a bare letter may be an article, a
# grade or a variable. ASCII look-arounds, because in 响应A更好 the characters beside the label
# count as word characters for \b. Each pattern begins with a literal, which `re` finds six times
# faster than an alternation, so the text before it is checked by look-behind.
_FULL_FORMS = tuple(
    (literal, re.compile(rf"({literal}{before}[ \t\u00a0{blanks}]{least})([AB])(?![A-Za-z0-9_])"))
    for literal, before, blanks, least in (
        ("esponse", r"(?<=[Rr]esponse)(?<![A-Za-z0-9_].esponse)", "", "+"),
        ("RESPONSE", r"(?<![A-Za-z0-9_]RESPONSE)", "", "+"),
        ("响应", "", r"\u3000", "*"),
    )
)
_OTHER = {"A": "B", "B": "A"}


def flip(winner: Winner) -> Winner:
    return _FLIPPED[winner]


def flip_or_none(winner: Winner | None) -> Winner | None:
    return None if winner is None else _FLIPPED[winner]


def other_order(order: Order) -> Order:
    return "swapped" if order == "original" else "original"


def rename(text: str) -> str:
    """Exchange "Response A" and "Response B" (响应 A, 响应 B) in prose; its own inverse."""
    for literal, form in _FULL_FORMS:
        # Most short texts name neither; this check is many times cheaper than the pattern.
        if literal in text:
            # Splitting and joining takes half the time of a replacement function.
            parts = form.split(text)
            parts[2::3] = [_OTHER[label] for label in parts[2::3]]
            text = "".join(parts)
    return text


Texts = tuple[str, ...]

UnreadKind = Literal[
    "empty",  # no text at all
    "thinking",  # the thinking ate the limit before an answer began
    "refusal",  # the judge declined, or a filter did
    "truncated",  # the answer stops in the middle
    "no_verdict",  # an answer, but no verdict in it
    "off_menu",  # a verdict that was not on offer
    "contradiction",  # two final statements that differ
    "tie_not_allowed",  # TIE, though ties were not allowed
    "no_probabilities",  # letter mode, and the letters' probabilities are not there
    "malformed",  # not readable as any known answer format
]


class Probabilities(Model):
    """How likely each verdict was, by the judge's token probabilities; they sum to 1."""

    a: float = Field(ge=0, le=1)
    b: float = Field(ge=0, le=1)
    tie: float = Field(ge=0, le=1)

    def mirrored(self) -> Probabilities:
        return Probabilities(a=self.b, b=self.a, tie=self.tie)


class Scores(Model):
    """The judge's own scores of the two responses, on its own scale."""

    a: float = Field(allow_inf_nan=False)
    b: float = Field(allow_inf_nan=False)

    def mirrored(self) -> Scores:
        return Scores(a=self.b, b=self.a)


class CriterionBallot(Model):
    """One pass on one criterion; `winner` is null if it does not judge it."""

    criterion: str
    winner: Winner | None = None
    reasoning: str = ""
    a_assessment: str = ""
    b_assessment: str = ""
    probabilities: Probabilities | None = None

    def mirrored(self) -> CriterionBallot:
        return CriterionBallot(
            criterion=self.criterion,
            winner=flip_or_none(self.winner),
            reasoning=rename(self.reasoning),
            a_assessment=rename(self.b_assessment),
            b_assessment=rename(self.a_assessment),
            probabilities=self.probabilities.mirrored() if self.probabilities else None,
        )


class ResponseAnalysis(Model):
    strengths: Texts = ()
    weaknesses: Texts = ()

    def renamed(self) -> ResponseAnalysis:
        return ResponseAnalysis(
            strengths=tuple(map(rename, self.strengths)),
            weaknesses=tuple(map(rename, self.weaknesses)),
        )


class Analysis(Model):
    """Each response on its own, before they are compared."""

    response_a: ResponseAnalysis = ResponseAnalysis()
    response_b: ResponseAnalysis = ResponseAnalysis()

    def mirrored(self) -> Analysis:
        return Analysis(response_a=self.response_b.renamed(), response_b=self.response_a.renamed())


class Ballot(Model):
    """The judge's verdict in one pass, in the caller's labels."""

    order: Order
    sample: int = 1
    winner: Winner
    confidence: float | None = Field(default=None, ge=0, le=1)
    confidence_source: Literal["stated", "logprobs", "none"] = "none"
    probabilities: Probabilities | None = None
    # Given by some judges instead of a confidence: two scores, or the strength of a mark (0 is
    # [[A=B]], 1 is [[A>B]], 2 is [[A>>B]]). Never converted to a confidence; absent from the JSON
    # if null.
    scores: Scores | None = Field(default=None, exclude_if=lambda value: value is None)
    strength: int | None = Field(default=None, ge=0, le=2, exclude_if=lambda value: value is None)
    criteria: tuple[CriterionBallot, ...] = ()
    reasoning: str = ""
    differentiators: Texts = ()
    analysis: Analysis = Analysis()
    protocol: str = "evenhand"
    flags: tuple[Sentence, ...] = ()
    raw: str = ""

    def mirrored(self) -> Ballot:
        """The same ballot with A and B swapped.

        `raw` keeps the judge's own labels.
        """
        return Ballot(
            order="swapped" if self.order == "original" else "original",
            sample=self.sample,
            winner=flip(self.winner),
            confidence=self.confidence,
            confidence_source=self.confidence_source,
            probabilities=self.probabilities.mirrored() if self.probabilities else None,
            scores=self.scores.mirrored() if self.scores else None,
            strength=self.strength,
            criteria=tuple(c.mirrored() for c in self.criteria),
            reasoning=rename(self.reasoning),
            differentiators=tuple(map(rename, self.differentiators)),
            analysis=self.analysis.mirrored(),
            protocol=self.protocol,
            flags=self.flags,
            raw=self.raw,
        )


class Unread(Model):
    """A pass whose answer could not be read as a ballot: never dropped, never a tie."""

    order: Order
    sample: int = 1
    kind: UnreadKind
    reason: Sentence
    raw: str = ""


class Outcome(StrEnum):
    """Four outcomes that stay distinct all the way to the statistics."""

    WIN = "win"
    TIE = "tie"
    INCONSISTENT = "inconsistent"
    INVALID = "invalid"


ConfidenceSource = Literal["stated", "logprobs", "votes", "rule", "calibration", "none"]
Reconciling = Literal["agreement", "average"]
DecidedBy = Literal["confidence", "criteria", "identical"]


class Usage(Model):
    """Tokens and cost; null if the judge did not report them or its price is unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cost_usd: float | None = None
    requests: int = 0


class Pass(Model):
    """One pass: what was read from it, and what it took."""

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


class JudgedBy(Model):
    """Everything about the judge that a verdict's confidence depends on."""

    judge: str
    prompt_version: str | None
    locale: Locale | None
    mode: Mode
    reconcile: Reconciling
    samples: int


class CriterionVerdict(Model):
    """One criterion after reconciling; `winner` is null where it was not judged."""

    criterion: str
    winner: Winner | None
    reasoning: str
    a_strength: str
    b_strength: str


class CriterionOutcome(Model):
    """Each order's choice on one criterion: the evidence for its winner."""

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


ArtefactKind = Literal["metrics", "reference", "analysis"]


class Artefact(Model):
    """A text prepared for judging: of the `response` it names, or of the prompt alone if null. Only
    those `answered` are used."""

    kind: ArtefactKind
    response: Literal["A", "B"] | None = None
    outcome: Literal["answered", "truncated", "refused", "empty", "failed"]
    text: str = ""
    model: str | None = None
    usage: Usage = Usage()


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
    # Its probability is below the calibration's guarantee; absent from the JSON if not.
    abstained: bool = Field(default=False, exclude_if=lambda value: not value)
    decided_by: DecidedBy | None = None
    probabilities: MeanProbabilities | None = None
    criteria: tuple[CriterionOutcome, ...] = ()
    # Each order's choice of an invalid pair, if both were read; a verdict has a field of its own.
    position_consistency: PositionConsistency | None = Field(
        default=None, exclude_if=lambda value: value is None
    )
    # Texts prepared before judging; absent from the JSON if none were requested.
    artefacts: tuple[Artefact, ...] = Field(default=(), exclude_if=lambda value: not value)
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
    # Absent from the JSON, not null, if there was only one order.
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
    """No verdict: there is no winner and no confidence."""

    success: Literal[False] = False
    error: ErrorBody
    metadata: Metadata = Metadata()
