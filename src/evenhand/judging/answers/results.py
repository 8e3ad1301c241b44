"""What is found in a judge's text before it is a ballot or an unread answer: a verdict, the reason
why there is none, or one statement of several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from evenhand.contract import CriterionBallot, Scores, UnreadKind, Winner

# Stands for what is quoted: no letter, digit, blank or punctuation, so that no pattern of the
# reader goes through it.
FILLER = "\ufffc"
_FILLED = re.compile(f"{FILLER}+")

AnswerProtocol = Literal["evenhand", "mt-bench", "arena-hard", "llmbar", "three-class", "scores"]
PROTOCOLS: tuple[AnswerProtocol, ...] = (
    "evenhand",
    "mt-bench",
    "arena-hard",
    "llmbar",
    "three-class",
    "scores",
)

# The fields of a contract type before they are one: all of a ballot is checked at once, at the end.
Plain = Mapping[str, Any]


class ParsedVerdict(NamedTuple):
    """A verdict that was said, in the labels that the pass showed."""

    winner: Winner
    protocol: AnswerProtocol = "evenhand"
    confidence: float | None = None
    criteria: tuple[CriterionBallot | Plain, ...] = ()
    reasoning: str = ""
    differentiators: tuple[str, ...] = ()
    analysis: Plain | None = None
    flags: tuple[str, ...] = ()
    from_object: bool = False  # set where a JSON object gave it, with its own reasoning
    as_asked: bool = False  # set where the answer has exactly the form that was asked for
    scores: Scores | None = None
    strength: int | None = None


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why there is no verdict to be had."""

    kind: UnreadKind
    reason: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One place where the text names a verdict; `winner` is None where it is off the menu.

    `final` is set where the judge itself calls it final or overall, `strength` where the mark has
    one.
    """

    start: int
    end: int
    winner: Winner | None
    text: str
    protocol: AnswerProtocol
    final: bool = False
    strength: int | None = None


def shown(text: str, limit: int = 60) -> str:
    """A short, one-line form of a text for a reason."""
    line = " ".join(_FILLED.sub("…", text[: 4 * limit]).split())
    return repr(line if len(line) <= limit else line[: limit - 1] + "…")
