"""One text from what several ballots said, without preferring the first pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from evenhand.contract import Analysis, Ballot, CriterionBallot, Order, ResponseAnalysis, Winner
from evenhand.judging.ballot_set import BallotSet
from evenhand.messages.phrases import marks

Speaker = TypeVar("Speaker", Ballot, CriterionBallot)


def speakers(
    box: BallotSet,
    spoken: Mapping[Order, Sequence[Speaker]],
    *,
    winner: Winner | None,
    choices: Mapping[Order, Winner | None],
    decided: bool,
) -> tuple[list[tuple[Order, Speaker]], bool]:
    """Whose words are used, and whether all of them are kept, each marked with its pass.

    A decision speaks in the words of those who named it, from the order that comes first whatever
    the caller calls A. Where nobody named it, and where nothing was decided, everybody is heard:
    of an order, the first who says what it chose; of one that could not choose, one of each side.
    """
    if decided:
        agreeing = [spoke for order in box.canonical for spoke in _first(spoken, order, winner)]
        if agreeing:
            return agreeing, False
    heard: list[tuple[Order, Speaker]] = []
    for order in box.canonical:
        sides = [choices[order]] if choices[order] is not None else _sides(spoken[order])
        for side in sides:
            heard += _first(spoken, order, side)
    return heard, True


def _first(
    spoken: Mapping[Order, Sequence[Speaker]], order: Order, side: Winner | None
) -> list[tuple[Order, Speaker]]:
    """The first of this order who names this side, if anybody does."""
    for entry in spoken[order]:
        if entry.winner == side:
            return [(order, entry)]
    return []


def _sides(spoken: Sequence[Ballot | CriterionBallot]) -> list[Winner | None]:
    return list(dict.fromkeys(entry.winner for entry in spoken))


def merged(box: BallotSet, orders: Sequence[Order], texts: Sequence[str], *, both: bool) -> str:
    """One text from what the passes said, without preferring the first pass."""
    stripped = [text.strip() for text in texts]
    if both or (box.keep_both and len({text for text in stripped if text}) > 1):
        which = marks(box.locale)
        said = zip(orders, stripped, strict=True)
        return "\n".join([which[order] + text for order, text in said if text])
    for text in stripped:
        if text:
            return text
    return ""


def with_reason(name: str, reason: str) -> str:
    return f"{name}: {reason}" if reason else name


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Without blanks and repeats; case, spacing and a closing full stop aside."""
    seen: dict[str, str] = {}
    for text in texts:
        stripped = text.strip()
        if stripped:
            seen.setdefault(_single_spaced(stripped).rstrip(".。").casefold(), stripped)
    return tuple(seen.values())


def _single_spaced(text: str) -> str:
    # Of all white space only the plain space counts as printable, so most texts need no splitting,
    # which takes five times as long.
    if text.isprintable() and "  " not in text:
        return text
    return " ".join(text.split())


def analysis(box: BallotSet, heard: Sequence[tuple[Order, Ballot]], *, both: bool) -> Analysis:
    told = [(order, ballot.analysis) for order, ballot in heard if _says(ballot.analysis)]
    if not told:
        return Analysis()
    if not both and not (box.keep_both and len({analysis for _, analysis in told}) > 1):
        return told[0][1]

    return Analysis(
        response_a=_gathered(box, [(order, analysis.response_a) for order, analysis in told]),
        response_b=_gathered(box, [(order, analysis.response_b) for order, analysis in told]),
    )


def _gathered(box: BallotSet, told: Sequence[tuple[Order, ResponseAnalysis]]) -> ResponseAnalysis:
    marked = [(marks(box.locale)[order], analysis) for order, analysis in told]
    return ResponseAnalysis(
        strengths=distinct([which + text for which, told in marked for text in told.strengths]),
        weaknesses=distinct([which + text for which, told in marked for text in told.weaknesses]),
    )


def _says(analysis: Analysis) -> bool:
    a, b = analysis.response_a, analysis.response_b
    return bool(a.strengths or a.weaknesses or b.strengths or b.weaknesses)
