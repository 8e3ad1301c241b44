"""What one pass comes to: a ballot, or an unread answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evenhand.contract.labels import Order, Winner, flip, flip_or_none, rename
from evenhand.contract.model import Model
from evenhand.messages import Sentence

Texts = tuple[str, ...]

UnreadKind = Literal[
    "empty",  # no text at all
    "thinking",  # the thinking ate the limit before an answer began
    "refusal",  # the judge declined, or a filter did
    "truncated",  # the answer stops in the middle
    "no_verdict",  # an answer, but no verdict in it
    "off_menu",  # a verdict that was not on offer
    "contradiction",  # two final statements that differ
    "tie_not_allowed",  # TIE, though the judge was told not to
    "no_probabilities",  # letter mode, and the letters' probabilities are not there
    "malformed",  # not readable as any known answer format
]


class Probabilities(Model):
    """How likely each verdict was, by the judge's own token probabilities; they sum to 1."""

    a: float = Field(ge=0, le=1)
    b: float = Field(ge=0, le=1)
    tie: float = Field(ge=0, le=1)

    def mirrored(self) -> Probabilities:
        return Probabilities(a=self.b, b=self.a, tie=self.tie)


class Scores(Model):
    """The judge's own scores of the two responses, on whatever scale it has."""

    a: float = Field(allow_inf_nan=False)
    b: float = Field(allow_inf_nan=False)

    def mirrored(self) -> Scores:
        return Scores(a=self.b, b=self.a)


class CriterionBallot(Model):
    """What one pass says on one criterion; `winner` is null where it says nothing."""

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
    """What the judge said in one pass, in the caller's labels."""

    order: Order
    sample: int = 1
    winner: Winner
    confidence: float | None = Field(default=None, ge=0, le=1)
    confidence_source: Literal["stated", "logprobs", "none"] = "none"
    probabilities: Probabilities | None = None
    # What some judges give instead of a confidence: two scores, or how strongly a mark prefers
    # (0 is [[A=B]], 1 is [[A>B]], 2 is [[A>>B]]). Neither is a confidence, nor made into one; left
    # out of the JSON where there is none.
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
        """The same statement with A and B exchanged, seen from the other order.

        `raw` stays: it is what the judge wrote, in the labels it was shown.
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
