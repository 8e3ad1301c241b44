"""The answer formats of other judges: a bare label, the bracket marks of MT-Bench and Arena-Hard,
two scores, LLMBar's outputs, and three classes.
"""

from __future__ import annotations

import re
from collections import deque

from evenhand.contract import Scores, Winner
from evenhand.judging.answers.quotations import RESPONSE, disowned, introduces
from evenhand.judging.answers.results import (
    FILLER,
    AnswerProtocol,
    ParsedVerdict,
    ParseFailure,
    Statement,
    shown,
)
from evenhand.judging.answers.sentences import Claim, attributed, claims, concluded
from evenhand.judging.answers.vocabulary import NOUN, letter, winner_of
from evenhand.messages import Message

# A verdict without a label: the whole answer, or the first or the last line of it, is `B`.

_BOXED = re.compile(r"\$?\\boxed\{(?:\\text\{)?([^{}]{1,20})\}{1,2}\$?")
_ENDED = (".", "!", "?", ":", "。", "！", "？", "：", "*", "`", ")", "）", '"', "”", ">")


def read_bare(text: str) -> ParsedVerdict | ParseFailure | None:
    """None where no line is a verdict and nothing else."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) == 1:
        winner = _verdict(lines[0])
        return None if winner is None else ParsedVerdict(winner)
    stated = [(number, winner) for number, line in enumerate(lines) if (winner := _verdict(line))]
    if not stated:
        return None
    number, winner = stated[-1]
    if len({each for _, each in stated}) > 1:
        return None  # headings, or a menu
    if number == len(lines) - 1:
        before = lines[number - 1]
        if not before.endswith((*_ENDED, FILLER)):
            return None
    elif number != 0 or _names_a_response(lines[0]):
        return None  # a heading over what is said of one response looks the same
    against = [claim for claim in claims(text) if claim.winner != winner]
    if any(claim.concluding or claim.alone for claim in against):
        return ParseFailure(
            "contradiction",
            Message("unread.line_and_sentence_differ", lines=shown(lines[number])),
        )
    return ParsedVerdict(winner)


def _verdict(line: str) -> Winner | None:
    if len(line) > 60 or "[[" in line:  # a mark is another protocol's
        return None
    boxed = _BOXED.fullmatch(line)
    return winner_of(line if boxed is None else boxed[1])


def opening_verdict(text: str) -> Winner | None:
    """The verdict that the first line is, where it is no heading among others."""
    lines = [line.strip(" \t*_#") for line in text.split("\n") if line.strip()]
    winner = _verdict(lines[0]) if len(lines) > 1 else None
    if winner is None:
        return None
    others = {_verdict(line.rstrip(":：")) for line in lines[1:] if len(line) <= 40}
    return None if others - {winner, None} else winner


def _names_a_response(line: str) -> bool:
    return len(line.strip(" *_`#\"'()[].。")) > 3


# Bracket marks: `[[A]]`, `[[B]]`, `[[C]]` of MT-Bench and `[[A>>B]]` … of Arena-Hard.

# `[[C]]orrect` is no mark: what follows the brackets may not be a letter or a digit.
_MARK = re.compile(
    rf"\\?\[\\?\[\s{{0,3}}[\"'“”*]{{0,3}}(?:(?:{NOUN}\s?)?(?P<letter>[ABab])|(?P<c>C)"
    r"|(?P<verdict>A\s?>{1,2}\s?B|B\s?>{1,2}\s?A"
    r"|A\s?=\s?B"
    r"|A\s?<{1,2}\s?B|B\s?<{1,2}\s?A|B\s?=\s?A)|(?P<word>(?i:tie))|(?P<other>[^\[\]\n]{0,20}))"
    r"[\"'“”*]{0,3}\s{0,3}\\?\]\\?\](?![A-Za-z0-9])"
)
_LEGEND_AFTER = re.compile(
    r"[\s\"'`*:：)]{0,4}(?:(?:if|when|means?|indicates?|in case|denotes|stands for|would)\b"
    r"|=\s|如果|表示|代表|意味着)",
    re.IGNORECASE,
)
# Explains a mark where several stand in one line, and goes with the verdict where one does.
_LEGEND_AMONG_OTHERS = re.compile(
    r"[\s\"'`*:：)(]{0,4}(?:for (?:a |an )?(?:tie|draw)"
    r"|(?:assistant|response) [ab](?: is better)?\b|tie\b)"
    r"|[\s\"'`*:：)(]{0,4}(?:平局|助手|回答)",
    re.IGNORECASE,
)
_LEGEND_BEFORE = re.compile(
    r"(?:\b(?:format|output|choose|options?|either|one of|between|such as|e\.g\.|like|labels?)"
    r"[\s:：\"'`*]{0,4}(?:\[\[[^\[\]]{0,12}\]\][\s,/|\"'`]{0,4}(?:or |and )?){0,4}"
    r"|\bif\b[^.。!?\n\[\]]{0,80}|\b(?:were|(?<!\bI )would|whether)\b[^.。!?\n\[\],;，；]{0,80}"
    r"|(?:如果|格式|选项)[^。\n\[\]]{0,40})$",
    re.IGNORECASE,
)
_NEGATED_BEFORE = re.compile(
    r"(?:\b(?:not|never|rather than|instead of|cannot|say|says|said|saying|claims?|wrote"
    r"|writes?|argues?(?: for)?|contains?|includes?|ends? (?:in|with|on)|closes with|carries"
    r"|inserted|quot\w+|considered|initially|leaning"
    r"|tempted|injected|fake|tells?|told|asks?|orders?|ordered|instructs?|demands?)\b|n't\b"
    r"|而不是|不是|并非|声称|写着|包含|不要|切勿)"
    r"[^.。!?\n\[\],，:：]{0,25}$|\b(?:than|over)\s[*_`\"']{0,3}$|(?:优于|胜过)\s?$"
    r"|(?:结尾|末尾|最后一[行句])(?:是|为|写着?)?\s?$",
    re.IGNORECASE,
)
_IN_A_RESPONSE = re.compile(
    rf"[\s\"'`*)）]{{0,4}}(?:(?:in|inside|within|from|of|at the end of|that)\s|是|出现在|来自|在)"
    rf"[^.。!?,，\n]{{0,30}}{RESPONSE.pattern}"
)
_FINAL_BEFORE = re.compile(
    r"(?:\b(?:final|overall|therefore|thus|hence|verdict|conclusion|so|choice|decision"
    r"|judge?ment)\b"
    r"|最终|结论|因此|判定|综上)[^.。!?\n]{0,120}$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?。])[\"”')]?\s")
_MOST_MARKS = 200


def _winner(match: re.Match[str]) -> Winner | None:
    if match["letter"]:
        return letter(match["letter"])
    if match["word"] or match["c"]:
        return "TIE"
    verdict = match["verdict"]
    if verdict is None:
        return None
    if "=" in verdict:
        return "TIE"
    first, second = verdict[0], verdict[-1]
    return letter(first if ">" in verdict else second)


def _strength(match: re.Match[str]) -> int | None:
    """0 for [[A=B]], 1 for [[A>B]], 2 for [[A>>B]]; other marks have none."""
    verdict = match["verdict"]
    return None if verdict is None else verdict.count(">") + verdict.count("<")


def marks(text: str, protocol: AnswerProtocol | None = None) -> list[Statement]:
    """The marks by which the judge itself names a verdict: no legends, no quotes."""
    found: list[Statement] = []
    for match in deque(_MARK.finditer(text), maxlen=_MOST_MARKS):
        kind: AnswerProtocol = "arena-hard" if match["verdict"] else "mt-bench"
        winner = _winner(match)
        if winner is None and match["other"] is not None and not _verdict_like(match["other"]):
            continue
        if protocol is not None and kind != protocol:
            winner = None if winner != "TIE" else winner
        start = text.rfind("\n", 0, match.start()) + 1
        before = text[max(start, match.start() - 300) : match.start()]
        after = text[match.end() : match.end() + 120].split("\n", 1)[0]
        if _LEGEND_AFTER.match(after) or _LEGEND_BEFORE.search(before):
            continue
        if _IN_A_RESPONSE.match(after):
            continue
        others = {other[0] for other in _MARK.finditer(before + after)} - {match[0]}
        if others and _LEGEND_AMONG_OTHERS.match(after):
            continue
        sentence = _SENTENCE.split(before)[-1]
        if _NEGATED_BEFORE.search(before) or attributed(sentence) or introduces(sentence):
            continue
        if winner is not None and _belongs_to(winner, sentence, after):
            continue
        final = _FINAL_BEFORE.search(before) is not None or not before.strip(" *_>#`\"'")
        found.append(
            Statement(match.start(), match.end(), winner, match[0], kind, final, _strength(match))
        )
    return found


# What goes on after a mark in its own sentence, other than with a reason for it.
_TAIL = re.compile(
    r"[\"'`*)\]]{0,3}\s{0,2}(?:[,，(（]|<-|[-–—←]\s|(?!because|since|as|due|for|and|with)[a-z]|是|出|在|来)"
)
_OF_THE_JUDGE = re.compile(
    r"\b(?:my|i|we|our|verdict|decision|conclusion|final(?! (?:line|word|sentence))|choice"
    r"|judge?ment|winner|better|best|wins?"
    r"|therefore|thus|hence|so|overall|prefer\w*|rating|output|result|answer is)\b"
    r"|我|判|结论|最终|因此|所以|综|胜|更好|选|结果|答案",
    re.IGNORECASE,
)
_EITHER = {
    "A": re.compile(rf"{NOUN}\s?[(（]?[A1]|(?<![A-Za-z0-9])A(?![A-Za-z0-9])"),
    "B": re.compile(rf"{NOUN}\s?[(（]?[B2]|(?<![A-Za-z0-9])B(?![A-Za-z0-9])"),
}


def _belongs_to(winner: Winner, before: str, after: str) -> bool:
    """Whether the mark is said of the response that it names, by a sentence that judges nothing."""
    tail = _SENTENCE.split(after)[0] if _TAIL.match(after) else ""
    before, tail = _MARK.sub("", before), _MARK.sub("", tail)  # another mark names no response
    if _OF_THE_JUDGE.search(before) or _OF_THE_JUDGE.search(tail):
        return False
    if winner == "TIE":
        return re.match(r"\s(?:is|was|means)\b", tail) is not None
    return _EITHER[winner].search(f"{before}\n{tail}") is not None


def _verdict_like(inside: str) -> bool:
    plain = inside.strip(" \"'*")
    return bool(
        re.fullmatch(r"[A-Z]|[A-Z]\s?[<>=]{1,2}\s?[A-Z]|(?i:none|neither|both|[ab] or [ab])", plain)
    )


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


def _by_scores(scores: Scores) -> Winner:
    return "TIE" if scores.a == scores.b else "A" if scores.a > scores.b else "B"


def _scores(first: str, second: str) -> Scores:
    return Scores(a=float(first), b=float(second))


def first_line(text: str) -> Scores | None:
    opening = text.lstrip().split("\n", 1)[0][:80].strip()
    match = _FIRST_LINE.fullmatch(opening)
    return None if match is None else _scores(match[1], match[2])


def read_scores(text: str, *, first_line_only: bool = False) -> ParsedVerdict | ParseFailure:
    """The winner by the two scores; a closing sentence that says otherwise is a contradiction."""
    scores = first_line(text)
    if scores is None and not first_line_only:
        scores = _later(text)
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
            Message("unread.none_called_better", last_line=shown(last_line(text))),
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


def read_conclusion(text: str, protocol: AnswerProtocol) -> ParsedVerdict | ParseFailure:
    """A closing sentence such as "Therefore, Assistant A is better", where no mark was given."""
    made = claims(text)
    verdict = concluded(made)
    if verdict == "split":
        return _split(made)
    if verdict == "none":
        return ParseFailure(
            "no_verdict", Message("unread.no_verdict", last_line=shown(last_line(text)))
        )
    winner, claim = verdict
    if disowned(text[claim.start : claim.end + 400], claim.end - claim.start, winner):
        return ParseFailure("contradiction", Message("unread.verdict_of_response", winner=winner))
    if not (claim.concluding or claim.own_line or _in_last_line(text, claim)):
        return ParseFailure("no_verdict", Message("unread.nothing_concludes"))
    return ParsedVerdict(winner, protocol)
