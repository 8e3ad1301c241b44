"""The marks by which other judges name a verdict: `[[A]]`, `[[B]]`, `[[C]]` of MT-Bench and
`[[A>>B]]` … of Arena-Hard.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from evenhand.contract import AnswerProtocol, Winner
from evenhand.judging.answers.quotations import RESPONSE, attributes, introduces
from evenhand.judging.answers.results import MARK, ParsedVerdict, StatedVerdict, off_menu
from evenhand.judging.answers.vocabulary import NOUN, OWN, letter, ranked_winner

# `[[C]]orrect` is no mark: what follows the brackets may not be a letter or a digit.
_MARK = re.compile(
    rf"\\?\[\\?\[\s{{0,3}}[\"'“”*]{{0,3}}(?:(?:{NOUN}\s?)?(?P<letter>[ABab])|(?P<tie>C|(?i:tie))"
    r"|(?P<left>[AB])\s?(?P<sign>>{1,2}|<{1,2}|=)\s?(?P<right>[AB])|(?P<other>[^\[\]\n]{0,20}))"
    r"[\"'“”*]{0,3}\s{0,3}\\?\]\\?\](?![A-Za-z0-9])"
)
# Off the menu, but meant as a verdict; other brackets are links and footnotes.
_VERDICT_LIKE = re.compile(
    r"[ \"'*]{0,3}(?:[A-Z]|[A-Z]\s?[<>=]{1,2}\s?[A-Z]|(?i:none|neither|both"
    r"|[ab] or [ab]))[ \"'*]{0,3}"
)
_RANKING_LINE = re.compile(
    r"\n[ \t*_`]{0,6}(?P<mark>(?P<left>[AB])(?P<sign>>{1,2}|<{1,2}|=)(?P<right>[AB]))[\s*_`.]{0,6}$"
)
# A legend says what a mark would mean.
_LEGEND_AFTER = re.compile(
    r"[\s\"'`*:：)]{0,4}(?:(?:if|when|means?|indicates?|in case|denotes|stands for|would)\b"
    r"|=\s|如果|表示|代表|意味着)",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"(?:\bif\b.{0,80}|\b(?:were|whether|(?<!\bI )would)\b[^,;，；]{0,80}|(?:如果|格式"
    r"|选项).{0,40})$",
    re.IGNORECASE,
)
# Where several marks stand in a line, these offer them.
_MENU = re.compile(
    r"\b(?:outputs?|choose|respond with|answer with|either|one of|between|options?)\b|选",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\b(?:not|never|rather than|instead of|cannot|sa(?:y|ys|id|ying)|claims?|wrote|writes?"
    r"|argues?(?: for)?|contains?|includes?|ends? (?:in|with|on)|closes with|carries|inserted"
    r"|quot\w+|considered|initially|leaning|tempted|injected|fake|tells?|told|asks?|orders?|ordered"
    r"|instructs?|demands?)\b|n't\b|而不是|不是|并非|声称|写着|包含|不要|切勿)"
    r"[^.。!?\n\[\],，:：]{0,25}$|\b(?:than|over)\s[*_`\"']{0,3}$|(?:优于|胜过)\s?$"
    r"|(?:结尾|末尾|最后一[行句])(?:是|为|写着?)?\s?$",
    re.IGNORECASE,
)
_IN_A_RESPONSE = re.compile(
    rf"[\s\"'`*)）]{{0,4}}(?:(?:in|inside|within|from|of|at the end of|that)\s|是|出现在|来自|在)"
    rf"[^.。!?,，\n]{{0,30}}{RESPONSE.pattern}|\s?[(（]?(?:出自|来自|引自|摘自|写在)"
)
# What goes on after a mark in its own sentence, other than with a reason for it.
_TAIL = re.compile(
    r"[\"'`*)\]]{0,3}\s{0,2}(?:[,，(（]|<-|[-–—←]\s|(?!because|since|as|due|for|and|with)[a-z]|是"
    r"|出|在|来)"
)
# "Response A: [[A]]", "A → [[A]]", "Per A: [[A]]".
_NAME_ALONE = re.compile(
    rf"[\s*_`>#|•-]{{0,8}}(?:(?i:per|from|in"
    rf"|of)\s)?(?:{NOUN}\s?)?[(（]?[AB12ab][)）]?[\s*_`|:：=→>-]{{1,8}}"
)
# The sentences in which what is missing tells something; of other languages nothing is known.
_ENGLISH_OR_CHINESE = re.compile(
    r"\b(?:the|is|of|with|that|has|this|it|its|only|was|but|ends?|says?|stands?)\b"
    r"|\A[^\u3040-\u30ff\uac00-\ud7af]*[\u4e00-\u9fff][^\u3040-\u30ff\uac00-\ud7af]*\Z"
)
_NAMED = {
    "A": re.compile(rf"{NOUN}\s?[(（]?[A1]|(?<![A-Za-z0-9])A(?![A-Za-z0-9])"),
    "B": re.compile(rf"{NOUN}\s?[(（]?[B2]|(?<![A-Za-z0-9])B(?![A-Za-z0-9])"),
    "TIE": re.compile(r"\n\s(?:is|was|means)\b"),
}
_SENTENCE = re.compile(r"(?<=[.!?])[\"”')]?\s|[。！？]")
_MOST_MARKS = 200


class Marks(NamedTuple):
    """What the judge itself marks, and whether there were marks that it only quotes or explains."""

    stated: list[StatedVerdict]
    rejected: bool


def without_marks(text: str) -> str:
    """The text with a line end for each character of a mark: no sentence goes through one."""
    return _MARK.sub(lambda mark: "\n" * len(mark[0]), text)


def marks(text: str, protocol: AnswerProtocol | None = None) -> Marks:
    """The marks by which the judge itself names a verdict: no legends, no quotes."""
    found: list[StatedVerdict] = []
    rejected = False
    for match in deque(_MARK.finditer(text), maxlen=_MOST_MARKS):
        if match["other"] is not None and not _VERDICT_LIKE.fullmatch(match["other"]):
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        before = text[max(start, match.start() - 300) : match.start()]
        after = text[match.end() : match.end() + 120].split("\n", 1)[0]
        candidate = _candidate(match, before, protocol)
        if _not_stated(match, candidate.winner, before, after):
            rejected = True
        else:
            found.append(candidate)
    closing = _RANKING_LINE.search(text, max(0, len(text) - 200))
    if closing is not None and protocol in (None, "arena-hard"):
        # Without its brackets, but all of the last line.
        found.append(_ranking(closing, closing.span("mark"), closing["mark"], final=True))
    return Marks(found, rejected)


def _candidate(match: re.Match[str], before: str, protocol: AnswerProtocol | None) -> StatedVerdict:
    bare = _MARK.sub("", before)
    final = OWN.search(_SENTENCE.split(bare)[-1]) is not None or not before.strip(" *_>#`\"'")
    if match["sign"]:
        found = _ranking(match, match.span(), match[0], final=final)
    else:
        winner: Winner | None = "TIE" if match["tie"] else None
        winner = letter(match["letter"]) if match["letter"] else winner
        reading = off_menu(match[0]) if winner is None else ParsedVerdict(winner, "mt-bench")
        found = StatedVerdict(*match.span(), match[0], MARK, reading, final)
    asked = isinstance(found.reading, ParsedVerdict) and protocol in (None, found.reading.protocol)
    return found if asked or found.winner == "TIE" else found._replace(reading=off_menu(match[0]))


def _ranking(
    match: re.Match[str], span: tuple[int, int], text: str, *, final: bool
) -> StatedVerdict:
    """`A>>B`; its strength is 0 for A=B, 1 for A>B, 2 for A>>B."""
    strength = 0 if match["sign"] == "=" else len(match["sign"])
    winner = ranked_winner(match)
    reading = (
        off_menu(text) if winner is None else ParsedVerdict(winner, "arena-hard", strength=strength)
    )
    return StatedVerdict(*span, text, MARK, reading, final)


def _not_stated(match: re.Match[str], winner: Winner | None, before: str, after: str) -> bool:
    """Whether the mark is explained, quoted or denied, and not given."""
    others = {other[0] for other in _MARK.finditer(before + after)} - {match[0]}
    if _IN_A_RESPONSE.match(after) or _LEGEND_AFTER.match(after):
        return True
    if others and _MENU.search(_MARK.sub("", before)):
        return True
    sentence = _SENTENCE.split(before)[-1]
    if _DENIED.search(before) or _UNREAL.search(sentence) or introduces(sentence):
        return True
    return winner is not None and _belongs_to(winner, sentence, after)


def _belongs_to(winner: Winner, before: str, after: str) -> bool:
    """Whether the mark is said to stand in a response, by a sentence that judges nothing."""
    tail = _SENTENCE.split(after)[0] if _TAIL.match(after) else ""
    before, tail = _MARK.sub("", before), _MARK.sub("", tail)  # another mark names no response
    if _NAME_ALONE.fullmatch(before):
        return True
    said = f"{before}\n{tail}"
    if OWN.search(said):
        return False
    if _NAMED[winner].search(said) and _ENGLISH_OR_CHINESE.search(said):
        return True
    return attributes(before) or attributes(tail)
