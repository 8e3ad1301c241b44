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
# count as word characters for \b. Each pattern begins with a literal, which `re` finds six times
# faster than a choice; so what stands before it is looked at from behind.
_FULL_FORMS = tuple(
    (literal, re.compile(rf"({literal}{before}[ \t\u00a0{blanks}]{least})([AB])(?![A-Za-z0-9_])"))
    for literal, before, blanks, least in (
        ("esponse", r"(?<=[Rr]esponse)(?<![A-Za-z0-9_].esponse)", "", "+"),
        ("RESPONSE", r"(?<![A-Za-z0-9_]RESPONSE)", "", "+"),
        ("响应", "", r"\u3000", "*"),
    )
)
_OTHER = {"A": "B", "B": "A"}


def flip(winner: Winner) -> Winner:
    return _FLIPPED[winner]


def flip_or_none(winner: Winner | None) -> Winner | None:
    return None if winner is None else _FLIPPED[winner]


def other_order(order: Order) -> Order:
    return "swapped" if order == "original" else "original"


def rename(text: str) -> str:
    """Exchange "Response A" and "Response B" (响应 A, 响应 B) in prose; its own inverse."""
    for literal, form in _FULL_FORMS:
        # Most short texts name neither; looking for that is many times cheaper than the pattern.
        if literal in text:
            # Splitting and joining takes half the time of a function called for each match.
            parts = form.split(text)
            parts[2::3] = [_OTHER[label] for label in parts[2::3]]
            text = "".join(parts)
    return text
