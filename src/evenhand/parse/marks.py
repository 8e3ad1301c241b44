"""Bracket marks: `[[A]]`, `[[B]]`, `[[C]]` of MT-Bench and `[[A>>B]]` … of Arena-Hard."""

from __future__ import annotations

import re
from collections import deque

from evenhand.contract import Winner
from evenhand.parse.outcome import Protocol, Statement
from evenhand.parse.prose import attributed
from evenhand.parse.quoting import RESPONSE

# `[[C]]orrect` is no mark: what follows the brackets may not be a letter or a digit.
_MARK = re.compile(
    r"\[\[\s{0,3}[\"'“”*]{0,3}(?:(?P<letter>[ABC])|(?P<verdict>A\s?>{1,2}\s?B|B\s?>{1,2}\s?A"
    r"|A\s?=\s?B"
    r"|A\s?<{1,2}\s?B|B\s?<{1,2}\s?A|B\s?=\s?A)|(?P<word>(?i:tie))|(?P<other>[^\[\]\n]{0,20}))"
    r"[\"'“”*]{0,3}\s{0,3}\]\](?![A-Za-z0-9])"
)
_LEGEND_AFTER = re.compile(
    r"[\s\"'`*:：)]{0,4}(?:(?:if|when|means?|indicates?|in case|denotes|stands for)\b"
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
    r"|而不是|不是|并非|声称|写着|包含)"
    r"[^.。!?\n\[\],，:：]{0,25}$|\b(?:than|over)\s[*_`\"']{0,3}$|(?:优于|胜过)\s?$",
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
_TIED: dict[str, Winner] = {"A": "A", "B": "B", "C": "TIE"}


def _winner(match: re.Match[str]) -> Winner | None:
    if match["letter"]:
        return _TIED[match["letter"]]
    if match["word"]:
        return "TIE"
    verdict = match["verdict"]
    if verdict is None:
        return None
    if "=" in verdict:
        return "TIE"
    first, second = verdict[0], verdict[-1]
    return _TIED[first if ">" in verdict else second]


def _strength(match: re.Match[str]) -> int | None:
    """0 for [[A=B]], 1 for [[A>B]], 2 for [[A>>B]]; other marks have none."""
    verdict = match["verdict"]
    return None if verdict is None else verdict.count(">") + verdict.count("<")


def marks(text: str, protocol: Protocol | None = None) -> list[Statement]:
    """The marks by which the judge itself names a verdict: no legends, no quotes."""
    found: list[Statement] = []
    for match in deque(_MARK.finditer(text), maxlen=_MOST_MARKS):
        kind: Protocol = "arena-hard" if match["verdict"] else "mt-bench"
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
        if _NEGATED_BEFORE.search(before) or attributed(sentence):
            continue
        final = _FINAL_BEFORE.search(before) is not None or not before.strip(" *_>#`\"'")
        found.append(
            Statement(match.start(), match.end(), winner, match[0], kind, final, _strength(match))
        )
    return found


def _verdict_like(inside: str) -> bool:
    plain = inside.strip(" \"'*")
    return bool(
        re.fullmatch(r"[A-Z]|[A-Z]\s?[<>=]{1,2}\s?[A-Z]|(?i:none|neither|both|[ab] or [ab])", plain)
    )
