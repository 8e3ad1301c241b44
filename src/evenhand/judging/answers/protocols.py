"""The answer formats that a caller may name: two scores, LLMBar's outputs, three classes, and a
closing sentence. Of these only what is a mark is recognised without being named.
"""

from __future__ import annotations

import re

from evenhand.contract import Scores, Winner
from evenhand.judging.answers.quotations import disowned
from evenhand.judging.answers.results import (
    AnswerProtocol,
    ParsedVerdict,
    ParseFailure,
    shown,
    shown_end,
)
from evenhand.judging.answers.sentences import Claim, claims, concluded
from evenhand.judging.answers.vocabulary import calls_by_number, letter
from evenhand.messages import Message

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
_SCORED = re.compile(
    rf"(?i:\b(?:give|gave|rate|award|assign)s?\s(?:the\s)?){_who('[1A]')}"
    rf"[^.\n]{{0,20}}?\b{_NUMBER}(?:/10)?\b[^.\n]{{0,30}}?{_who('[2B]')}"
    rf"[^.\n]{{0,20}}?\b{_NUMBER}(?:/10)?\b"
)
_INLINE = re.compile(
    rf"{_who('(?P<who>[12AB])')}[^\n]{{0,400}}?(?i:\bscore)(?:\s(?:is|of))?\s?[:：]?\s?"
    rf"{_NUMBER}(?:\s?/\s?10)?(?![\d.]\d)"
)


# "<answer>8</answer><answer>6</answer>", as JudgeLRM ends.
_TAGGED = re.compile(
    rf"(?:<(?P<tag>answer|score|rating)(?:_?[1A])?>\s{{0,4}}{_NUMBER}\s{{0,4}}</(?P=tag)(?:_?[1A])?>\s{{0,4}},?\s{{0,4}}"
    rf"<(?P=tag)(?:_?[2B])?>\s{{0,4}}{_NUMBER}\s{{0,4}}</(?P=tag)(?:_?[2B])?>)[\s.]{{0,4}}$",
    re.IGNORECASE,
)


def _by_scores(scores: Scores) -> Winner:
    return "TIE" if scores.a == scores.b else "A" if scores.a > scores.b else "B"


def _scores(first: str, second: str) -> Scores:
    return Scores(a=float(first), b=float(second))


def first_line(text: str) -> Scores | None:
    opening = text.lstrip().split("\n", 1)[0][:80].strip()
    match = _FIRST_LINE.fullmatch(opening)
    return None if match is None else _scores(match[1], match[2])


def tagged_scores(body: str) -> ParsedVerdict | None:
    """Two scores in tags that close the answer."""
    match = _TAGGED.search(body[-200:])
    if match is None:
        return None
    scores = _scores(match[2], match[3])
    return ParsedVerdict(_by_scores(scores), "scores", scores=scores)


def read_scores(text: str, *, in_prose: bool = True) -> ParsedVerdict | ParseFailure:
    """The winner by the two scores; a closing sentence that says otherwise is a contradiction."""
    scores = first_line(text) or _later(text, in_prose=in_prose)
    if scores is None:
        return ParseFailure("no_verdict", Message("unread.no_two_scores"))
    winner = _by_scores(scores)
    if disowned(text[:400], len(text.split("\n", 1)[0]), winner):
        return ParseFailure("contradiction", Message("unread.scores_of_response"))
    said = [claim for claim in claims(text) if not claim.noun.startswith("(")]
    if winner != "TIE" and said and said[-1].winner not in (winner, "TIE"):
        return ParseFailure(
            "contradiction",
            Message("unread.scores_and_sentence_differ", winner=winner, winner2=said[-1].winner),
        )
    return ParsedVerdict(winner, "scores", scores=scores)


def _later(text: str, *, in_prose: bool) -> Scores | None:
    text = text[-20_000:]
    pairs = [*_TUPLE.finditer(text), *(_SCORED.finditer(text) if in_prose else ())]
    if pairs:
        # Told twice they must name the same winner; the last ones stand.
        said = [_scores(match[1], match[2]) for match in sorted(pairs, key=_start)]
        return said[-1] if len({_by_scores(each) for each in said}) == 1 else None
    firsts, seconds = _FIRST.findall(text), _SECOND.findall(text)
    if firsts and seconds:
        return _scores(firsts[-1], seconds[-1])
    if not in_prose:
        return None
    inline = {match["who"]: match[2] for match in _INLINE.finditer(text)}
    first, second = inline.get("1", inline.get("A")), inline.get("2", inline.get("B"))
    return _scores(first, second) if first and second else None


def _start(match: re.Match[str]) -> int:
    return match.start()


# Verdicts that stand in a sentence or alone on the last line: LLMBar and the three classes.

_BARE_OUTPUT = re.compile(
    r"[\s*_`\"'>#]{0,6}(?:(?i:therefore|so|thus|answer|verdict|final answer|因此)[,:，：]?\s{1,2})?"
    r"(?:(?:(?i:output)|输出)\s{0,2}[(（]?(?P<id>[abAB])[)）]?|[(（](?P<paren>[ab])[)）])"
    r"[\s*_`\"'.。]{0,6}"
)
_DIGIT_LINE = re.compile(
    r"[\s*_`\"'>#(\[]{0,6}(?:(?i:(?:my\s|final\s)?(?:answer|choice|verdict|rating|option)|选择"
    r"|答案|结论)\s?"
    r"(?:is\s)?[:：]?\s{0,2})?[*_`(\[]{0,4}(?P<digit>[1-9])[\s*_`\"'.。)\]]{0,6}"
)
_CHOSEN = re.compile(
    r"(?i:\b(?:i\s(?:would\s|will\s)?(?:choose|select|pick|output|give|rate|answer)|my\s(?:choice"
    r"|answer|verdict"
    r"|rating)\sis|answer\sis|output\sis|verdict\sis)|选择(?:是|为)?|答案是|结论是)"
    r"[\s:：]{0,3}(?i:option\s|class\s|number\s"
    r"|选项)?[*_\"'(]{0,3}(?P<digit>[123])(?![\d.]\d)(?![A-Za-z0-9/])"
)
_UNFINISHED = re.compile(
    r"(?i:\b(?:therefore|thus|hence|overall|in conclusion)\b"
    r"[\s,]{0,3}(?:the\s)?(?:output)?[\s(]{0,3})$"
)
_FINISHED = (".", "。", "!", "！", "?", "？", ")", "）", '"', "”", "`", "*", "'", ":")
_CLASS_NAMED = re.compile(
    r"\b(?:answer|choice|verdict|decision|judge?ment|conclusion|class|option|rating|winner|result"
    r"|best|better|preferred|output|final|overall|therefore|evaluation|so|choose|select|pick|i)\b"
    r"|选|答案|结论|判|结果|最|评|因此|所以|输出",
    re.IGNORECASE,
)
_DEBATERS = re.compile(r"(?:Assistant|助手|助理)\s?[12]")
_CLASS: dict[str, Winner] = {"1": "A", "2": "B", "3": "TIE"}


def last_line(text: str) -> str:
    return text.rstrip().rsplit("\n", 1)[-1][-400:]


def read_outputs(text: str) -> ParsedVerdict | ParseFailure:
    """LLMBar: `Output (a) is better`, or `Output (a)` alone."""
    bare = _BARE_OUTPUT.fullmatch(text[:80]) if len(text) <= 80 else None
    if bare is not None:
        return ParsedVerdict(letter(bare["id"] or bare["paren"]), "llmbar")
    made = [claim for claim in claims(text, ties=False) if _of_output(claim)]
    closing = _BARE_OUTPUT.fullmatch(last_line(text))
    if closing is not None:
        # The last line is the last word, whatever was weighed before it, but not another verdict.
        last = letter(closing["id"] or closing["paren"])
        if any(claim.concluding and claim.winner != last for claim in made):
            return ParseFailure("contradiction", Message("unread.last_line_contradicted"))
        return ParsedVerdict(last, "llmbar")
    verdict = concluded(made)
    if verdict == "none":
        return ParseFailure(
            "no_verdict",
            Message("unread.none_called_better", last_line=shown_end(last_line(text))),
        )
    if verdict == "split":
        return _split(made)
    winner = verdict[0]
    ending = text.rstrip()[-60:]
    firm = any(c.concluding or c.alone for c in made if c.winner == winner)
    if _UNFINISHED.search(ending) or (not firm and not ending.endswith(_FINISHED)):
        return ParseFailure(
            "truncated", Message("unread.cut_before_conclusion", ending=shown(ending))
        )
    return ParsedVerdict(winner, "llmbar")


def _of_output(claim: Claim) -> bool:
    if "output" in claim.noun.casefold() or "输出" in claim.noun:
        return True
    return claim.noun.startswith(("(a)", "(b)"))


def _split(made: list[Claim]) -> ParseFailure:
    said = ", ".join(dict.fromkeys(claim.winner for claim in made))
    return ParseFailure("contradiction", Message("unread.two_called_better", said=said))


def read_class(text: str) -> ParsedVerdict | ParseFailure:
    """Three classes: the last line is 1, 2 or 3, alone or in a sentence that chooses it."""
    closing = last_line(text)
    alone = _DIGIT_LINE.fullmatch(closing)
    if alone is not None:
        winner = _CLASS.get(alone["digit"])
        if winner is None:
            return ParseFailure(
                "off_menu", Message("unread.last_line_no_choice", alone=alone["digit"])
            )
        before = text.rstrip()[: -len(closing)].rstrip()
        if before[-1:] in (":", "：") and not _CLASS_NAMED.search(last_line(before)):
            return ParseFailure(
                "no_verdict", Message("unread.last_line_names", before=shown(before[-60:]))
            )
        against = [_CLASS[match["digit"]] for match in _CHOSEN.finditer(before)]
        if before in _CLASS:  # two digits and nothing else
            against.append(_CLASS[before])
        against += [claim.winner for claim in claims(before) if claim.alone]
        if against and against[-1] != winner:
            return ParseFailure(
                "contradiction",
                Message("unread.last_line_differs", alone=alone["digit"], against=against[-1]),
            )
        return ParsedVerdict(winner, "three-class")
    chosen = {match["digit"] for match in _CHOSEN.finditer(closing)}
    if (
        len(chosen) == 1
        and "?" not in closing
        and not re.search(
            r"(?i)\b(?:not|cannot|if|would be)\b|n't|不|如果",
            closing[: closing.find(next(iter(chosen)))][-25:],
        )
    ):
        return ParsedVerdict(_CLASS[chosen.pop()], "three-class")
    if chosen:
        return ParseFailure(
            "contradiction", Message("unread.last_line_chooses_two", closing=shown(closing))
        )
    made = [
        claim for claim in claims(text) if _DEBATERS.search(claim.noun) or claim.winner == "TIE"
    ]
    verdict = concluded(made)
    if isinstance(verdict, tuple) and (verdict[1].concluding or _in_last_line(text, verdict[1])):
        return ParsedVerdict(verdict[0], "three-class")
    if verdict == "split":
        return _split(made)
    return ParseFailure("no_verdict", Message("unread.last_line_no_class", closing=shown(closing)))


def _in_last_line(text: str, claim: Claim) -> bool:
    return claim.start >= len(text.rstrip()) - len(last_line(text))


OUTPUT = re.compile(r"(?:(?i:\boutput)|输出)\s{0,2}[(（][abAB][)）]|^\s*\([ab]\)[\s.]*$")
NUMBERED = re.compile(r"(?:(?i:\bassistant)|助手|助理)\s?[12]")


def closing_mark(text: str) -> ParsedVerdict | ParseFailure | None:
    """The marks of these protocols, recognised without being named: `(a)` or `2` as the last line,
    two scores on the first one or on lines of their own."""
    closing = last_line(text)
    if _BARE_OUTPUT.fullmatch(closing) and OUTPUT.search(text):
        return read_outputs(text)
    numbered = NUMBERED.search(text) is not None
    if not numbered and not calls_by_number(text):
        return None
    if first_line(text) is None and _DIGIT_LINE.fullmatch(closing):
        return read_class(text)
    if not numbered:
        return None
    scored = read_scores(text, in_prose=False)
    return None if isinstance(scored, ParseFailure) and scored.kind == "no_verdict" else scored


def read_conclusion(text: str, protocol: AnswerProtocol) -> ParsedVerdict | ParseFailure:
    """A closing sentence such as "Therefore, Assistant A is better", where no mark was given."""
    made = claims(text)
    verdict = concluded(made)
    if verdict == "split":
        return _split(made)
    if verdict == "none":
        return ParseFailure(
            "no_verdict", Message("unread.no_verdict", last_line=shown_end(last_line(text)))
        )
    winner, claim = verdict
    if disowned(text[claim.start : claim.end + 400], claim.end - claim.start, winner):
        return ParseFailure("contradiction", Message("unread.verdict_of_response", winner=winner))
    if not (claim.concluding or claim.own_line or _in_last_line(text, claim)):
        return ParseFailure("no_verdict", Message("unread.nothing_concludes"))
    return ParsedVerdict(winner, protocol)
