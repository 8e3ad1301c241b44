"""Judged text on a terminal: what it says, without what it would do."""

from __future__ import annotations

import re
import unicodedata

# CSI, OSC and other string sequences, two-character escapes; 7-bit and 8-bit forms.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
_KEPT = frozenset("\n\t")
# Joiners build letters and emoji; every other invisible format character only misleads.
_JOINERS = frozenset("\u200c\u200d")


def clean(text: str) -> str:
    """Without escape sequences, control characters and invisible formatting."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _SEQUENCE.sub("", text)
    return "".join(c for c in text if _shows(c))


def _shows(char: str) -> bool:
    if char in _KEPT or char in _JOINERS:
        return True
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def escape(json_text: str) -> str:
    """The same JSON, with every character that a terminal might act upon written as \\uXXXX."""
    if json_text.isascii() and "\x7f" not in json_text:
        return json_text
    return "".join(c if _harmless(c) else _escaped(c) for c in json_text)


def _harmless(char: str) -> bool:
    return char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
