"""Texts of the store as small numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evenhand.errors import StoreError
from evenhand.store.columns import INCONSISTENT, INVALID, TIE, WIN_A, WIN_B
from evenhand.store.texts import unescape

WINNERS: dict[str | None, int] = {"A": 0, "B": 1, "TIE": 2, None: -1}
# No winner's name: an order that was read and whose samples split evenly.
SPLIT = "split"
CHOICES = WINNERS | {SPLIT: -2}


class _Outcomes(dict[tuple[str, str | None], int]):
    def __missing__(self, told: tuple[str, str | None]) -> int:
        raise StoreError(
            f"a verdict is the outcome {told[0]!r} with the winner {told[1]!r}, which is none "
            "that evenhand writes; restore the store from a backup"
        )


OUTCOMES = _Outcomes(
    {
        ("win", "A"): WIN_A,
        ("win", "B"): WIN_B,
        ("tie", "TIE"): TIE,
        ("inconsistent", "TIE"): INCONSISTENT,
        # Where no tie was allowed it has a winner, and stays what it is.
        ("inconsistent", "A"): INCONSISTENT,
        ("inconsistent", "B"): INCONSISTENT,
        ("invalid", None): INVALID,
    }
)


class Coded(dict[str | None, int]):
    """Numbers for texts as they come, from 0; none is -1."""

    def __init__(self) -> None:
        super().__init__({None: -1})

    def __missing__(self, text: str | None) -> int:
        code = self[text] = len(self) - 1
        return code

    @property
    def table(self) -> tuple[str, ...]:
        return tuple(unescape(text) for text in self if text is not None)


def code_outcomes(outcomes: Iterable[str], winners: Iterable[str | None]) -> Iterator[int]:
    return map(OUTCOMES.__getitem__, zip(outcomes, winners, strict=True))
