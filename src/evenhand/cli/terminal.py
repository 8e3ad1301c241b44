"""Judged text on a terminal: what it says, without what it would do."""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.judges.redaction import Redactor

# CSI, whole OSC and other string sequences, two-character escapes; 7-bit and 8-bit forms. A string
# sequence without its end loses only its beginning: it must not hide the text that follows.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])"
    "[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]?"
)
_KEPT = frozenset("\n\t")
# Joiners build letters and emoji; every other invisible format character only misleads.
_JOINERS = frozenset("\u200c\u200d")

# Our own signs, for a terminal or a pipe that takes ASCII only.
_IN_ASCII = {
    "…": "...",
    "•": "*",
    "·": "-",
    "–": "-",
    "─": "-",
    "━": "-",
    "✓": "+",
    "✗": "x",
}
PLAIN_SIGNS = "evenhand-plain-signs"


def without_keys(text: str) -> str:
    """A server may say our own key back to us; what was stored before that was seen to may too."""
    from evenhand.judges.redaction import secrets_in

    return _redactor(tuple(secrets_in(os.environ))).cut(text)


@lru_cache(maxsize=1)
def _redactor(secrets: tuple[str, ...]) -> Redactor:
    from evenhand.judges.redaction import Redactor

    # Whole and as they are: a part of one may be a part of the user's own texts and paths.
    return Redactor(others=secrets)


def clean(text: str) -> str:
    """Without escape sequences, control characters, invisible formatting, and keys."""
    text = without_keys(text).replace("\r\n", "\n").replace("\r", "\n")
    text = _SEQUENCE.sub("", text)
    return "".join(c for c in text if _shows(c))


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


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


def register_plain_signs() -> str:
    """An error handler for encoders: our signs in ASCII, anything else as its escape."""
    codecs.register_error(PLAIN_SIGNS, _plain_signs)
    return PLAIN_SIGNS


def _plain_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    shown = (
        _IN_ASCII.get(char) or char.encode("ascii", "backslashreplace").decode() for char in missing
    )
    return "".join(shown), error.end
