"""The judge's prose as reasons: without the bare verdict in it, and in the caller's labels.

In our own format only "Response A" and "Response B" are renamed, by the contract. The other
protocols call the responses by other names, and those are exchanged here.
"""

from __future__ import annotations

import re

from evenhand.contract import AnswerProtocol

# A short label and nothing but a letter, a tie or a number: it says what the ballot already holds,
# in the labels of its pass.
_BARE_LINE = re.compile(
    r"[ \t>*#_`|-]{0,16}(?:[^\n:：=|]{1,40}[:：=|][ \t*_`\"']{0,8})?"
    r"(?:[AB]|TIE|tie|Tie|平局|[01]?\.\d{1,8}|[01])[ \t*_`\"'.。|]{0,16}"
)
_LONGEST_BARE_LINE = 100
_MARK = re.compile(r"\*{0,2}\[\[[^\[\]\n]{1,12}\]\]\*{0,2}[ \t]{0,8}[.。]?")
_DIGITS = ("1", "2", "3")
_SCORES = re.compile(r"\(?\d{1,8}(?:\.\d{1,8})?[ ,，/]{1,8}\d{1,8}(?:\.\d{1,8})?\)?")

_LETTERED = re.compile(r"(\b(?:Assistant|Answer|Model)[ \t]+|助手[ \t]*)([AB])(?![A-Za-z0-9])")
_NUMBERED = re.compile(r"(\b(?:Assistant|Response)[ \t]+|助手[ \t]*)([12])(?![0-9])")
_NAMES: dict[AnswerProtocol, re.Pattern[str]] = {
    "mt-bench": _LETTERED,
    "arena-hard": _LETTERED,
    "llmbar": re.compile(
        r"(\b(?:Output|Assistant)[ \t]+\(?|输出[ \t]*[(（]?)([ab])(?![A-Za-z0-9])"
    ),
    "three-class": _NUMBERED,
    "scores": _NUMBERED,
}
_OTHER = str.maketrans("ABab12", "BAba21")


def as_reasons(text: str, protocol: AnswerProtocol) -> str:
    """The text without its bare verdict, which would read wrongly once the labels are mapped."""
    if protocol in ("mt-bench", "arena-hard"):
        text = _MARK.sub("", text)
    elif protocol == "three-class":
        lead, _, last = text.rstrip().rpartition("\n")
        text = lead if last.strip(" \t.。") in _DIGITS else text
    elif protocol == "scores":
        first, _, rest = text.lstrip().partition("\n")
        text = rest if _SCORES.fullmatch(first.rstrip()) else text
    elif protocol == "evenhand":
        text = "\n".join(line for line in text.split("\n") if not _is_bare(line))
    return text.strip()


def _is_bare(line: str) -> bool:
    return len(line) <= _LONGEST_BARE_LINE and _BARE_LINE.fullmatch(line) is not None


def exchanged(text: str, protocol: AnswerProtocol) -> str:
    """The protocol's own names for the two responses, exchanged; its own inverse."""
    names = _NAMES.get(protocol)
    return text if names is None else names.sub(lambda m: m[1] + m[2].translate(_OTHER), text)
