"""The answer formats that a caller may name: two scores, LLMBar's outputs, three classes, and a
closing sentence. Of these only what is a mark is recognised without being named.
"""

from __future__ import annotations

import re

from evenhand.contract import AnswerProtocol, Scores, Winner
from evenhand.judging.answers.quotations import disowned
from evenhand.judging.answers.results import (
    ParsedVerdict,
    ParseFailure,
    shown,
    shown_end,
)
from evenhand.judging.answers.sentences import Claim, claims
from evenhand.judging.answers.vocabulary import NOUN, calls_by_number, letter
from evenhand.messages import Message


def last_line(text: str) -> str:
    return text.rstrip().rsplit("\n", 1)[-1][-400:]


# Two scores, the first for the first response: the higher one wins.

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
_GIVEN = re.compile(
    rf"(?i:\b(?:give|gave|rate|award|assign)s?\s(?:the\s)?){_who('[1A]')}"
    rf"[^.\n]{{0,20}}?\b{_NUMBER}(?:/10)?\b[^.\n]{{0,30}}?{_who('[2B]')}"
    rf"[^.\n]{{0,20}}?\b{_NUMBER}(?:/10)?\b"
)
# "<answer>8</answer><answer>6</answer>", as JudgeLRM ends.
_TAGGED = re.compile(
    rf"(?:<(?P<tag>answer|score"
    rf"|rating)(?:_?[1A])?>\s{{0,4}}{_NUMBER}\s{{0,4}}</(?P=tag)(?:_?[1A])?>\s{{0,4}},?\s{{0,4}}"
    rf"<(?P=tag)(?:_?[2B])?>\s{{0,4}}{_NUMBER}\s{{0,4}}</(?P=tag)(?:_?[2B])?>)[\s.]{{0,4}}$",
    re.IGNORECASE,
)


def by_scores(first: str, second: str) -> ParsedVerdict:
    scores = Scores(a=float(first), b=float(second))
    winner: Winner = "TIE" if scores.a == scores.b else "A" if scores.a > scores.b else "B"
    return ParsedVerdict(winner, "scores", scores=scores)


def tagged_scores(body: str) -> ParsedVerdict | None:
    """Two scores in tags that close the answer."""
    match = _TAGGED.search(body[-200:])
    return None if match is None else by_scores(match[2], match[3])


def _opening_scores(text: str) -> ParsedVerdict | None:
    match = _FIRST_LINE.fullmatch(text.lstrip().split("\n", 1)[0][:80].strip())
    return None if match is None else by_scores(match[1], match[2])


def read_scores(text: str, *, in_prose: bool = True) -> ParsedVerdict | ParseFailure:
    """The winner by the two scores; a closing sentence that says otherwise is a contradiction."""
    verdict = _opening_scores(text) or _later_scores(text, in_prose=in_prose)
    if verdict is None:
        return ParseFailure("no_verdict", Message("unread.no_two_scores"))
    winner = verdict.winner
    if disowned(text.lstrip().partition("\n")[2][:400], winner):
        return ParseFailure("contradiction", Message("unread.scores_of_response"))
    said = claims(text)[-1:]
    if winner != "TIE" and said and said[0].winner not in (winner, "TIE"):
        return ParseFailure(
            "contradiction",
            Message("unread.scores_and_sentence_differ", winner=winner, winner2=said[0].winner),
        )
    return verdict


def _later_scores(text: str, *, in_prose: bool) -> ParsedVerdict | None:
    text = text[-20_000:]
    pairs = [*_TUPLE.finditer(text), *(_GIVEN.finditer(text) if in_prose else ())]
    if pairs:
        # Named twice they must name the same winner; the last ones stand.
        pairs.sort(key=lambda match: match.start())
        said = [by_scores(match[1], match[2]) for match in pairs]
        return said[-1] if len({each.winner for each in said}) == 1 else None
    firsts, seconds = _FIRST.findall(text), _SECOND.findall(text)
    return by_scores(firsts[-1], seconds[-1]) if firsts and seconds else None


def _scored(who: str) -> str:
    return (
        rf"[*_`\s]{{0,4}}(?:(?i:score|rating)s?\s?(?:of"
        rf"|for)?[\s:]{{1,2}})?(?:{NOUN}\s?)?{who}[*_`]{{0,3}}"
        rf"(?:['’]s\s(?:score|rating))?\s?(?:[:：=]|\s[-–—]|得|gets|is)\s?[*_`]{{0,3}}"
        r"(\d{1,3}(?:\.\d{1,2})?)(?:\s?/\s?(\d{1,3})|\s?分)?[*_`]{0,3}"
    )


_SHORT = re.compile(
    rf"(?:(?:(?i:scores?|ratings?)\s?|得分"
    rf"|评分)[:：])?{_scored('[A1]')}[\s,;，；.]{{1,4}}(?:and\s)?"
    rf"{_scored('[B2]')}[\s.!。！*_`]{{0,6}}"
)


def read_short_scores(body: str) -> ParsedVerdict | None:
    """`A: 8, B: 6`, where that is the whole answer."""
    match = _SHORT.fullmatch(body)
    return None if match is None or match[2] != match[4] else by_scores(match[1], match[3])


# LLMBar: `Output (a) is better`, or `Output (a)` alone.

_OUTPUT_LINE = re.compile(
    r"[\s*_`\"'>#]{0,6}(?:(?i:therefore|so|thus|answer|verdict|final answer|因此)[,:，：]?\s{1,2})?"
    r"(?P<id>(?:(?i:output)|输出)\s{0,2}[(（]?[abAB][)）]?|[(（][ab][)）])[\s*_`\"'.。]{0,6}"
)
_OF_OUTPUT = re.compile(r"(?i:\boutput)|输出|(?<![\w)] )\([ab]\)")
_UNFINISHED = re.compile(
    r"(?i:\b(?:therefore|thus|hence|overall|in conclusion)\b"
    r"[\s,]{0,3}(?:the\s)?(?:output)?[\s(]{0,3})$"
)


def read_outputs(text: str) -> ParsedVerdict | ParseFailure:
    made = [claim for claim in claims(text) if _OF_OUTPUT.search(claim.noun)]
    made = [claim for claim in made if claim.winner != "TIE"]
    closing = _OUTPUT_LINE.fullmatch(last_line(text))
    if closing is not None:
        # The last line is the last word, whatever was weighed before it, but not another verdict.
        last = letter(closing["id"])
        if any(claim.winner != last for claim in made):
            return ParseFailure("contradiction", Message("unread.last_line_contradicted"))
        return ParsedVerdict(last, "llmbar")
    if not made:
        return ParseFailure(
            "no_verdict",
            Message("unread.none_called_better", last_line=shown_end(last_line(text))),
        )
    ending = text.rstrip()[-60:]
    if _UNFINISHED.search(ending):
        return ParseFailure(
            "truncated", Message("unread.cut_before_conclusion", ending=shown(ending))
        )
    return _agreed(made, "llmbar")


def _agreed(made: list[Claim], protocol: AnswerProtocol) -> ParsedVerdict | ParseFailure:
    said = dict.fromkeys(claim.winner for claim in made)
    if len(said) > 1:
        return ParseFailure(
            "contradiction", Message("unread.two_called_better", said=", ".join(said))
        )
    return ParsedVerdict(made[-1].winner, protocol)


# Three classes: the last line is 1, 2 or 3, alone or in a sentence that chooses it.

_DIGIT_LINE = re.compile(
    r"[\s*_`\"'>#(\[]{0,6}(?:(?i:(?:my\s|final\s)?(?:answer|choice|verdict|rating|option)|选择"
    r"|答案|结论)\s?"
    r"(?:is\s)?[:：]?\s{0,2})?[*_`(\[]{0,4}(?P<digit>[1-9])[\s*_`\"'.。)\]]{0,6}"
)
_CHOSEN = re.compile(
    r"(?i:\b(?:i\s(?:would\s|will\s)?(?:choose|select|pick|output|give|rate|answer)|my\s(?:choice"
    r"|answer|verdict|rating)\sis|(?:answer|output|verdict)\sis)|选择(?:是|为)?|答案是|结论是)"
    r"[\s:：]{0,3}(?i:option\s|class\s|number\s|选项)?[*_\"'(]{0,3}(?P<digit>[123])"
    r"(?![\d.]\d)(?![A-Za-z0-9/])"
)
_UNREAL = re.compile(r"(?i)\b(?:not|cannot|if|would be)\b|n't|\?|不|如果")
# A line that ends in a colon and names something else than the verdict is not followed by one.
_CLASS_NAMED = re.compile(
    r"\b(?:answer|choice|verdict|decision|judge?ment|conclusion|class|option|rating|winner|result"
    r"|best|better|preferred|output|final|overall|therefore|evaluation|so|choose|select|pick|i)\b"
    r"|选|答案|结论|判|结果|最|评|因此|所以|输出",
    re.IGNORECASE,
)
_CLASS: dict[str, Winner] = {"1": "A", "2": "B", "3": "TIE"}


def read_class(text: str) -> ParsedVerdict | ParseFailure:
    closing = last_line(text)
    alone = _DIGIT_LINE.fullmatch(closing)
    if alone is not None:
        return _closing_class(text.rstrip()[: -len(closing)].rstrip(), alone["digit"])
    chosen = {match["digit"] for match in _CHOSEN.finditer(closing)}
    if len(chosen) > 1 or (chosen and _UNREAL.search(closing)):
        return ParseFailure(
            "contradiction", Message("unread.last_line_chooses_two", closing=shown(closing))
        )
    if chosen:
        return ParsedVerdict(_CLASS[chosen.pop()], "three-class")
    made = [each for each in claims(text) if NUMBERED.search(each.noun) or each.winner == "TIE"]
    if not made:
        return ParseFailure(
            "no_verdict", Message("unread.last_line_no_class", closing=shown(closing))
        )
    return _agreed(made, "three-class")


def _closing_class(before: str, digit: str) -> ParsedVerdict | ParseFailure:
    winner = _CLASS.get(digit)
    if winner is None:
        return ParseFailure("off_menu", Message("unread.last_line_no_choice", alone=digit))
    if before[-1:] in (":", "：") and not _CLASS_NAMED.search(last_line(before)):
        return ParseFailure(
            "no_verdict", Message("unread.last_line_names", before=shown(before[-60:]))
        )
    against = [_CLASS[match["digit"]] for match in _CHOSEN.finditer(before)]
    if before in _CLASS:  # two digits and nothing else
        against.append(_CLASS[before])
    against += [claim.winner for claim in claims(before)[-1:]]
    if against and against[-1] != winner:
        return ParseFailure(
            "contradiction",
            Message("unread.last_line_differs", alone=digit, against=against[-1]),
        )
    return ParsedVerdict(winner, "three-class")


OUTPUT = re.compile(r"(?:(?i:\boutput)|输出)\s{0,2}[(（][abAB][)）]|^\s*\([ab]\)[\s.]*$")
NUMBERED = re.compile(r"(?:(?i:\bassistant)|助手|助理)\s?[12]")


def closing_mark(text: str) -> ParsedVerdict | ParseFailure | None:
    """The marks of these protocols, recognised without being named: `(a)` or `2` as the last line,
    two scores on the first one or on lines of their own."""
    closing = last_line(text)
    if _OUTPUT_LINE.fullmatch(closing) and OUTPUT.search(text):
        return read_outputs(text)
    numbered = NUMBERED.search(text) is not None
    if not numbered and not calls_by_number(text):
        return None
    if _opening_scores(text) is None and _DIGIT_LINE.fullmatch(closing):
        return read_class(text)
    scored = read_scores(text, in_prose=False) if numbered else None
    return None if isinstance(scored, ParseFailure) and scored.kind == "no_verdict" else scored


def read_conclusion(text: str, protocol: AnswerProtocol) -> ParsedVerdict | ParseFailure:
    """Sentences such as "Therefore, Assistant A is better", where no mark was given."""
    made = claims(text)
    if not made:
        return ParseFailure(
            "no_verdict", Message("unread.no_verdict", last_line=shown_end(last_line(text)))
        )
    last = made[-1]
    if disowned(text[last.end : last.end + 400], last.winner):
        return ParseFailure(
            "contradiction", Message("unread.verdict_of_response", winner=last.winner)
        )
    return _agreed(made, protocol)
