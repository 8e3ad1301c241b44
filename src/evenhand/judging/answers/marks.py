"""The marks by which other judges name a verdict: the brackets of MT-Bench and Arena-Hard."""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from evenhand.contract import Winner
from evenhand.judging.answers.quotations import RESPONSE, attributes, introduces
from evenhand.judging.answers.results import AnswerProtocol, Statement
from evenhand.judging.answers.sentences import attributed
from evenhand.judging.answers.vocabulary import NOUN, letter, ranked_winner

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
    r"(?:\b(?:(?:this|output|following|required|the) format|options?|either|one of|between|such as"
    r"|e\.g\.|like|labels?)"
    r"[\s:：\"'`*]{0,4}(?:\[\[[^\[\]]{0,12}\]\][\s,/|\"'`]{0,4}(?:or |and )?){0,4}"
    r"|\bif\b[^.。!?\n\[\]]{0,80}|\b(?:were|(?<!\bI )would|whether)\b[^.。!?\n\[\],;，；]{0,80}"
    r"|(?:如果|格式|选项)[^。\n\[\]]{0,40})$",
    re.IGNORECASE,
)
# "Output [[A]], [[B]] or [[C]]": the menu, where several marks stand in its line.
_MENU_BEFORE = re.compile(
    r"\b(?:outputs?|choose|respond with|answer with)\b[^.。\n]{0,60}$", re.IGNORECASE
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


_RANKING_LINE = re.compile(
    r"\n[ \t*_`]{0,6}(?P<mark>(?P<left>[AB])(?P<sign>>{1,2}|<{1,2}|=)(?P<right>[AB]))[\s*_`.]{0,6}$"
)


class Marks(NamedTuple):
    """What the judge itself marks, and whether there were marks that it only quotes or explains."""

    stated: list[Statement]
    rejected: bool


def marks(text: str, protocol: AnswerProtocol | None = None) -> Marks:
    """The marks by which the judge itself names a verdict: no legends, no quotes."""
    found: list[Statement] = []
    rejected = False
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
        if _not_stated(match, winner, before, after):
            rejected = True
            continue
        final = _FINAL_BEFORE.search(before) is not None or not before.strip(" *_>#`\"'")
        found.append(
            Statement(match.start(), match.end(), winner, match[0], kind, final, _strength(match))
        )
    closing = _RANKING_LINE.search(text[-200:])
    if closing is not None and protocol in (None, "arena-hard"):
        # Without its brackets, but all of the last line.
        start = max(0, len(text) - 200) + closing.start("mark")
        said = closing["mark"]
        strength = said.count(">") + said.count("<")
        winner = ranked_winner(closing)
        found.append(
            Statement(start, start + len(said), winner, said, "arena-hard", True, strength)
        )
    return Marks(found, rejected)


def _not_stated(match: re.Match[str], winner: Winner | None, before: str, after: str) -> bool:
    """Whether the mark is explained, quoted or denied, and not given."""
    if _LEGEND_AFTER.match(after) or _LEGEND_BEFORE.search(before) or _IN_A_RESPONSE.match(after):
        return True
    others = {other[0] for other in _MARK.finditer(before + after)} - {match[0]}
    if others and (_LEGEND_AMONG_OTHERS.match(after) or _MENU_BEFORE.search(before)):
        return True
    sentence = _SENTENCE.split(before)[-1]
    if _NEGATED_BEFORE.search(before) or attributed(sentence) or introduces(sentence):
        return True
    return winner is not None and _belongs_to(winner, sentence, after)


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
# "Response A: [[A]]", "A → [[A]]", "Per A: [[A]]", "[[A]]（出自A）".
_NAME_ALONE = re.compile(
    rf"[\s*_`>#|•-]{{0,8}}(?:(?i:per|from|in|of)\s)?(?:{NOUN}\s?)?[(（]?[AB12ab][)）]?[\s*_`|:：=→>-]{{1,8}}"
)
# The sentences in which what is missing tells something; of other languages nothing is known.
_ENGLISH_OR_CHINESE = re.compile(
    r"\b(?:the|is|of|with|that|has|this|it|its|only|was|but|ends?|says?|stands?)\b"
    r"|\A[^\u3040-\u30ff\uac00-\ud7af]*[\u4e00-\u9fff][^\u3040-\u30ff\uac00-\ud7af]*\Z"
)
_EITHER = {
    "A": re.compile(rf"{NOUN}\s?[(（]?[A1]|(?<![A-Za-z0-9])A(?![A-Za-z0-9])"),
    "B": re.compile(rf"{NOUN}\s?[(（]?[B2]|(?<![A-Za-z0-9])B(?![A-Za-z0-9])"),
}
_FROM_A_NAME = re.compile(r"\s?[(（]?(?:出自|来自|引自|摘自|写在)")


def _belongs_to(winner: Winner, before: str, after: str) -> bool:
    """Whether the mark is said to stand in a response, by a sentence that judges nothing."""
    tail = _SENTENCE.split(after)[0] if _TAIL.match(after) else ""
    before, tail = _MARK.sub("", before), _MARK.sub("", tail)  # another mark names no response
    if _OF_THE_JUDGE.search(before) or _OF_THE_JUDGE.search(tail):
        return False
    if winner == "TIE":
        return re.match(r"\s(?:is|was|means)\b", tail) is not None
    said = f"{before}\n{tail}"
    if _EITHER[winner].search(said) and _ENGLISH_OR_CHINESE.search(said):
        return True
    return (
        _NAME_ALONE.fullmatch(before) is not None
        or _FROM_A_NAME.match(tail) is not None
        or attributes(before)
        or attributes(tail)
    )


def _verdict_like(inside: str) -> bool:
    plain = inside.strip(" \"'*")
    return bool(
        re.fullmatch(r"[A-Z]|[A-Z]\s?[<>=]{1,2}\s?[A-Z]|(?i:none|neither|both|[ab] or [ab])", plain)
    )
