"""The judge's prose as reasons: without the bare verdict in it, and in the caller's labels.

In our own format only "Response A" and "Response B" are renamed, by the contract. The other
protocols call the responses by other names, and those are exchanged here.
"""

from __future__ import annotations

import re

from evenhand.parse.outcome import Protocol

# A short label and nothing but a letter, a tie or a number: it says what the ballot already holds,
# in the labels of its pass.
_BARE_LINE = re.compile(
    r"^[ \t>*#_`|-]*(?:[^\n:：=|]{1,40}[:：=|][ \t*_`\"']*)?"
    r"(?:[AB]|TIE|tie|Tie|平局|[01]?\.\d+|[01])[ \t*_`\"'.。|]*$\n?",
    re.MULTILINE,
)
_MARK = re.compile(r"\*{0,2}\[\[[^\[\]\n]{1,12}\]\]\*{0,2}[ \t]*[.。]?")
_LAST_DIGIT = re.compile(r"\n\s*[123]\s*[.。]?\s*\Z")
_FIRST_SCORES = re.compile(r"\A\s*\(?\d+(?:\.\d+)?[ ,，/]+\d+(?:\.\d+)?\)?[ \t]*(?:\n|\Z)")

_NAMES: dict[Protocol, re.Pattern[str]] = {
    "mt-bench": re.compile(r"(\b(?:Assistant|Answer|Model)[ \t]+|助手[ \t]*)([AB])(?![A-Za-z0-9])"),
    "arena-hard": re.compile(
        r"(\b(?:Assistant|Answer|Model)[ \t]+|助手[ \t]*)([AB])(?![A-Za-z0-9])"
    ),
    "llmbar": re.compile(
        r"(\b(?:Output|Assistant)[ \t]+\(?|输出[ \t]*[(（]?)([ab])(?![A-Za-z0-9])"
    ),
    "three-class": re.compile(r"(\b(?:Assistant|Response)[ \t]+|助手[ \t]*)([12])(?![0-9])"),
    "scores": re.compile(r"(\b(?:Assistant|Response)[ \t]+|助手[ \t]*)([12])(?![0-9])"),
}
_OTHER = {"A": "B", "B": "A", "a": "b", "b": "a", "1": "2", "2": "1"}


def as_reasons(text: str, protocol: Protocol) -> str:
    """The text without its bare verdict, which would read wrongly once the labels are mapped."""
    if protocol in ("mt-bench", "arena-hard"):
        text = _MARK.sub("", text)
    elif protocol == "three-class":
        text = "" if text.strip() in ("1", "2", "3") else _LAST_DIGIT.sub("", text)
    elif protocol == "scores":
        text = _FIRST_SCORES.sub("", text)
    elif protocol == "evenhand":
        text = _BARE_LINE.sub("", text)
    return text.strip()


def exchanged(text: str, protocol: Protocol) -> str:
    """The protocol's own names for the two responses, exchanged; its own inverse."""
    names = _NAMES.get(protocol)
    return text if names is None else names.sub(lambda m: m[1] + _OTHER[m[2]], text)
