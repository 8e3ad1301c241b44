"""What is found in a judge's text before it is a ballot or an unread answer: a verdict, the reason
why there is none, or one statement of several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.contract import AnswerProtocol, Scores, UnreadKind, Winner
from evenhand.messages import Message

# Stands for what is quoted: no letter, digit, blank or punctuation, so that no pattern of the
# reader goes through it.
FILLER = "\ufffc"
_FILLED = re.compile(f"{FILLER}+")

# Whether words of an answer stand in one of the texts that were judged.
QuotedFrom = Callable[[str], bool]


class ParsedCriterion(NamedTuple):
    """What is said on one criterion; `winner` is None where nothing readable is."""

    winner: Winner | None = None
    reasoning: str = ""
    a_assessment: str = ""
    b_assessment: str = ""


class ParsedAnalysis(NamedTuple):
    """What is said of one response on its own."""

    strengths: Sequence[str] = ()
    weaknesses: Sequence[str] = ()


class ParsedVerdict(NamedTuple):
    """A verdict that was said, in the labels that the pass showed."""

    winner: Winner
    protocol: AnswerProtocol = "evenhand"
    confidence: float | None = None
    criteria: tuple[ParsedCriterion, ...] = ()  # one for each that was asked for, in that order
    reasoning: str = ""
    differentiators: Sequence[str] = ()
    response_a: ParsedAnalysis = ParsedAnalysis()
    response_b: ParsedAnalysis = ParsedAnalysis()
    flags: tuple[str, ...] = ()
    from_object: bool = False  # set where a JSON object gave it, with its own reasoning
    scores: Scores | None = None
    strength: int | None = None


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why there is no verdict to be had."""

    kind: UnreadKind
    reason: str


class StatedVerdict(NamedTuple):
    """One place where the text names a verdict; `reading` is a failure where that is off the menu.

    `final` is set where the judge itself calls it final or overall.
    """

    start: int
    end: int
    text: str
    rank: int
    reading: ParsedVerdict | ParseFailure
    final: bool = False

    @property
    def winner(self) -> Winner | None:
        return self.reading.winner if isinstance(self.reading, ParsedVerdict) else None


# The order of authority: what ranks lower and stands before a verdict is ignored. An object that
# holds nothing but a winner is not so much more than a mark or a label that they could be ignored.
PROSE, LABEL, MARK, BARE_OBJECT, OBJECT = range(5)


def off_menu(text: str) -> ParseFailure:
    return ParseFailure("off_menu", Message("unread.verdict_off_menu", text=shown(text)))


def shown(text: str, limit: int = 60) -> str:
    """A short, one-line form of a text for a reason."""
    line = " ".join(_FILLED.sub("…", text[: 4 * limit]).split())
    return repr(line if len(line) <= limit else line[: limit - 1] + "…")


def shown_end(text: str, limit: int = 60) -> str:
    """As `shown`, of how a text ends."""
    line = " ".join(_FILLED.sub("…", text[-4 * limit :]).split())
    return repr(line if len(line) <= limit else "…" + line[1 - limit :])
