"""Verdicts as columns of plain numbers, for statistics. `numpy.asarray` takes each without copying.

Outcomes are 0 A won, 1 B won, 2 tie, 3 inconsistent, 4 invalid. Winners are 0 A, 1 B, 2 TIE, and
-1 where there is none. An order whose samples split evenly chose none of the three although it was
read: that is -2, in `first_winner` and `second_winner` alone. Models are places in a table of
names, and -1 where the row names none.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

from evenhand.contract import Outcome, Winner

WIN_A, WIN_B, TIE, INCONSISTENT, INVALID = range(5)

Names = tuple[str, ...]


def whole_numbers() -> array[int]:
    return array("q")


def codes() -> array[int]:
    return array("i")


def small_codes() -> array[int]:
    return array("b")


def fractions() -> array[float]:
    return array("d")


class BattleCount(NamedTuple):
    """How often two models' pairs came out one way; `flipped` of them changed with the order."""

    model_a: str | None
    model_b: str | None
    outcome: Outcome
    winner: Winner | None
    verdicts: int
    flipped: int = 0


@dataclass(frozen=True, slots=True)
class BattleColumns:
    """What a ranking needs of each verdict; by run, item and judge."""

    models: Names
    judges: tuple[int, ...]  # their ids
    prompt_key: array[int] = field(default_factory=whole_numbers)
    model_a: array[int] = field(default_factory=codes)
    model_b: array[int] = field(default_factory=codes)
    outcome: array[int] = field(default_factory=small_codes)
    judge: array[int] = field(default_factory=codes)  # a place in `judges`
    flipped: array[int] = field(default_factory=small_codes)  # 1: changed with the order


@dataclass(frozen=True, slots=True)
class OutcomeColumns:
    """One judge's verdicts on a run, by item number."""

    models: Names
    tag_sets: tuple[tuple[str, ...], ...]
    number: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    outcome: array[int] = field(default_factory=small_codes)
    first_winner: array[int] = field(default_factory=small_codes)  # -2 where its samples split
    second_winner: array[int] = field(default_factory=small_codes)
    # 1 where the pair is shown in both orders, 0 where it is shown in one alone.
    both_orders: array[int] = field(default_factory=small_codes)
    confidence: array[float] = field(default_factory=fractions)  # NaN where there is none
    length_a: array[int] = field(default_factory=codes)  # in characters
    length_b: array[int] = field(default_factory=codes)
    model_a: array[int] = field(default_factory=codes)
    model_b: array[int] = field(default_factory=codes)
    tags: array[int] = field(default_factory=codes)  # a place in `tag_sets`
    label: array[int] = field(default_factory=small_codes)  # a person's winner


@dataclass(frozen=True, slots=True)
class CriterionColumns:
    """One criterion in one judge's verdicts, by item number: a row for each pair that has it."""

    criterion: str
    number: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    outcome: array[int] = field(default_factory=small_codes)
    # Items that are in no column: a win on averaged probabilities, where the orders chose
    # differently. Whose win it is stands in the passes alone.
    untold: array[int] = field(default_factory=whole_numbers)


@dataclass(frozen=True, slots=True)
class PrefixColumns:
    """The verdicts on the prompts that were settled one after the other, in the queue's order."""

    is_whole: bool  # nothing is pending after them
    place: array[int] = field(default_factory=whole_numbers)  # the same for all rows of a prompt
    number: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    outcome: array[int] = field(default_factory=small_codes)


@dataclass(frozen=True, slots=True)
class PassColumns:
    """One judge's passes on the pairs of a run; winners are in the caller's labels."""

    number: array[int] = field(default_factory=whole_numbers)
    prompt_key: array[int] = field(default_factory=whole_numbers)
    order: array[int] = field(default_factory=small_codes)  # 0 original, 1 swapped
    sample: array[int] = field(default_factory=codes)
    winner: array[int] = field(default_factory=small_codes)
