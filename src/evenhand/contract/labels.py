"""The labels A and B, and what exchanging them does to winners and to prose."""

from __future__ import annotations

import re
from typing import Literal

Winner = Literal["A", "B", "TIE"]
Order = Literal["original", "swapped"]
Locale = Literal["en", "zh"]
Mode = Literal["reasoned", "letter"]

WINNERS: tuple[Winner, ...] = ("A", "B", "TIE")
ORDERS: tuple[Order, ...] = ("original", "swapped")

_FLIPPED: dict[Winner, Winner] = {"A": "B", "B": "A", "TIE": "TIE"}

# Only the full forms that the prompt asks for are renamed: a bare letter may be an article, a
# grade or a variable. ASCII look-arounds, because in 响应A更好 the characters beside the label
# count as word characters for \b.
_FULL_FORM = re.compile(
    r"(?<![A-Za-z0-9_])([Rr]esponse[ \t\u00a0]+|RESPONSE[ \t\u00a0]+)([AB])(?![A-Za-z0-9_])"
    r"|(响应[ \t\u00a0\u3000]*)([AB])(?![A-Za-z0-9_])"
)
_OTHER = {"A": "B", "B": "A"}


def flip(winner: Winner) -> Winner:
    return _FLIPPED[winner]


def flip_or_none(winner: Winner | None) -> Winner | None:
    return None if winner is None else _FLIPPED[winner]


def other_order(order: Order) -> Order:
    return "swapped" if order == "original" else "original"


def _rename_match(match: re.Match[str]) -> str:
    if match[1] is not None:
        return match[1] + _OTHER[match[2]]
    return match[3] + _OTHER[match[4]]


def rename(text: str) -> str:
    """Exchange "Response A" and "Response B" (响应 A, 响应 B) in prose; its own inverse."""
    # Most short texts name neither; looking for that is many times cheaper than the pattern.
    if "esponse" in text or "响应" in text or "RESPONSE" in text:
        return _FULL_FORM.sub(_rename_match, text)
    return text
