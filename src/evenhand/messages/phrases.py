"""The sentences that evenhand itself puts into a verdict, in the language of its judge. Labels are
written in full and passes by their names only, so that a verdict and its mirror image differ in
nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

from evenhand.messages import Language, Message

Order = Literal["original", "swapped"]
Winner = Literal["A", "B", "TIE"]


def say(locale: Language, sentence: str, **values: str) -> Message:
    return Message.of(f"verdict.{sentence}", values, locale)


@cache
def name_pass(locale: Language, order: Order) -> Message:
    return Message.of(f"pass.{order}", {}, locale)


@cache
def name_winner(locale: Language, winner: Winner | None) -> Message:
    return Message.of(f"winner.{'none' if winner is None else winner}", {}, locale)


@cache
def marks(locale: Language) -> dict[Order, str]:
    """What a text begins with that is kept with others: the pass that said it."""
    return {
        "original": str(Message.of("pass.original_said", {}, locale)),
        "swapped": str(Message.of("pass.swapped_said", {}, locale)),
    }


def list_choices(locale: Language, choices: Sequence[tuple[Order, Winner | None]]) -> Message:
    each = [
        Message.of("pass.chose", {"which": name_pass(locale, order), "winner": winner}, locale)
        for order, winner in ((order, name_winner(locale, winner)) for order, winner in choices)
    ]
    if len(each) == 1:
        return each[0]
    return Message.of("pass.both_chose", {"one": each[0], "two": each[1]}, locale)
