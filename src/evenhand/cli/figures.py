"""Counted nouns in English, for commands that are no analyses yet; `messages.numbers` and
`quantities` format the numbers.
"""

from __future__ import annotations

from evenhand.messages.numbers import number as number
from evenhand.quantities import share as share
from evenhand.quantities import value as value


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 pair`, `2 pairs`; `many` where it takes more than an s."""
    return f"{number(count)} {one if count == 1 else many or f'{one}s'}"
