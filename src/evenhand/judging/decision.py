"""The values of one comparison: what each pass came to, and the decision that rests on them. The
store keeps them, so they load without what reads an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand import contract
from evenhand.contract import (
    PROTOCOLS,
    AnswerProtocol,
    Artefact,
    ConfidenceSource,
    CriterionOutcome,
    DecidedBy,
    MeanProbabilities,
    Order,
    Outcome,
    Pair,
    Pass,
    Probabilities,
    Scores,
    Unread,
    Usage,
    Winner,
    rename,
)
from evenhand.judging.answers.results import ParsedAnalysis, ParsedVerdict, QuotedFrom


@dataclass(frozen=True, slots=True)
class PassBallot:
    """What decides of one pass, in the caller's labels. `to_contract` adds the prose.

    A run makes two of these for each pair and a store keeps them; hardly anybody ever looks at the
    prose, which takes five times as long to put into the contract's types.
    """

    order: Order
    sample: int
    winner: Winner
    confidence: float | None = None
    # One for each criterion of the pair, in its order; empty where nothing was said of any.
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
    # As it was parsed, in the labels that the pass showed; of a stored ballot it is parsed from the
    # raw text by the first who asks, once for all that show it.
    prose: ParsedVerdict | None = field(default=None, compare=False, repr=False)

    def to_contract(self, pair: Pair) -> contract.Ballot:
        """With its prose: as parsed, or as it is read again from the raw text. What was decided
        stays decided, also where a later version would read the same text in another way."""
        prose = self._parsed(pair)
        own: Callable[[str], str] = str if self.order == "original" else rename
        sides = (prose.response_a, prose.response_b)
        reasoning, entries = prose.reasoning, prose.criteria
        if self.order == "swapped":
            sides = (prose.response_b, prose.response_a)
            reasoning = _own_names(reasoning, prose.protocol)
            entries = tuple(
                [
                    e._replace(a_assessment=e.b_assessment, b_assessment=e.a_assessment)
                    for e in entries
                ]
            )
        fields: dict[str, Any] = {
            "order": self.order,
            "sample": self.sample,
            "winner": self.winner,
            "confidence": self.confidence,
            "confidence_source": self.confidence_source,
            "probabilities": self.probabilities,
            "scores": self.scores,
            "strength": self.strength,
            "criteria": [
                {"criterion": criterion.name, "winner": winner}
                for criterion, winner in zip(pair.criteria, self.criteria, strict=False)
            ],
            "reasoning": own(reasoning),
            "differentiators": [own(text) for text in prose.differentiators],
            "analysis": {"response_a": _side(sides[0], own), "response_b": _side(sides[1], own)},
            "protocol": self.protocol,
            "flags": self.flags,
            "raw": self.raw,
        }
        for shown, entry in zip(fields["criteria"], entries, strict=False):
            shown["reasoning"] = own(entry.reasoning)
            shown["a_assessment"] = own(entry.a_assessment)
            shown["b_assessment"] = own(entry.b_assessment)
        for shown, shares in zip(fields["criteria"], self.criterion_probabilities, strict=False):
            shown["probabilities"] = shares
        # JSON can spell half of a surrogate pair, and a model that is cut inside an emoji does.
        # The backslash first: one character is found many times faster than three.
        spelt = "\\" in self.raw and ("\\ud" in self.raw or "\\uD" in self.raw)
        return contract.Ballot.model_validate(_whole_strings(fields) if spelt else fields)

    def _parsed(self, pair: Pair) -> ParsedVerdict:
        if self.prose is not None:
            return self.prose
        if self.protocol not in PROTOCOLS:
            return _NO_PROSE  # letters, and verdicts that came without a text, have none
        from evenhand.judging.answers.reader import parse

        parsed = parse(self.raw, pair.criteria, protocol=self.read_as, quoted=quoted_from(pair))
        prose = parsed if isinstance(parsed, ParsedVerdict) else _NO_PROSE
        object.__setattr__(self, "prose", prose)
        return prose


# Typesetting that a judge may add or drop when it quotes.
_SPACE = re.compile(r"[\s*_`>\"'“”]+")
_WORD = re.compile(r"[^\W_]+")
_LONG_WORD = re.compile(r"\b[^\W_]{10,}")


def quoted_from(pair: Pair) -> QuotedFrom:
    """Whether words stand in one of the pair's texts; spaces and typesetting aside."""

    def quoted(words: str) -> bool:
        texts = (pair.response_a, pair.response_b, pair.prompt, pair.context, pair.reference)
        # One long word first: that settles it for nearly every answer, in a fraction of the time.
        long = _LONG_WORD.search(words)
        word = long[0] if long else max(_WORD.findall(words[:300]), key=len, default="")
        held = [text for text in texts if text and word in text]
        wanted = _SPACE.sub("", words) if held else ""
        return any(wanted in _SPACE.sub("", text) for text in held)

    return quoted


Reading = PassBallot | Unread
_NO_PROSE = ParsedVerdict("TIE")


def _side(analysis: ParsedAnalysis, own: Callable[[str], str]) -> dict[str, list[str]]:
    return {
        "strengths": [own(text) for text in analysis.strengths],
        "weaknesses": [own(text) for text in analysis.weaknesses],
    }


def _own_names(reasoning: str, protocol: AnswerProtocol) -> str:
    """Other protocols have other names for the responses, which are exchanged too."""
    if protocol == "evenhand":
        return reasoning
    from evenhand.judging.answers.reasons import exchanged

    return exchanged(reasoning, protocol)


def _whole_strings(value: Any) -> Any:
    from evenhand.judging.answers.reader import whole_characters

    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {key: _whole_strings(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_strings(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class PassResult:
    """One pass as it happened: what was read from it, and what it took."""

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

    def to_contract(self, pair: Pair) -> Pass:
        reading = self.reading
        return Pass(
            order=reading.order,
            sample=reading.sample,
            ballot=reading.to_contract(pair) if isinstance(reading, PassBallot) else None,
            unread=reading if isinstance(reading, Unread) else None,
            usage=self.usage,
            time_ms=self.time_ms,
            repaired=self.repaired,
            model=self.model,
            request_ids=self.request_ids,
        )


@dataclass(frozen=True, slots=True)
class CriterionDecision:
    """One criterion over all ballots; `winner` is None where an order is silent on it."""

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
    """Who won, and how sure that is: what a run stores of a pair and statistics count, without a
    word of prose. `explanation` has the words."""

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
    """A decision and the passes that it rests on: none where nobody was asked."""

    decision: Decision
    passes: tuple[PassResult, ...]
    samples: int = 1
    time_ms: float = 0
    artefacts: tuple[Artefact, ...] = ()  # written beside them, in the caller's labels
