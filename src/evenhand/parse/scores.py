"""Two scores, the first for the first response: the higher one wins."""

from __future__ import annotations

import re

from evenhand.contract import Scores, Winner
from evenhand.parse.outcome import Failure, Reading
from evenhand.parse.prose import claims

_NUMBER = r"(\d{1,3}(?:\.\d{1,3})?)"
_FIRST_LINE = re.compile(
    rf"[\s*_`(\[]{{0,6}}{_NUMBER}(?:\s?/\s?\d{{1,3}})?(?:[ \t]{{1,4}}|\s?[,，;/|:]\s?){_NUMBER}"
    rf"(?:\s?/\s?\d{{1,3}})?[\s*_`)\]]{{0,6}}[.。]?"
)
_TUPLE = re.compile(
    r"(?i:\b(?:tuple|output|scores?)\b|元组|输出|得分|评分|分数)[^.\n()（）]{0,60}[:：\s]"
    rf"[*_`]{{0,3}}[(（]\s?{_NUMBER}\s?[,，]\s?{_NUMBER}\s?[)）]"
)


def _who(identity: str) -> str:
    return rf"(?:(?i:assistant|response|answer)|助手|助理|回答|响应)\s?[(（]?{identity}[)）]?"


def _line(identity: str) -> re.Pattern[str]:
    return re.compile(
        rf"^[ \t>*_\-•\d.]{{0,8}}{_who(identity)}(?:'s)?"
        r"(?:\s(?i:score|rating)|的?(?:得分|评分|分数))?"
        rf"[*_]{{0,3}}\s?[:：=][ \t*_]{{0,4}}(?:(?i:score)\s?[:：]\s?)?{_NUMBER}(?!\d)(?!\.\d)"
        r"(?=\s?(?:/\s?10|[(（\-–—,，.。]|[ \t*_]{0,4}$))",
        re.MULTILINE,
    )


_FIRST, _SECOND = _line("[1A]"), _line("[2B]")
_SCORED = re.compile(
    rf"(?i:\b(?:give|gave|rate|award|assign)s?\s(?:the\s)?){_who('[1A]')}"
    rf"[^.\n]{{0,20}}?\b{_NUMBER}(?:/10)?\b[^.\n]{{0,30}}?{_who('[2B]')}"
    rf"[^.\n]{{0,20}}?\b{_NUMBER}(?:/10)?\b"
)
_INLINE = re.compile(
    rf"{_who('(?P<who>[12AB])')}[^\n]{{0,400}}?(?i:\bscore)(?:\s(?:is|of))?\s?[:：]?\s?"
    rf"{_NUMBER}(?:\s?/\s?10)?(?![\d.]\d)"
)


def _by_scores(scores: Scores) -> Winner:
    return "TIE" if scores.a == scores.b else "A" if scores.a > scores.b else "B"


def _scores(first: str, second: str) -> Scores:
    return Scores(a=float(first), b=float(second))


def first_line(text: str) -> Scores | None:
    opening = text.lstrip().split("\n", 1)[0][:80].strip()
    match = _FIRST_LINE.fullmatch(opening)
    return None if match is None else _scores(match[1], match[2])


def read_scores(text: str, *, first_line_only: bool = False) -> Reading | Failure:
    """The winner by the two scores; a closing sentence that says otherwise is a contradiction."""
    scores = first_line(text)
    if scores is None and not first_line_only:
        scores = _later(text)
    if scores is None:
        return Failure("no_verdict", "no two scores to compare were found")
    winner = _by_scores(scores)
    said = [claim for claim in claims(text) if not claim.noun.startswith("(")]
    if winner != "TIE" and said and said[-1].winner not in (winner, "TIE"):
        return Failure(
            "contradiction",
            f"the scores say {winner}, the closing sentence says {said[-1].winner}",
        )
    return Reading(winner, "scores", scores=scores)


def _later(text: str) -> Scores | None:
    text = text[-20_000:]
    pairs = [*_TUPLE.finditer(text), *_SCORED.finditer(text)]
    if pairs:
        # Told twice they must name the same winner; the last ones stand.
        said = [_scores(match[1], match[2]) for match in sorted(pairs, key=_start)]
        return said[-1] if len({_by_scores(each) for each in said}) == 1 else None
    firsts, seconds = _FIRST.findall(text), _SECOND.findall(text)
    if firsts and seconds:
        return _scores(firsts[-1], seconds[-1])
    inline = {match["who"]: match[2] for match in _INLINE.finditer(text)}
    first, second = inline.get("1", inline.get("A")), inline.get("2", inline.get("B"))
    return _scores(first, second) if first and second else None


def _start(match: re.Match[str]) -> int:
    return match.start()
