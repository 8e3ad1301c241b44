"""What states a verdict in the formats that a caller may name, other than marks and labels: two
scores, LLMBar's outputs, three classes, and sentences. Sentences count only where the format was
named, or in an answer of a few words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenhand.contract import AnswerProtocol, Scores, Winner
from evenhand.judging.answers.quotations import is_mention
from evenhand.judging.answers.results import (
    PROSE,
    ParsedVerdict,
    ParseFailure,
    StatedVerdict,
    off_menu,
)
from evenhand.judging.answers.sentences import claims, closing
from evenhand.judging.answers.vocabulary import NOUN, calls_by_number, letter, winner_of


def last_line(text: str) -> str:
    return text.rstrip().rsplit("\n", 1)[-1][-400:]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _in_prose(start: int, text: str, reading: ParsedVerdict | ParseFailure) -> StatedVerdict:
    return StatedVerdict(start, start + len(text), text, PROSE, reading)


def _at_end(text: str, line: str, reading: ParsedVerdict | ParseFailure) -> StatedVerdict:
    return _in_prose(len(text.rstrip()) - len(line), line, reading)


# Two scores, the first for the first response: the higher one wins.

_NUMBER = r"(\d{1,3}(?:\.\d{1,3})?)"
_FIRST_LINE = re.compile(
    rf"[\s*_`(\[]{{0,6}}{_NUMBER}(?:\s?/\s?\d{{1,3}})?(?:[ \t]{{1,4}}|\s?[,，;/|:]\s?){_NUMBER}"
    rf"(?:\s?/\s?\d{{1,3}})?[ \t*_`)\]]{{0,6}}[.。]?[ \t]{{0,6}}$",
    re.MULTILINE,
)
_TUPLE = re.compile(
    r"(?i:\b(?:tuple|output|scores?)\b|元组|输出|得分|评分|分数)[^.\n()（）]{0,60}[:：\s]"
    rf"[*_`]{{0,3}}[(（]\s?{_NUMBER}\s?[,，]\s?{_NUMBER}\s?[)）]"
)


def _score_of(who: str) -> str:
    return (
        rf"[ \t>*_`•\d.-]{{0,8}}(?:{NOUN}\s?)?[(（]?{who}[)）]?"
        r"(?:['’]s\s(?i:score|rating)|\s(?i:score)|的?(?:得分|评分|分数))?[*_`]{0,3}\s?[:：=得]"
        rf"[ \t*_`]{{0,4}}{_NUMBER}(?:\s?/\s?(\d{{1,3}})|\s?分)?[*_`]{{0,3}}"
    )


_FIRST, _SECOND = (
    re.compile(rf"^{_score_of(who)}(?=[ \t]{{0,4}}$|\s?[(（–—,，.。-])", re.MULTILINE)
    for who in ("[1A]", "[2B]")
)
# "<answer>8</answer><answer>6</answer>", as JudgeLRM ends, with the tags made plain.
_TAGGED = re.compile(
    rf"\sanswer:\s{{0,4}}{_NUMBER}\s{{9,13}},?\s{{1,5}}answer:\s{{0,4}}{_NUMBER}[\s.]{{0,16}}\Z",
    re.IGNORECASE,
)


def _by_scores(match: re.Match[str], first: str, second: str) -> StatedVerdict:
    scores = Scores(a=float(first), b=float(second))
    winner: Winner = "TIE" if scores.a == scores.b else "A" if scores.a > scores.b else "B"
    return _in_prose(match.start(), match[0], ParsedVerdict(winner, "scores", scores=scores))


def _scores(text: str) -> list[StatedVerdict]:
    """On the first line; or else as pairs; or else on lines of their own, the last of them."""
    if opening := _FIRST_LINE.match(text):
        return [_by_scores(opening, opening[1], opening[2])]
    if pairs := list(_TUPLE.finditer(text)):
        return [_by_scores(pair, pair[1], pair[2]) for pair in pairs]
    first, second = [*_FIRST.finditer(text)][-1:], [*_SECOND.finditer(text)][-1:]
    return [_by_scores(b, a[1], b[1]) for a, b in zip(first, second, strict=False)]


# LLMBar: `Output (a) is better`, or `Output (a)` alone.

_OUTPUT = re.compile(r"(?:(?i:\boutput)|输出)\s{0,2}[(（][abAB][)）]|^\s*\([ab]\)[\s.]*$")
_OUTPUT_LINE = re.compile(
    r"[\s*_`\"'>#]{0,6}(?:(?i:therefore|so|thus|answer|verdict|final answer|因此)[,:，：]?\s{1,2})?"
    r"(?P<id>(?:(?i:output)|输出)\s{0,2}[(（]?[abAB][)）]?|[(（][ab][)）])[\s*_`\"'.。]{0,6}"
)
_OF_OUTPUT = re.compile(r"(?i:\boutput)|输出|(?<![\w)] )\([ab]\)")


def _output_line(text: str) -> list[StatedVerdict]:
    line = last_line(text)
    match = _OUTPUT_LINE.fullmatch(line)
    if match is None:
        return []
    return [_at_end(text, line, ParsedVerdict(letter(match["id"]), "llmbar"))]


# Three classes: the last line is 1, 2 or 3, alone or in a sentence that chooses it.

_NUMBERED = re.compile(r"(?:(?i:\bassistant)|助手|助理)\s?[12]")
_OF_CLASS = re.compile(rf"{_NUMBERED.pattern}|(?:(?i:option)|选项)\\s?[12]")
_DIGIT_LINE = re.compile(
    r"[\s*_`\"'>#(\[]{0,6}(?:(?i:(?:my\s|final\s)?(?:answer|choice|verdict|rating|option)|选择"
    r"|答案|结论)\s?"
    r"(?:is\s)?[:：]?\s{0,2})?[*_`(\[]{0,4}(?P<digit>[1-9])[\s*_`\"'.。)\]]{0,6}"
)
# A line that ends in a colon and names something else than the verdict is not followed by one.
_CLASS_NAMED = re.compile(
    r"\b(?:answer|choice|verdict|decision|judge?ment|conclusion|class|option|rating|winner|result"
    r"|best|better|preferred|output|final|overall|therefore|evaluation|so|choose|select|pick|i)\b"
    r"|选|答案|结论|判|结果|最|评|因此|所以|输出",
    re.IGNORECASE,
)
_CLASS: dict[str, Winner] = {"1": "A", "2": "B", "3": "TIE"}


def _class_lines(text: str) -> list[StatedVerdict]:
    line = last_line(text)
    before = text.rstrip()[: -len(line)].rstrip() if line else ""
    match = _DIGIT_LINE.fullmatch(line)
    if match is None or (before[-1:] in (":", "：") and not _CLASS_NAMED.search(last_line(before))):
        return []
    winner = _CLASS.get(match["digit"])
    reading = off_menu(line) if winner is None else ParsedVerdict(winner, "three-class")
    # Two numbers and nothing else are two verdicts.
    return [*(_class_lines(before) if before in _CLASS else []), _at_end(text, line, reading)]


# What all of them have in common.


def closing_lines(text: str, protocol: AnswerProtocol | None) -> list[StatedVerdict]:
    """What decides without a sentence, where its format is named or the text names the responses as
    it does: scores, and a last line of `(a)` or `2`."""
    numbered = protocol is None and _NUMBERED.search(text) is not None
    found: list[StatedVerdict] = []
    if protocol in (None, "scores"):
        tagged = _TAGGED.search(text)
        if tagged is not None and not is_mention(text, *tagged.span()):
            found.append(_by_scores(tagged, tagged[1], tagged[2]))
    if protocol == "llmbar" or (protocol is None and _OUTPUT.search(text)):
        found += _output_line(text)
    if protocol == "three-class" or numbered or (protocol is None and calls_by_number(text)):
        found += _class_lines(text)
    if protocol == "scores" or (numbered and not found):
        found += _scores(text)
    return found


def claimed(text: str, protocol: AnswerProtocol | None = None) -> list[StatedVerdict]:
    """The sentences that state a verdict; of a named format only those that call the responses as
    it does."""
    return [
        _in_prose(claim.start, claim.noun, ParsedVerdict(claim.winner, protocol or "evenhand"))
        for claim in claims(text)
        if protocol != "llmbar" or (claim.winner != "TIE" and _OF_OUTPUT.search(claim.noun))
        if protocol != "three-class" or claim.winner == "TIE" or _OF_CLASS.search(claim.noun)
    ]


def last_alone(text: str) -> list[StatedVerdict]:
    """A last line that is a verdict and nothing else."""
    line = last_line(text)
    winner = winner_of(line)
    return [] if winner is None else [_at_end(text, line, ParsedVerdict(winner))]


def in_sentences(text: str, protocol: AnswerProtocol) -> list[StatedVerdict]:
    """What a text states in a format that was named; in our own a line that is a verdict and
    nothing else is one."""
    if protocol == "scores":
        return []
    alone = [(start, line, winner_of(line)) for start, line in _lines(text)]
    lines = [_in_prose(at, line, ParsedVerdict(winner)) for at, line, winner in alone if winner]
    # One in the middle may be a heading: only as the first or the last line it decides.
    inside = lines and text[: lines[0].start].strip() and text[lines[-1].end :].strip()
    return claimed(text, protocol) + (lines if protocol == "evenhand" and not inside else [])


_OF_ASSISTANTS = re.compile(r"(?i:\bassistant)\s?[AB]\b|助手\s?[AB]")
_BOXED = re.compile(r"\$?\\boxed\{(?:\\text\{)?([^{}]{1,20})\}{1,2}\$?")


def in_short(text: str) -> list[StatedVerdict]:
    """What an answer of a few words comes to."""
    if _OUTPUT.search(text):
        return claimed(text, "llmbar")
    if text.strip() in _CLASS:
        return _class_lines(text)
    if _NUMBERED.search(text) or calls_by_number(text):
        by_class = in_sentences(text, "three-class")
        if by_class:
            return by_class
    boxed = _BOXED.fullmatch(text.strip())
    winner = closing(text.strip() if boxed is None else boxed[1])
    # A third one is a tie only beside two that are numbered.
    if winner is None or (winner == "TIE" and "3" in text):
        return []
    protocol: AnswerProtocol = "mt-bench" if _OF_ASSISTANTS.search(text) else "evenhand"
    return [_in_prose(0, text, ParsedVerdict(winner, protocol))]
